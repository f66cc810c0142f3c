# SPDX-License-Identifier: Apache-2.0
"""Faults of the control node against a stand-in for the monitor: what is told was seen, and all is put back."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from storqual.robustness.faults import FAULTS
from storqual.robustness.log_writes import FLUSH
from storqual.trials import control_faults
from storqual.trials.control_faults import CONTROL_WAYS, Reach
from storqual.virtual_bench.limits import Limit
from storqual_core.kit.errors import ToolError
from tests.unit.storqual.robustness.test_power_cut_images import log_file

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class FakeMonitor:
    """Takes every command; a limit is in force when `takes_limits`, an error happens when `fails_io`."""

    def __init__(
        self, *, fails_io: bool = True, takes_limits: bool = True, refuses: str = "", flushes: int = 1
    ) -> None:
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
        if command == "block_set_io_throttle" and self.takes_limits and arguments is not None:
            self.limit = Limit(arguments["iops"], arguments["bps"])

    async def ask_and_await(
        self, command: str, arguments: dict[str, Any], event: str, limit_s: float, **_: Any
    ) -> bool:
        await self.ask(command, arguments)
        return self.fails_io


@pytest.fixture
def bring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, FakeMonitor], list[str]]:
    """Bring a way about and give what was told."""

    def run(way: str, monitor: FakeMonitor) -> list[str]:
        told: list[str] = []
        bench = SimpleNamespace(drive=lambda _identity: SimpleNamespace(device="sym-0"))

        async def read_limits(_monitor: Any, _bench: Any) -> dict[str, Limit]:
            return {"0x5": monitor.limit}

        def converse(_socket: Any, words: Callable[[Any], Awaitable[None]]) -> None:
            asyncio.run(cast("Any", words(monitor)))

        monkeypatch.setattr(control_faults, "power_state", lambda _places: SimpleNamespace(monitor="m", bench=bench))
        monkeypatch.setattr(control_faults, "read_limits", read_limits)
        monkeypatch.setattr(control_faults, "converse", converse)
        reach = Reach(
            cast("Any", None),
            cast("Any", None),
            "0x5",
            "0000:00:05.0",
            0.0,
            tmp_path / "trial.writes",
            lambda seen, _: told.append(seen),
        )
        CONTROL_WAYS[way](reach)
        return told

    return run


def test_an_error_beneath_the_drive_is_put_in_and_taken_out_again(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_write_error", monitor) == ["inserted", "event:BLOCK_IO_ERROR", "removed"]
    assert [command for command, _ in monitor.asked] == ["blockdev-add", "qom-set", "qom-set", "blockdev-del"]
    assert monitor.asked[0][1]["inject-error"][0]["iotype"] == "write"
    assert [arguments["value"] for command, arguments in monitor.asked if command == "qom-set"] == [
        *("sym-0-faulty", "sym-0-file"),
    ]


def test_an_error_that_no_io_met_is_not_told_as_one(bring: Any) -> None:
    assert bring("qmp_flush_error", FakeMonitor(fails_io=False)) == ["inserted", "removed"]


def test_a_drive_that_stays_faulty_is_not_told_as_mended(bring: Any) -> None:
    with pytest.raises(ToolError, match="blockdev-del"):
        bring("qmp_read_error", FakeMonitor(refuses="blockdev-del"))


def test_what_reaches_a_drive_is_logged_and_no_longer_when_the_fault_ends(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_log_writes", monitor) == ["inserted", "removed", "logged"]
    assert [arguments["value"] for command, arguments in monitor.asked if command == "qom-set"] == [
        *("sym-0-logging", "sym-0-file"),
    ]


def test_a_log_in_which_nothing_is_proves_nothing(bring: Any) -> None:
    assert "logged" not in bring("qmp_log_writes", FakeMonitor(flushes=0))


def test_a_slow_drive_is_as_fast_as_before_afterwards(bring: Any) -> None:
    monitor = FakeMonitor()
    assert bring("qmp_throttle", monitor) == ["throttled", "released"]
    assert monitor.limit == Limit(300, 1 << 24)


def test_a_limit_that_is_not_in_force_is_no_proof(bring: Any) -> None:
    assert "throttled" not in bring("qmp_throttle", FakeMonitor(takes_limits=False))


class PanickingLink:
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
    monkeypatch.setattr(control_faults, "_BOOT_S", 0.2)
    monkeypatch.setattr(control_faults, "_LOOK_S", 0.01)
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
