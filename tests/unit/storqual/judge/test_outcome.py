# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import date

import pytest

from storqual.inputs.policy import Waiver
from storqual.judge.entry import Entry
from storqual.judge.outcome import apply_waivers, run_outcome
from storqual.run.records import TRIALS


def outcome(*sources: str) -> str:
    """Of a run that was judged by passed checks alone; a source of '' is a point that was skipped."""
    criteria = [
        Entry(
            id="x",
            bench="b",
            adapter="a",
            point=None,
            required=True,
            against="check" if source else "baseline",
            source=source,
            outcome="PASS" if source else "SKIPPED",
            reason="",
        )
        for source in sources
    ]
    return run_outcome(criteria, [], holes=0, marginal_passes=True)[0]


def test_hand_written_checks_alone_are_no_pass() -> None:
    assert outcome("pytest", "") == "ERROR"
    assert outcome("robot") == "ERROR"


def test_what_a_campaign_of_trials_tells_of_itself_is() -> None:
    assert outcome(TRIALS, "pytest") == "PASS"


def entries(*outcomes: str) -> list[Entry]:
    """Required criteria against the baseline, one a point."""
    return [
        Entry(
            id="iops",
            bench="b",
            adapter="a",
            point=f"p{number}",
            required=True,
            against="baseline",
            source="",
            outcome=outcome,
            reason="",
        )
        for number, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(("takes", "outcome"), [(True, "MARGINAL"), (False, "FAIL")])
def test_a_marginal_pass_counts_as_the_gate_says(takes: bool, outcome: str) -> None:
    assert run_outcome(entries("PASS", "MARGINAL"), [], holes=0, marginal_passes=takes)[0] == outcome


def test_one_point_that_nobody_measured_is_no_pass() -> None:
    assert run_outcome(entries("PASS"), [], holes=1, marginal_passes=True)[0] == "INCONCLUSIVE"


@pytest.mark.parametrize(("day", "counts"), [(30, True), (31, False)])
def test_a_waiver_counts_through_its_last_day(day: int, counts: bool) -> None:
    failed = entries("FAIL")
    waiver = Waiver(
        drop="new",
        suite="adapter",
        criterion="iops",
        owner="qa",
        reason="known",
        reference="HBA-1",
        expiry=date(2026, 12, 30),
    )
    problems = apply_waivers(failed, [waiver], drop="new", suite="adapter", today=date(2026, 12, day))
    assert bool(failed[0].waiver) is counts
    assert [problem.kind for problem in problems] == ([] if counts else ["expired"])
