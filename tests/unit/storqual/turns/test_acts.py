# SPDX-License-Identifier: Apache-2.0
"""Faults of the control node against a stand-in for the monitor: what is told was seen, and all is put back."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.kinds.images import FLUSH
from storqual.turns import acts
from storqual.turns.acts import CONTROL_WAYS, Reach
from storqual.virtual_bench.fabrics import served_wwn
from storqual.virtual_bench.limits import Limit
from storqual_core.data.faults import FAULTS
from storqual_core.kit.errors import StorqualError, ToolError
from tests.support.fake_qemu import bench_with_targets_apart
from tests.support.turn_records import Faked
from tests.unit.storqual.kinds.test_images import log_file


class FakeMonitor:
    """Takes every command; a limit is in force when `takes_limits`, an error happens when `fails_io`.

    Another drive in a slot gets `writes`.
    """

    def __init__(
        self,
        *,
        fails_io: bool = True,
        takes_limits: bool = True,
        refuses: str = "",
        flushes: int = 1,
        writes: int = 0,
    ) -> None:
        self.writes = writes
        self.fails_io, self.takes_limits, self.refuses = fails_io, takes_limits, refuses
        self.logged = [(0, FLUSH, b"")] * flushes
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.limit = Limit(300, 1 << 24)

    async def ask(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        self.asked.append((command, arguments or {}))
        if arguments is not None and arguments.get("driver") == "blklogwrites":
            log_file(Path(arguments["log"]["filename"]), self.logged)
        if command == self.refuses:
            raise ToolError(f"QEMU refused {command}")
        if command == "query-blockstats":
            others = [{"node-name": "sym-0-other", "stats": {"wr_operations": self.writes}}] * (self.writes >= 0)
            return [{"node-name": "sym-1-file", "stats": {"wr_operations": 7}}, *others]
        if command == "qom-list":
            return [{"name": "sym-0-other"}] if ("device_add", "sym-0-other") in self.added else []
        if command == "block_set_io_throttle" and self.takes_limits and arguments is not None:
            self.limit = Limit(arguments["iops"], arguments["bps"])
        return None

    @property
    def added(self) -> list[tuple[str, object]]:
        return [(command, arguments.get("id")) for command, arguments in self.asked if command != self.refuses]

    async def ask_and_await(
        self, command: str, arguments: dict[str, Any], event: str, limit_s: float, **_: Any
    ) -> bool:
        await self.ask(command, arguments)
        return self.fails_io


class FakeLink:
    """A bench whose drive counts `late` commands as timed out between two questions."""

    def __init__(self, late: int = 2) -> None:
        self.late, self.counted = late, -late
        self.timeouts: list[str] = []

    def run(self, command: str) -> str:
        if command.startswith("echo "):
            self.timeouts.append(command.split()[1])
        if command.endswith("/iotmo_cnt"):
            self.counted += self.late
            return f"{self.counted:#x}\n"
        return "/sys/block/sda/device\n" if "grep" in command else "30\n"


class SlotLink:
    """A bench that finds the other drive after a scan, if at all."""

    def __init__(self, *, finds: bool = True) -> None:
        self.finds, self.scans = finds, 0

    def run(self, command: str) -> str:
        if "scan" in command:
            self.scans += 1
            return ""
        return "/sys/block/sdb/device/wwid\n" if self.finds else ""


class SizedLink:
    """A bench whose initiator has the size that QEMU made, `late` looks later."""

    def __init__(self, monitor: FakeMonitor, *, late: float = 1) -> None:
        self.monitor, self.late, self.looks = monitor, late, 0.0

    def run(self, command: str) -> str:
        assert "grep -ils 5 /sys/block" in command
        made = [arguments["size"] for name, arguments in self.monitor.asked if name == "block_resize"]
        self.looks += 1
        return f"{made[-1] // 512}\n" if self.looks > self.late else "7\n"


@pytest.fixture
def bring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, FakeMonitor], list[str]]:
    def run(way: str, monitor: FakeMonitor, link: FakeLink | SlotLink | SizedLink | None = None) -> list[str]:
        told: list[str] = []
        drive = SimpleNamespace(device="sym-0", identity="0x5", size=1 << 30)
        bench = SimpleNamespace(
            drive=lambda _identity: drive, drives=[drive], adapters=[SimpleNamespace(drives=[drive])]
        )

        async def read_limits(_monitor: Any, _bench: Any) -> dict[str, Limit]:
            return {"0x5": monitor.limit}

        def converse(_socket: Any, words: Callable[[Any], Awaitable[None]]) -> None:
            asyncio.run(cast("Any", words(monitor)))

        monkeypatch.setattr(acts, "guests", lambda _places: [SimpleNamespace(monitor="m", bench=bench)])
        monkeypatch.setattr(acts, "read_limits", read_limits)

        async def pull(_monitor: Any, _bench: Any, _drive: str) -> bool:
            await monitor.ask("unplug")
            return True

        async def plug(_monitor: Any, _bench: Any, _drive: str, limit: Limit) -> bool:
            await monitor.ask("plug", {"limit": limit})
            return True

        monkeypatch.setattr(acts, "unplug", pull)
        monkeypatch.setattr(acts, "plug", plug)
        monkeypatch.setattr(acts, "device_arguments", lambda _adapter, _drive: {"driver": "scsi-hd"})
        monkeypatch.setattr(acts, "_APPEARS_S", 0.0)
        monkeypatch.setattr(acts, "_LOOK_S", 0.0)
        monkeypatch.setattr(acts, "_EVENT_S", 0.2)
        monkeypatch.setattr(acts, "converse", converse)
        reach = Reach(
            cast("Any", None),
            cast("Any", link or FakeLink()),
            "0x5",
            "0000:00:05.0",
            0.0,
            tmp_path / "trial.writes",
            lambda seen, _: told.append(seen),
        )
        CONTROL_WAYS[way](reach)
        return told

    return run


def test_what_is_done_to_a_drive_is_done_in_the_guest_that_has_its_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = bench_with_targets_apart()
    states = [SimpleNamespace(bench=guest) for guest in (bench, bench.targets)]
    monkeypatch.setattr(acts, "guests", lambda _places: states)
    whom: Any = (None, None)
    assert Reach(*whom, served_wwn("FCA0000001"), "", 0.0, tmp_path, print).power is states[1]
    monkeypatch.setattr(acts, "guests", lambda _places: [])
    with pytest.raises(StorqualError, match="is off"):
        _ = Reach(*whom, "0x5", "", 0.0, tmp_path, print).power


def test_an_error_beneath_the_drive_is_put_in_and_taken_out_again(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_write_error", monitor) == ["inserted", "event:BLOCK_IO_ERROR", "removed"]
    assert [command for command, _ in monitor.asked] == ["blockdev-add", "qom-set", "qom-set", "blockdev-del"]
    assert monitor.asked[0][1]["inject-error"][0]["iotype"] == "write"
    assert [arguments["value"] for command, arguments in monitor.asked if command == "qom-set"] == [
        *("sym-0-faulty", "sym-0-file")
    ]


def test_an_error_that_no_io_met_is_not_told_as_one(bring: Any) -> None:
    assert bring("qmp_flush_error", FakeMonitor(fails_io=False)) == ["inserted", "removed"]


def test_a_drive_that_stays_faulty_is_not_told_as_mended(bring: Any) -> None:
    with pytest.raises(ToolError, match="blockdev-del"):
        bring("qmp_read_error", FakeMonitor(refuses="blockdev-del"))


def test_a_drive_whose_queue_is_full_answers_so_and_not_with_a_medium_error(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_task_set_full", monitor) == ["inserted", "event:BLOCK_IO_ERROR", "removed"]
    assert monitor.asked[0][1]["inject-error"][0]["errno"] == 33


def test_another_drive_in_the_slot_goes_again_and_the_first_comes_back_with_its_limit(bring: Any) -> None:
    monitor, link = FakeMonitor(), SlotLink()
    assert bring("qmp_exchange", monitor, link) == ["event:DEVICE_DELETED", "exchanged", "plugged", "untouched"]
    assert [command for command, _ in monitor.asked] == [
        *("unplug", "blockdev-add", "device_add", "query-blockstats", "qom-list"),
        *("device_del", "blockdev-del", "plug"),
    ]
    other, back = monitor.asked[2][1], monitor.asked[-1][1]
    assert (other["id"], other["drive"], other["serial"]) == ("sym-0-other", "sym-0-other", "STORQUAL-OTHER")
    assert back == {"limit": Limit(300, 1 << 24)}
    assert link.scans == 2


def test_another_drive_that_the_bench_never_found_is_no_proof(bring: Any) -> None:
    assert "exchanged" not in bring("qmp_exchange", FakeMonitor(), SlotLink(finds=False))


def test_a_write_that_reaches_another_drive_in_the_slot_is_told_as_misdirected(bring: Any) -> None:
    monitor = FakeMonitor(writes=3)
    with pytest.raises(ToolError, match=r"^misdirected: 3 writes reached another drive in the slot of 0x5$"):
        bring("qmp_exchange", monitor, SlotLink())
    assert monitor.asked[-1][0] == "plug"


def test_writes_of_another_drive_that_nobody_counted_are_no_zero(bring: Any) -> None:
    with pytest.raises(ToolError, match="does not tell the writes"):
        bring("qmp_exchange", FakeMonitor(writes=-1), SlotLink())


def test_the_first_drive_comes_back_when_no_other_could_be_put_in_its_slot(bring: Any) -> None:
    monitor = FakeMonitor(refuses="device_add")
    monitor.writes = -1
    with pytest.raises(ToolError, match="device_add"):
        bring("qmp_exchange", monitor, SlotLink())
    assert [command for command, _ in monitor.asked][-3:] == ["qom-list", "blockdev-del", "plug"]


def test_what_reaches_a_drive_is_logged_and_no_longer_when_the_fault_ends(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_log_writes", monitor) == ["inserted", "removed", "logged"]
    assert [arguments["value"] for command, arguments in monitor.asked if command == "qom-set"] == [
        *("sym-0-logging", "sym-0-file")
    ]


def test_a_log_in_which_nothing_is_proves_nothing(bring: Any) -> None:
    assert "logged" not in bring("qmp_log_writes", FakeMonitor(flushes=0))


def test_a_lun_grows_for_its_initiator_and_has_its_size_again(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_resize", monitor, SizedLink(monitor)) == ["resized", "size_back"]
    sizes = [(arguments["node-name"], arguments["size"]) for _, arguments in monitor.asked]
    assert sizes == [("sym-0-file", (1 << 30) + (64 << 20)), ("sym-0-file", 1 << 30)]


def test_a_lun_whose_initiator_sees_no_other_size_is_no_proof_and_has_its_size_again(bring: Any) -> None:
    monitor = FakeMonitor()
    with pytest.raises(ToolError, match="has 7 sectors for its initiator"):
        bring("qmp_resize", monitor, SizedLink(monitor, late=float("inf")))
    assert monitor.asked[-1][1]["size"] == 1 << 30


def test_a_slow_drive_is_as_fast_as_before_afterwards(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_throttle", monitor) == ["throttled", "released"]
    assert monitor.limit == Limit(300, 1 << 24)


def test_commands_of_a_drive_that_hangs_time_out_soon_and_their_timeout_is_put_back(bring: Any) -> None:
    link, monitor = FakeLink(), FakeMonitor()
    assert bring("qmp_hang", monitor, link) == ["throttled", "released", "timed_out"]
    assert link.timeouts == ["2", "30"]
    assert monitor.limit == Limit(300, 1 << 24)


def test_a_drive_that_hangs_without_a_command_that_timed_out_is_not_proven(bring: Any) -> None:
    assert "timed_out" not in bring("qmp_hang", FakeMonitor(), FakeLink(late=0))


def test_the_timeout_is_put_back_also_when_the_drive_could_not_be_slowed(bring: Any) -> None:
    link = FakeLink()
    with pytest.raises(ToolError):
        bring("qmp_hang", FakeMonitor(refuses="block_set_io_throttle"), link)
    assert link.timeouts == ["2", "30"]


def test_a_limit_that_is_not_in_force_is_no_proof(bring: Any) -> None:
    assert "throttled" not in bring("qmp_throttle", FakeMonitor(takes_limits=False))


class PanickingLink(Faked):
    """A bench that panics, or not, when it is told to, and then starts again, or not."""

    def __init__(self, console: Path, *, panics: bool = True, starts: bool = True) -> None:
        self.console, self.panics, self.starts, self.told = console, panics, starts, False

    def run(self, command: str, *, limit_s: float = 0) -> str:
        if "sysrq-trigger" in command:
            self.told = True
            if self.panics:
                self.console.write_text(
                    "[ 9.1] Kernel panic - not syncing: sysrq triggered crash\n", encoding="utf-8"
                )
            return ""
        return "boot-2\n" if self.told and self.starts else "boot-1\n"

    def cut(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("panics", "starts", "told", "why"),
    [
        (True, True, ["panicked", "other_boot"], ""),
        (False, True, [], "did not panic"),
        (True, False, ["panicked"], "did not start again"),
    ],
)
def test_a_panic_is_proven_by_the_console_and_by_another_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panics: bool, starts: bool, told: list[str], why: str
) -> None:
    monkeypatch.setattr(acts, "_BOOT_S", 0.2)
    monkeypatch.setattr(acts, "_LOOK_S", 0.01)
    console = tmp_path / "console.log"
    console.touch()
    link, seen = PanickingLink(console, panics=panics, starts=starts), list[str]()
    places = cast("Any", SimpleNamespace(console=console))
    reach = Reach(places, cast("Any", link), "0x5", "", 0.0, tmp_path, lambda name, _: seen.append(name))
    with pytest.raises(ToolError, match=why) if why else nullcontext():
        CONTROL_WAYS["sysrq_panic"](reach)
    assert seen == told


def test_every_way_of_a_virtual_bench_in_the_vocabulary_is_one_that_can_be_gone() -> None:
    ways = {way.name for fault in FAULTS.values() for way in fault.ways if way.where == "virtual"}
    assert ways == set(CONTROL_WAYS)
