# SPDX-License-Identifier: Apache-2.0
"""A session makes what has no record yet, once, and says when the bench must be provisioned before the rest."""

from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.bench.follow import ConnectionLostError
from storqual.campaign import Provision, RunBatch
from storqual.campaign.next_step import next_command
from storqual.run import append_event, iter_events, read_run
from storqual.turns import batch
from storqual.turns.bring_back import BenchHere
from storqual.turns.live_turn import TurnLostError
from storqual_core.kit.lease import LeaseLostError
from tests.support.make_lab import lab_hosts, make_lab
from tests.support.turn_records import REQUEST, Faked, drive, plan_campaign, record_by_hand, turns_planned

pytestmark = pytest.mark.slow


class FakeConnection(Faked):
    """A bench that says its boot and its kernel."""

    cuts = 0

    def run(self, _command: str, *, limit_s: float = 0.0) -> str:
        return f"boot-1\n{limit_s}\n"

    def cut(self) -> None:
        self.cuts += 1


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return plan_campaign(REQUEST, tmp_path)


may: list[bool] = []
"""Of each trial, whether it may be made again."""


def make(
    run: Path, monkeypatch: pytest.MonkeyPatch, reasons: dict[int, list[str]], virtual: Any = None
) -> tuple[list[str], list[str], list[Any]]:
    """Run session s01 with trials that end as told by their number; sessions begun, what was made, resets."""
    made: list[str] = []
    may.clear()
    resets: list[Any] = []

    class FakeTrial:
        def __init__(self, _run: Path, _bench: Any, _batch: Any, turn: Any, **given: Any) -> None:
            self.id = turn["id"]
            may.append(given["again"])

        def run(self) -> dict[str, Any]:
            made.append(self.id)
            listed = reasons.get(len(made), [])
            if listed and listed[0].startswith("cut short: "):
                raise TurnLostError(listed[0], rebooted="boot" in listed[0])
            number = [one.id for one in turns_planned(run)].index(self.id)
            return record_by_hand(run, number, outcome="failed" if listed else "passed", reasons=listed)

    monkeypatch.setattr(batch, "LiveTrial", FakeTrial)
    monkeypatch.setattr(batch, "settle", lambda *_, **__: None)
    monkeypatch.setattr(batch, "reset", lambda _places: resets.append("reset"))
    monkeypatch.setattr(batch, "bring_back", lambda *_, **words: resets.append(words["reason"]))
    places = cast("Any", SimpleNamespace(console=run / "console.log") if virtual else None)
    here = BenchHere("vbench", cast("Any", FakeConnection()), "python3", "/s", "/s/core.pyz", places)
    return drive(run, here, sessions=["s01"]), made, resets


def planned_in(run: Path, session: str) -> list[str]:
    return [one.id for one in turns_planned(run) if one.session == session]


def test_a_session_that_was_made_is_not_made_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = planned_in(run, "s01")
    assert make(run, monkeypatch, {}) == (["s01"], planned, [])
    assert make(run, monkeypatch, {}) == ([], [], [])
    assert [event.text("turn") for event in iter_events(run) if event.kind == "turn_finished"] == planned


HANG = "hung: an I/O did not end"


@pytest.mark.parametrize("virtual", ["places", ""])
@pytest.mark.parametrize("reason", [HANG, "panic: Kernel panic", "bench down: x", "not recovered: y"])
def test_a_bench_on_which_nothing_more_can_be_tried_is_set_up_again_before_the_rest(
    run: Path, monkeypatch: pytest.MonkeyPatch, reason: str, virtual: str
) -> None:
    """What hangs is brought back also without a virtual switch; what is broken is reset by it."""
    done = [reason] if reason.startswith(("hung", "panic")) else ["reset"] if virtual else []
    assert make(run, monkeypatch, {2: [reason]}, virtual) == (["s01", "s01.2"], planned_in(run, "s01"), done)


