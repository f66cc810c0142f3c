# SPDX-License-Identifier: Apache-2.0
"""Tests of programs in both arms: what differs, what repeats decide, and that nothing that was not run passes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.kinds.kind import PlannedTurn
from storqual.kinds.program import DIFFERENCES, compare_tests, program_checks, show_programs
from storqual_core.kit.errors import BadInputError


def campaign(**runs: list[str]) -> tuple[list[PlannedTurn], list[dict[str, Any]]]:
    """One test `t` with these outcomes per arm, one a repeat; `none` where the run does not tell of it."""
    planned, records = [], []
    for arm, outcomes in runs.items():
        for number, outcome in enumerate(outcomes, start=1):
            turn = turn_of(arm, number)
            planned.append(turn)
            records.append(record(turn, [] if outcome == "none" else [["t", outcome, ""]]))
    return planned, records


def turn_of(arm: str, number: int = 1) -> PlannedTurn:
    ident = f"scsi.fusion.{number}.{arm}"
    return PlannedTurn("r", "b", "s01", "program", ident, "fusion", arm, "scsi", number, "d", {"words": ["t"]})


def record(planned: PlannedTurn, tests: list[list[str]], **fields: Any) -> dict[str, Any]:
    hung = any(outcome == "hung" for _, outcome, _ in tests)
    made = {"outcome": "hung" if hung else "ended", "reasons": [], "problems": [], "unread_lines": 0, "recovered": ""}
    return {**planned.head(), "program": "scsi", "seconds": 1.0, "notes": [], "tests": tests, **made, **fields}


BOTH = json.loads(Path(__file__).with_name("both_arms.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("baseline", "candidate", "kind", "outcome"), BOTH)
def test_both_arms(baseline: list[str], candidate: list[str], kind: str, outcome: str) -> None:
    (test,) = compare_tests(*campaign(baseline=baseline, candidate=candidate))
    assert (test.kind, test.outcome) == (kind, outcome)


def test_an_arm_of_no_name_decides_nothing() -> None:
    (test,) = compare_tests(*campaign(x=["passed"], candidate=["passed"]))
    assert (test.kind, test.outcome) == ("missing", "INCONCLUSIVE")


@pytest.mark.parametrize(
    ("runs", "kind", "outcome"),
    [
        (["passed"], "same", "PASS"),
        (["failed"], "failed", "FAIL"),
        (["hung"], "hung", "FAIL"),
        (["passed", "failed"], "flaky", "FAIL"),
        (["skipped"], "skipped", "SKIPPED"),
        (["missing"], "missing", "INCONCLUSIVE"),
    ],
)
def test_one_arm_alone(runs: list[str], kind: str, outcome: str) -> None:
    (test,) = compare_tests(*campaign(candidate=runs))
    assert (test.kind, test.outcome) == (kind, outcome)


RUNS = st.lists(st.sampled_from(["passed", "failed", "hung", "skipped", "missing", "none"]), min_size=1, max_size=6)


@given(baseline=RUNS, candidate=RUNS)
def test_no_pass_without_a_result_of_every_repeat_and_no_regression_of_what_passed(
    baseline: list[str], candidate: list[str]
) -> None:
    for test in compare_tests(*campaign(baseline=baseline, candidate=candidate)):
        assert test.kind in DIFFERENCES
        incomplete = {"missing", "none"} & {*baseline, *candidate}
        assert not (test.outcome == "PASS" and incomplete)
        if test.outcome == "FAIL":
            assert set(candidate) & {"failed", "hung"}
        if set(baseline) == {"passed"} and set(candidate) <= {"failed", "hung"} and len(set(candidate)) == 1:
            assert test.kind == "regression"


def test_a_hang_in_both_arms_is_a_criterion_and_what_comes_after_it_is_told() -> None:
    planned, records = campaign(baseline=["hung"], candidate=["hung"])
    for record in records:
        record["recovered"] = "its reset button was pressed"
    whole, test = program_checks(planned, records, {})
    assert (whole["id"], whole["outcome"]) == ("external.scsi", "PASS")
    assert "2 hung" in whole["reason"]
    assert "at t: its reset button was pressed; what comes after it was not tried" in whole["reason"]
    assert (test["id"], test["outcome"], test["adapter"]) == ("external.scsi/t", "PASS", "fusion")
    assert show_programs(planned, records, {}).criterion_ids == {test["id"]}


@pytest.mark.parametrize(
    ("change", "outcome", "reason"),
    [
        ({"problems": ["1..N: the text counts 3, 2 were read"]}, "ERROR", "contradicts itself: 1..N"),
        (
            {"outcome": "void", "reasons": ["it could not be run: no program"], "tests": []},
            "ERROR",
            "could not be run",
        ),
        ({"unread_lines": 3}, "PASS", "3 lines of output were not understood and are kept"),
    ],
)
def test_a_program_that_cannot_be_believed_is_an_error(change: dict[str, Any], outcome: str, reason: str) -> None:
    planned, records = campaign(baseline=["passed"], candidate=["passed"])
    records[1] |= change
    whole, *_ = program_checks(planned, records, {})
    assert whole["outcome"] == outcome
    assert reason in whole["reason"]


def test_a_run_that_was_planned_and_not_made_is_undecided() -> None:
    planned, records = campaign(baseline=["passed"], candidate=["passed"])
    whole, test = program_checks(planned, records[:1], {})
    assert (whole["outcome"], whole["reason"]) == ("INCONCLUSIVE", "1 of 2 runs were not made")
    assert test["outcome"] == "INCONCLUSIVE"


@pytest.mark.parametrize("name", ["../mine", "/mine", "a/../mine", "../1", "/1", ".mine", ""])
def test_files_that_are_called_by_a_turn_are_in_its_run(name: str) -> None:
    turn = {**turn_of("candidate").head(), "drives": ["d"], "request": {}}
    with pytest.raises(BadInputError, match="expected a name"):
        PlannedTurn.of(turn | {"run": "r"}, {**turn, "id": name})
