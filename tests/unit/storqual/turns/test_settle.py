# SPDX-License-Identifier: Apache-2.0
"""Before a bench is changed it answers, nothing runs on it, and what a fault left beneath its drives is gone."""

import asyncio
import fcntl
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.bench.follow import ConnectionLostError
from storqual.turns import acts, settle
from storqual.virtual_bench.limits import Limit
from storqual_core.turns.drive_faults import LAYER, RULES_MEMORY
from storqual_core.turns.left_behind import scripts

DRIVES = tuple(
    SimpleNamespace(identity=f"0x{number}", device=f"sym-{number}", first="", size=1 << 30) for number in range(3)
)
DECLARED = Limit(150, 1 << 20)


class FakeMonitor:
    """A bench whose first drive has what a fault put beneath it, whose second is slow, whose third is unplugged."""

    def __init__(self, *, left: bool) -> None:
        self.nodes = ["sym-0-file", *(["sym-0-faulty"] if left else [])]
        self.limits = {drive.identity: DECLARED for drive in DRIVES}
        if left:
            self.limits["0x1"] = Limit(1, DECLARED.bandwidth)
            del self.limits["0x2"]
        self.asked: list[str] = []
        self.size = 1 << 30

    async def ask(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        self.asked.append(command)
        given = arguments or {}
        if command == "query-named-block-nodes":
            return [{"node-name": name, "image": {"virtual-size": self.size}} for name in self.nodes]
        if command == "block_resize":
            assert given["node-name"] == "sym-0-file"
            self.size = given["size"]
        if command == "qom-set":
            assert given["value"] == "sym-0-file"
        if command == "blockdev-del":
            self.nodes.remove(given["node-name"])
        if command == "block_set_io_throttle":
            self.limits["0x" + given["id"][-1]] = Limit(given["iops"], given["bps"])
        return None


class FakeLink:
    """A bench that answers after some refusals, and is free after some questions."""

    host = "vbench"

    def __init__(self, silent: int = 0, held: int = 0) -> None:
        self.silent, self.held, self.ran, self.layers = silent, held, list[str](), ""

    def run(self, command: str, *, limit_s: float = 0) -> str:
        if self.silent:
            self.silent -= 1
            raise ConnectionLostError("no answer")
        self.ran.append(command)
        return ""

    def call(self, command: str, *, limit_s: float = 0) -> tuple[int, str]:
        self.run(command)
        self.held -= 1
        return 0, "" if self.held >= 0 else f"{settle._END}\n".join(("", self.layers, "", "", ""))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[FakeLink, FakeMonitor], list[str]]:
    bench = SimpleNamespace(drives=DRIVES, adapters=[SimpleNamespace(alias="sym", drives=DRIVES)])

    async def limits(monitor: FakeMonitor, _bench: Any) -> dict[str, Limit]:
        return dict(monitor.limits)

    async def plug(monitor: FakeMonitor, _bench: Any, identity: str, limit: Limit) -> bool:
        monitor.limits[identity] = limit
        return True

    def run(link: FakeLink, monitor: FakeMonitor, targets: object = None) -> list[str]:
        told: list[str] = []
        bench.targets = targets
        monkeypatch.setattr(settle, "start_targets", lambda _places, of: monitor.asked.append(f"start {of.targets}"))
        monkeypatch.setattr(settle, "guests", lambda _places: [SimpleNamespace(monitor="m", bench=bench)])
        monkeypatch.setattr(settle, "converse", lambda _socket, words: asyncio.run(words(monitor)))
        monkeypatch.setattr(settle, "_AGAIN_S", 0.0)
        monkeypatch.setattr(acts, "read_limits", limits)
        monkeypatch.setattr(acts, "plug", plug)
        monkeypatch.setattr(acts, "declared_limits", lambda _bench: dict.fromkeys(monitor_ids(), DECLARED))
        settle.settle(cast("Any", link), str(tmp_path), cast("Any", object()), say=told.append)
        return told

    return run


def monitor_ids() -> list[str]:
    return [drive.identity for drive in DRIVES]


def test_what_a_fault_left_is_taken_back_and_the_guest_looks_for_its_drives(settled: Any) -> None:
    monitor, link = FakeMonitor(left=True), FakeLink()
    told = settled(link, monitor)
    assert monitor.nodes == ["sym-0-file"]
    assert monitor.limits == dict.fromkeys(monitor_ids(), DECLARED)
    assert [sentence.partition(" was left ")[2] for sentence in told] == [
        "beneath 0x0, and was taken out",
        "slow, and is as fast as declared",
        "unplugged, and was put back",
    ]
    assert "scan" in link.ran[-1]


def test_a_bench_on_which_nothing_was_left_is_not_touched(settled: Any) -> None:
    monitor, link = FakeMonitor(left=False), FakeLink()
    assert settled(link, monitor) == []
    assert monitor.asked == ["query-named-block-nodes"]
    assert not [command for command in link.ran if "scan" in command]


def test_targets_that_were_left_without_power_are_started(settled: Any) -> None:
    monitor = FakeMonitor(left=False)
    (told,) = settled(FakeLink(), monitor, "vfc-targets")
    assert (monitor.asked[-1], told) == (
        "start vfc-targets",
        "vbench: the targets were left without power, and were started",
    )


