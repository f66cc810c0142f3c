# SPDX-License-Identifier: Apache-2.0
"""A session makes what has no record yet, once, and says when the bench must be provisioned before the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from storqual.robustness.store import read_trials
from storqual.run import iter_events, read_run
from storqual.trials import session
from storqual.trials.campaign import plan_campaign
from storqual.trials.link import LinkError
from storqual.trials.one import TrialLostError
from tests.unit.storqual.trials.test_campaign import REQUEST, record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


class FakeLink:
    """A bench that says its boot and its kernel."""

    cuts = 0

    def run(self, _command: str) -> str:
        return "boot-1\n6.1.0-56\n"

    def cut(self) -> None:
        self.cuts += 1


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return plan_campaign(REQUEST, tmp_path)


may: list[bool] = []
"""Of each trial, whether it may be made again."""


def make(
    run: Path, monkeypatch: pytest.MonkeyPatch, reasons: dict[int, list[str]], virtual: str = ""
) -> tuple[bool, list[str], list[Any]]:
    """Run session s01 with trials that end as told by their number; whether it is done, what was made, resets."""
    made: list[str] = []
    may.clear()
    resets: list[Any] = []

    class FakeTrial:
        def __init__(self, _bench: Any, _suite: Any, planned: Any, _folder: Path, _run: str, *, again: bool) -> None:
            self.planned = planned
            may.append(again)

        def run(self) -> dict[str, Any]:
            made.append(self.planned.id)
            listed = reasons.get(len(made), [])
            if listed and listed[0].startswith("cut short: "):
                raise TrialLostError(listed[0], rebooted="boot" in listed[0])
            number = [one.id for one in read_trials(read_run(run)).planned].index(self.planned.id)
            return record(read_run(run), number, outcome="failed" if listed else "passed", reasons=listed)

    monkeypatch.setattr(session, "LiveTrial", FakeTrial)
    monkeypatch.setattr(session, "send_program", lambda *_: "/var/lib/storqual/bin/core")
    monkeypatch.setattr(session, "reset", resets.append)
    done = session.run_session(
        run, "vbench", "s01", cast("Any", FakeLink()), python="python3", virtual=virtual, say=lambda _text: None
    )
    return done, made, resets


def test_a_session_that_was_made_is_not_made_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = [one.id for one in read_trials(read_run(run)).planned if one.session == "s01"]
    assert make(run, monkeypatch, {}) == (True, planned, [])
    assert make(run, monkeypatch, {}) == (True, [], [])
    finished = [event.text("trial") for event in iter_events(run) if event.kind == "trial_finished"]
    assert finished == planned


@pytest.mark.parametrize(
    "reason",
    ["hung: an I/O did not end", "panic: Kernel panic", "bench down: x", "not recovered: y", "drive missing: z"],
)
def test_a_bench_on_which_nothing_more_can_be_tried_is_reset_and_the_rest_waits_for_it_to_be_provisioned(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reason: str
) -> None:
    planned = [one.id for one in read_trials(read_run(run)).planned if one.session == "s01"]
    done, made, resets = make(run, monkeypatch, {2: [reason]}, str(tmp_path))
    assert (done, made, len(resets)) == (False, planned[:2], 1)
    assert make(run, monkeypatch, {}) == (True, planned[2:], [])


def test_a_failure_that_leaves_the_bench_whole_resets_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planned = [one.id for one in read_trials(read_run(run)).planned if one.session == "s01"]
    assert make(run, monkeypatch, {2: ["lost: 1 sectors at 4096"]}, str(tmp_path)) == (True, planned, [])


def test_a_trial_that_was_cut_short_has_no_record_and_is_made_again_after_the_bench_was_set_up(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = [one.id for one in read_trials(read_run(run)).planned if one.session == "s01"]
    assert make(run, monkeypatch, {2: ["cut short: another boot"]})[:2] == (False, planned[:2])
    (lost,) = (event for event in iter_events(run) if event.kind == "trial_lost")
    assert (lost.text("trial"), lost.fields["rebooted"]) == (planned[1], True)
    assert make(run, monkeypatch, {})[:2] == (True, planned[1:])


def test_what_is_cut_short_too_often_is_judged_as_it_is(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        make(run, monkeypatch, {1: ["cut short: no answer"]})
        assert may == [True]
    make(run, monkeypatch, {1: ["cut short: no answer"]})
    assert may == [False]


def test_a_second_reset_in_one_trial_is_judged_as_it_is(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(run, monkeypatch, {1: ["cut short: another boot"]})
    make(run, monkeypatch, {2: ["cut short: another boot"]})
    assert may == [False, True]


def test_a_bench_that_does_not_answer_leaves_the_session_to_be_gone_on_with(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_self: FakeLink, _command: str) -> str:
        raise LinkError("vbench did not answer")

    monkeypatch.setattr(FakeLink, "run", silent)
    assert make(run, monkeypatch, {}) == (False, [], [])