def test_what_a_panic_wrote_before_the_bench_was_missed_is_looked_at(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console, marks = run / "console.log", list[int]()
    console.write_text("it booted\n", encoding="utf-8")

    def panics(*_: Any) -> None:
        console.write_text("it booted\nKernel panic\n", encoding="utf-8")
        raise TurnLostError("no answer", rebooted=False)

    monkeypatch.setattr(batch, "_trial", panics)
    monkeypatch.setattr(batch, "settle", lambda *_, **__: None)
    monkeypatch.setattr(batch, "ensure_answer", lambda *_, **words: marks.append(words["console_mark"]))
    places = cast("Any", SimpleNamespace(console=console))
    here = BenchHere("vbench", cast("Any", FakeConnection()), "python3", "/s", "/s/core.pyz", places)
    assert batch.run_streamed(run, "s01-b001", here, say=print)[0] == "lost"
    assert marks == [len("it booted\n")]


def test_a_void_turn_of_who_has_lost_the_bench_is_not_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Taken(FakeConnection):
        def run(self, command: str, *, limit_s: float = 0.0) -> str:
            if command == "true":
                raise LeaseLostError("somebody else has it")
            return super().run(command, limit_s=limit_s)

    void = record_by_hand(run, 0, outcome="void")
    monkeypatch.setattr(batch, "_trial", lambda *_: (void, False, "void"))
    here = BenchHere("vbench", cast("Any", Taken()), "python3", "/s", "/s/core.pyz", None)
    with pytest.raises(LeaseLostError):
        batch.run_streamed(run, "s01-b001", here, say=print)
    assert not [event for event in iter_events(run) if event.kind == "turn_finished"]


def test_a_failure_that_leaves_the_bench_whole_resets_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = {2: ["lost: 1 sectors at 4096"]}
    assert make(run, monkeypatch, lost, "places") == (["s01"], planned_in(run, "s01"), [])


def test_a_trial_that_was_cut_short_has_no_record_and_is_made_again_after_the_bench_was_set_up(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *rest = planned_in(run, "s01")
    sessions, made, _ = make(run, monkeypatch, {2: ["cut short: another boot"]})
    assert (sessions, made) == (["s01", "s01.2"], [first, second, second, *rest])
    (lost,) = (event.fields["lost"] for event in iter_events(run) if event.fields.get("lost"))
    assert lost == {"turn": second, "rebooted": True}


def test_what_is_cut_short_too_often_is_judged_as_it_is(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times: no limit of the campaign on tries of a session comes before."""
    cut = {number: ["cut short: no answer"] for number in range(1, 5)}
    sessions, made, _ = make(run, monkeypatch, cut)
    assert may[:5] == [True, True, True, True, False]
    assert made[4:] == planned_in(run, "s01")
    assert sessions == ["s01", "s01.2", "s01.3", "s01.4", "s01.5"]


def test_a_second_reset_in_one_trial_is_judged_as_it_is(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(run, monkeypatch, {1: ["cut short: another boot"]})
    assert may[:2] == [True, False]


def test_a_bench_that_never_answers_ends_the_campaign_and_not_its_trial(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: Any, **__: Any) -> None:
        raise ConnectionLostError("vbench did not answer")

    monkeypatch.setattr(batch, "_trial", silent)
    with pytest.raises(ConnectionLostError):
        make(run, monkeypatch, {})
    assert not read_run(run).recorded
    assert sum(bool(event.fields.get("lost")) for event in iter_events(run)) == 4


def test_a_batch_whose_campaign_was_killed_is_lost_and_its_turn_is_made_in_another_session(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        # so often that a limit on tries would have ended the campaign
        step = next_command(run, "vbench", boot_id="boot-1")
        while isinstance(step, Provision):
            fields = {"bench": "vbench", "session": step.session.id, "boot_id": "boot-1"}
            append_event(run, "session_started", fields)
            step = next_command(run, "vbench", boot_id="boot-1")
        assert isinstance(step, RunBatch)
        append_event(run, "block_started", {"bench": "vbench", "session": step.session, "block": step.batch})
        sessions, made, _ = make(run, monkeypatch, {1: ["cut short: x"]} if step.session == "s01" else {})
        if made:
            break
    assert made[-1:] == planned_in(run, "s01")[-1:]
    assert sessions


def test_two_processes_do_not_run_one_batch(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(run, monkeypatch, {})
    here = BenchHere("vbench", cast("Any", FakeConnection()), "python3", "/s", "/s/core.pyz", None)
    assert batch.run_streamed(run, "s01-b001", here, say=print) == ("done", "")
    assert len([event for event in iter_events(run) if event.text("block") == "s01-b001"]) == 3


def test_benches_of_one_run_work_at_the_same_time_and_two_processes_on_one_bench_do_not(tmp_path: Path) -> None:
    hosts = {**lab_hosts({"sym": 1}, bench="b1"), **lab_hosts({"sym": 1}, bench="b2")}
    suite = "loads: {mine: {region: 2MiB}}\ntrials: [{fault: device_reset, load: mine}]\n"
    path = plan_campaign(make_lab(tmp_path, hosts=hosts, suite=suite), tmp_path / "runs")
    said: list[str] = []
    waiting = Thread(target=lambda: _hold(path, "b1", said), daemon=True)
    with batch._alone(path, "b1", said.append), batch._alone(path, "b2", said.append):
        assert said == []
        waiting.start()
        waiting.join(timeout=1)
        assert said == [f"{path.name}: another process runs turns on b1; waiting for its end"]
    waiting.join(timeout=10)
    assert said[1:] == ["held"]


def _hold(path: Path, bench: str, said: list[str]) -> None:
    with batch._alone(path, bench, said.append):
        said.append("held")
