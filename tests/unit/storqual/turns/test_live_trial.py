# SPDX-License-Identifier: Apache-2.0
import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.base.console_log import LineStamper
from storqual.bench.follow import ConnectionLostError
from storqual.bench.ladder import Recovery
from storqual.console.console import Console
from storqual.run import read_run
from storqual.turns import live_trial as live_trial_module
from storqual.turns import live_turn as live_turn_module
from storqual.turns.acts import Reach
from storqual.turns.live_turn import TurnLostError
from storqual_core.kit.errors import ToolError
from tests.support.turn_records import REQUEST, Faked, live_trial, plan_campaign, turns_planned

pytestmark = pytest.mark.slow


AT = "2026-11-21T10:00:00.000Z"
PANIC = (
    "[  9.1] Kernel panic - not syncing: an abort was asked for\n[  9.2] ---[ end Kernel panic - not syncing ]---\n"
)


class SilentLink(Faked):
    """A bench that says nothing any more once its load goes on; it answers from `boot`, or not at all."""

    def __init__(self, boot: str | None, silence: int = 100, *, alive: bool = False) -> None:
        self.boot, self.waited, self.silence, self.alive = boot, 0, silence, alive

    def run(self, command: str, *, limit_s: float = 0.0) -> str:
        if "boot_id" not in command:
            return ""
        if self.boot is None:
            raise ConnectionLostError(f"no answer within {limit_s:g} s")
        return f"{self.boot}\n"

    def lines(self, _path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        yield {"kind": "begin", "at": 1, "node": "/dev/sda", "touched": [], "wall": 0}
        yield {"kind": "loading", "at": 2}
        assert limit_s > 0
        while self.waited < self.silence:
            self.waited += 1
            yield {"kind": "alive", "at": 3, "ios": 0} if self.alive and self.waited % 10 == 0 else None


def silent_trial(tmp_path: Path, link: SilentLink, said: str, *, again: bool = False) -> dict[str, Any]:
    """The record of a trial of a fault of the bench, whose console says so much while it goes on."""
    run = read_run(plan_campaign(REQUEST, tmp_path))
    planned = next(one for one in turns_planned(run) if one.point == "host_reset")
    console = run.path / "console.log"
    console.write_text(PANIC.replace("an abort", "an earlier boot"), encoding="utf-8")
    trial = live_trial(run, planned, link, console=console, again=again)
    with console.open("a", encoding="utf-8") as file:
        file.write(said)
    return trial.run()


def test_a_bench_that_panics_ends_its_trial_at_once_with_the_panic_as_its_reason(tmp_path: Path) -> None:
    link = SilentLink(None)
    record = silent_trial(tmp_path, link, PANIC)
    assert (record["outcome"], link.waited) == ("failed", 20)
    assert record["reasons"][0] == "panic: [  9.1] Kernel panic - not syncing: an abort was asked for"
    assert any(what == "kernel" for _, what, _ in record["timeline"])


def test_a_panic_that_a_recorder_heard_ends_the_trial_of_a_bench_that_is_not_virtual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = read_run(plan_campaign(REQUEST, tmp_path))
    planned = next(one for one in turns_planned(run) if one.point == "host_reset")
    recording, link = Console("vbench").recording, SilentLink(None)
    recording.folder.mkdir(parents=True)
    recording.append(LineStamper().take(PANIC.replace("an abort", "an earlier boot").encode(), AT))
    trial = live_trial(run, planned, link, console=None)
    recording.append(LineStamper().take(PANIC.encode(), AT))
    record = trial.run()
    assert (record["outcome"], link.waited) == ("failed", 20)
    assert record["reasons"][0] == "panic: [  9.1] Kernel panic - not syncing: an abort was asked for"


def test_a_bench_that_answers_from_another_boot_went_down_by_itself(tmp_path: Path) -> None:
    record = silent_trial(tmp_path, SilentLink("boot-2"), "")
    assert (record["outcome"], record["reasons"][0].partition(": ")[0]) == ("failed", "bench down")


def test_a_bench_on_another_boot_for_the_first_time_may_have_been_reset_by_somebody(tmp_path: Path) -> None:
    with pytest.raises(TurnLostError, match="on boot boot-2, the trial began on boot-1") as lost:
        silent_trial(tmp_path, SilentLink("boot-2"), "", again=True)
    assert lost.value.rebooted


def test_a_bench_that_panics_has_failed_at_the_first_time(tmp_path: Path) -> None:
    assert silent_trial(tmp_path, SilentLink(None), PANIC, again=True)["outcome"] == "failed"


def test_a_bench_that_is_silent_and_not_known_to_be_down_is_waited_for(tmp_path: Path) -> None:
    link = SilentLink("boot-1")
    record = silent_trial(tmp_path, link, "")
    assert link.waited == 100
    assert not any(reason.startswith(("panic", "bench down", "hung: it stopped")) for reason in record["reasons"])


def test_a_program_that_tells_nothing_on_a_bench_that_answers_hangs(tmp_path: Path) -> None:
    link = SilentLink("boot-1", silence=400)
    record = silent_trial(tmp_path, link, "")
    # two minutes: the program says every five seconds that it goes on
    assert link.waited == 240
    assert record["reasons"][0] == "hung: the bench's program told nothing for 120 s"
    with pytest.raises(TurnLostError, match="told nothing"):
        silent_trial(tmp_path / "again", SilentLink("boot-1", silence=400), "", again=True)


def test_a_turn_that_waits_and_says_so_is_not_silent_and_that_is_no_line_of_it(tmp_path: Path) -> None:
    link = SilentLink("boot-1", silence=400, alive=True)
    record = silent_trial(tmp_path, link, "")
    assert link.waited == 400
    assert not any("told nothing" in reason for reason in record["reasons"])
    assert b"alive" not in gzip.decompress(next(tmp_path.rglob("*.stream.jsonl.gz")).read_bytes())


def brought_back(monkeypatch: pytest.MonkeyPatch, recovery: Recovery) -> list[dict[str, Any]]:
    """What is asked for when the bench of a silent link is brought back, which ends so."""
    asked: list[dict[str, Any]] = []

    def bring_back(*_: object, **words: Any) -> Recovery:
        asked.append(words)
        return recovery

    monkeypatch.setattr(live_turn_module, "bring_back", bring_back)
    return asked


def test_a_bench_that_hangs_is_brought_back_and_its_trial_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = brought_back(monkeypatch, Recovery("watchdog i6300ESB timer", "boot-2", 95.0))
    link = SilentLink(None)
    record = silent_trial(tmp_path, link, "", again=True)
    # thirty seconds without a line, and no answer
    assert (link.waited, [(words["hangs"], words["silent_s"]) for words in asked]) == (60, [(False, 30.0)])
    assert record["outcome"] == "failed"
    assert record["reasons"][0] == "hung: it stopped answering, ended by watchdog i6300ESB timer"


def test_a_bench_whose_network_came_back_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = brought_back(monkeypatch, Recovery("", "boot-1", 20.0))
    link = SilentLink(None)
    record = silent_trial(tmp_path, link, "")
    assert (link.waited, len(asked)) == (100, 1)
    assert not any(reason.startswith(("panic", "bench down", "hung: it stopped")) for reason in record["reasons"])


def test_a_bench_that_restarted_nobody_knows_why_may_have_been_reset_by_somebody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought_back(monkeypatch, Recovery("", "boot-2", 70.0))
    with pytest.raises(TurnLostError, match="on boot boot-2") as lost:
        silent_trial(tmp_path, SilentLink(None), "", again=True)
    assert lost.value.rebooted


class BrokenLink(SilentLink):
    """A bench whose program ends before it says anything."""

    def call(self, _command: str, *, data: bytes = b"", limit_s: float = 0.0) -> tuple[int, str]:
        assert data
        assert limit_s
        return 2, "the bench program did not start: ImportError: cannot import name 'main'"


def test_a_program_that_never_ran_is_told_with_what_it_wrote_and_not_waited_for(tmp_path: Path) -> None:
    link = BrokenLink("boot-1")
    record = silent_trial(tmp_path, link, "")
    assert (record["outcome"], link.waited) == ("void", 0)
    why = "the bench program did not start: ImportError: cannot import name 'main'"
    assert record["reasons"] == [f"the bench's program ended stopped: {why}"]


class RestartedLink(SilentLink):
    """A bench that goes down in its trial, and is slow to say what was left once it is back."""

    def __init__(self) -> None:
        super().__init__("boot-2")
        self.follows = 0

    def lines(self, path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        self.follows += 1
        if self.follows == 1:
            yield from super().lines(path, limit_s=limit_s)
            return
        for _ in range(25):
            yield None
        for turn in (1, 2):
            yield {"kind": "found", "at": 9 + turn, "turn": turn, "runs": [], "whole": True}
        yield {"kind": "end", "at": 13, "outcome": "done", "message": "", "ios": 0, "disks": {}, "boot_id": "boot-2"}


def test_a_panic_that_was_the_fault_is_not_told_as_one_of_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "own.suite.yml"
    suite.write_text("loads: {mine: {time: 1s}}\ntrials:\n  - {fault: bench_panic, load: mine}\n", encoding="utf-8")
    run = read_run(plan_campaign(replace(REQUEST, suite=str(suite), profile=None), tmp_path))
    planned, console = turns_planned(run)[0], tmp_path / "console.log"
    console.write_text("", encoding="utf-8")

    noted: list[str] = []
    monkeypatch.setattr(Console, "expect", lambda _, why, for_s: noted.append(f"{why}, {for_s > 0}"))
    monkeypatch.setattr(Console, "expect_no_longer", lambda _: noted.append("no longer"))

    def panic(reach: Reach) -> None:
        noted.append("panic")
        console.write_text(PANIC, encoding="utf-8")
        reach.tell("panicked", "it did")
        reach.tell("other_boot", "it started again")

    monkeypatch.setitem(live_trial_module.CONTROL_WAYS, planned.request["way"], panic)
    trial = live_trial(run, planned, RestartedLink(), console=console)
    record = trial.run()
    assert noted == [f"{planned.request['way']} of trial {planned.id}, True", "panic", "no longer"]
    assert not any(reason.startswith(("panic", "bench down")) for reason in record["reasons"])
    assert [seen for _, what, seen in record["timeline"] if what == "proof"] == [
        *("panicked: it did", "other_boot: it started again")
    ]


class CrashedLink(SilentLink):
    """A bench that panics by itself in its trial; `back` is the boot that it is found on then, None for none at all.

    The clock of the boot that follows begins anew.
    """

    def __init__(self, back: str | None) -> None:
        super().__init__("boot-1")
        self.back, self.follows, self.cuts, self.reset = back, 0, 0, False

    def cut(self) -> None:
        self.cuts += 1

    def press_reset(self, _places: object) -> None:
        self.reset, self.boot = True, "boot-3"

    def lines(self, path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        self.follows += 1
        if self.follows == 1:
            yield {"kind": "begin", "at": 61 * 10**9, "node": "/dev/sda", "touched": [], "wall": 0}
            yield {"kind": "loading", "at": 62 * 10**9}
            yield {"kind": "fault", "at": 63 * 10**9, "phase": "begin", "text": "kdump"}
            yield {"kind": "seen", "at": 64 * 10**9, "seen": "armed", "text": "it is"}
            self.boot = None
            for self.waited in range(1, 61):
                if self.waited == 41:
                    self.boot = self.back
                yield None
            return
        assert limit_s > 0
        assert path
        yield {"kind": "seen", "at": 9, "seen": "dumped", "text": "a dump"}
        for turn in (1, 2):
            yield {"kind": "found", "at": 9 + turn, "turn": turn, "runs": [], "whole": True}
        yield {"kind": "end", "at": 13, "outcome": "done", "message": "", "ios": 0, "disks": {}, "boot_id": "boot-2"}


def crash_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: CrashedLink) -> dict[str, Any]:
    drop, suite = tmp_path / "crash.yml", tmp_path / "own.suite.yml"
    drop.write_text("name: crash\nos: {cmdline: [crashkernel=192M]}\n", encoding="utf-8")
    suite.write_text("loads: {mine: {time: 1s}}\ntrials:\n  - {fault: crash_dump, load: mine}\n", encoding="utf-8")
    request = replace(REQUEST, candidate=str(drop), baseline="", suite=str(suite), profile=None)
    run = read_run(plan_campaign(request, tmp_path / "runs"))
    console = run.path / "console.log"
    console.write_text(PANIC, encoding="utf-8")
    monkeypatch.setattr(live_trial_module, "reset", link.press_reset)
    return live_trial(run, turns_planned(run)[0], link, console=console).run()


def test_a_bench_that_takes_itself_down_is_waited_for_and_asked_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []
    monkeypatch.setattr(live_trial_module, "install_package", lambda _link, name, _state, **_: installed.append(name))
    link = CrashedLink("boot-2")
    record = crash_trial(tmp_path, monkeypatch, link)
    assert installed == ["busybox", "makedumpfile"]
    proofs = [(at, seen) for at, what, seen in record["timeline"] if what == "proof"]
    assert [seen for _, seen in proofs] == [
        *("armed: it is", "other_boot: the bench is on boot boot-2, was on boot-1", "dumped: a dump")
    ]
    # the clock of the second boot is behind that of the first
    assert all(2 <= at < 60 for at, _ in proofs)
    assert not any("proven" in reason or reason.startswith("panic") for reason in record["reasons"])
    assert (link.cuts > 0, link.reset) == (True, False)


def test_a_crash_kernel_that_never_ends_is_ended_by_a_reset_and_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_trial_module, "install_package", lambda *_, **__: "")
    link = CrashedLink(None)
    record = crash_trial(tmp_path, monkeypatch, link)
    assert link.reset
    assert record["outcome"] == "void"
    assert "no other_boot" in record["reasons"][0]


def test_a_bench_without_the_packages_of_a_fault_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise ToolError("package busybox cannot be installed: no space left")

    monkeypatch.setattr(live_trial_module, "install_package", fail)
    link = CrashedLink("boot-2")
    record = crash_trial(tmp_path, monkeypatch, link)
    assert (record["outcome"], link.follows) == ("void", 0)
    assert "kdump: package busybox cannot be installed" in record["reasons"][0]