def test_a_lun_that_was_left_larger_has_its_size_again(settled: Any) -> None:
    monitor, link = FakeMonitor(left=False), FakeLink()
    monitor.size += acts._GROWTH
    (told,) = settled(link, monitor)
    assert (monitor.size, told) == (1 << 30, "vbench: 0x0 was left larger, and has its size again")
    assert "/device/rescan" in link.ran[-1]


def test_a_layer_that_was_left_over_a_drive_is_taken_away(settled: Any) -> None:
    link = FakeLink()
    link.layers = f"{LAYER}sda\n{LAYER}sdc\n"
    told = settled(link, FakeMonitor(left=False))
    assert [sentence.partition(": ")[2] for sentence in told] == [
        f"{LAYER}{name} was left between a load and its drive, and was removed" for name in ("sda", "sdc")
    ]
    asked = next(command for command in link.ran if LAYER in command)
    # by the beginning of its name alone: what is somebody else's stays
    assert f"grep -ls '^{LAYER}' /sys/class/block/dm-*/dm/name" in asked


def test_a_bench_that_is_silent_or_busy_is_waited_for_and_that_is_said_once(settled: Any) -> None:
    told = settled(FakeLink(silent=3, held=2), FakeMonitor(left=False))
    assert [sentence.partition("vbench")[2][:20] for sentence in told] == [
        " does not answer (no",
        ": waiting until what",
    ]


def test_a_bench_that_stays_silent_or_held_is_an_error(settled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "_ANSWER_S", -1.0)
    with pytest.raises(ConnectionLostError, match="no answer"):
        settled(FakeLink(silent=2), FakeMonitor(left=False))
    monkeypatch.setattr(settle, "_FREE_S", -1.0)
    with pytest.raises(ConnectionLostError, match="is still held"):
        settled(FakeLink(held=2), FakeMonitor(left=False))


def test_a_connection_that_is_lost_while_the_bench_is_asked_is_waited_for(settled: Any) -> None:
    class LostOnce(FakeLink):
        lost = False

        def run(self, command: str, *, limit_s: float = 0) -> str:
            if "flock" in command and not self.lost:
                self.lost, self.silent = True, 2
            return super().run(command, limit_s=limit_s)

    link = LostOnce()
    told = settled(link, FakeMonitor(left=False))
    assert sum("flock" in command for command in link.ran) == 1
    assert any("does not answer" in sentence for sentence in told)


def test_another_drive_that_was_left_in_a_slot_is_taken_out(settled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = FakeMonitor(left=False)
    monitor.nodes.append("sym-1-other")
    gone: list[str] = []

    async def remove(_monitor: Any, other: str) -> None:
        gone.append(other)

    monkeypatch.setattr(acts, "_remove_other", remove)
    told = settled(FakeLink(), monitor)
    assert gone == ["sym-1-other"]
    assert told == ["vbench: another drive was left in the slot of 0x1, and was taken out"]


@pytest.mark.parametrize("stays", [False, True])
def test_what_was_left_switched_off_is_switched_on_and_kept_in_mind_until_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    phy, slot = tmp_path / "enable", tmp_path / "no folder/power" if stays else tmp_path / "power"
    memory = tmp_path / "a state" / "switched_off"
    memory.parent.mkdir()
    memory.write_text(f"1 {phy}\n1 {slot}\n", encoding="ascii")

    class Shell(FakeLink):
        def call(self, command: str, *, limit_s: float = 0) -> tuple[int, str]:
            ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
            return ended.returncode, ended.stdout

    said: list[str] = []
    with (memory.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(settle, "_ASK_S", 0.1)
        assert settle._left(cast("Any", Shell()), str(memory.parent), said.append) == []
    if stays:
        with pytest.raises(ConnectionLostError):
            settle.settle(cast("Any", Shell()), str(memory.parent), None, say=said.append)
    else:
        settle.settle(cast("Any", Shell()), str(memory.parent), None, say=said.append)
        assert said == [f"vbench: {path} was left switched off, and was switched on again" for path in (phy, slot)]
    assert phy.read_text(encoding="ascii") == "1\n"
    assert memory.exists() is stays


def test_a_bench_on_which_nothing_was_switched_off_is_left_alone(tmp_path: Path) -> None:
    _, command, _ = scripts(str(tmp_path))
    assert subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout == b""


def test_what_rules_of_scsi_debug_left_is_put_back_once_and_told(settled: Any, tmp_path: Path) -> None:
    """The script is run here, on files: a rule that is gone already must not keep the others from being put back."""
    memory, timeout, error = tmp_path / "rules", tmp_path / "timeout", tmp_path / "gone" / "error"
    memory.write_text(f"{error} - 2 0x2a\n{timeout} 30\n", encoding="ascii")
    timeout.write_text("2\n", encoding="ascii")

    class Here(FakeLink):
        def call(self, command: str, *, limit_s: float = 0) -> tuple[int, str]:
            script = command.replace(RULES_MEMORY, str(memory))
            done = subprocess.run(["sh", "-uc", script], capture_output=True, text=True, check=True)
            return 0, done.stdout

    [sentence] = settled(Here(), FakeMonitor(left=False))
    assert sentence == f"vbench: {timeout} was left changed by rules of scsi_debug, and was restored"
    assert (timeout.read_text(encoding="ascii"), memory.exists()) == ("30\n", False)
    assert settled(Here(), FakeMonitor(left=False)) == []
