# SPDX-License-Identifier: Apache-2.0
"""No fault, no program of others and no gate of trials passes by what was not seen."""

from typing import Any

import pytest

from storqual.judge.entry import VerdictEntry
from storqual.judge.outcome import run_outcome
from storqual.kinds.kind import COUNTED
from storqual.kinds.program import program_checks
from storqual.kinds.trial_checks import trial_checks
from tests.unit.storqual.kinds.test_program import record, turn_of
from tests.unit.storqual.kinds.test_trial_checks import ARMS, made, planned


def trials_of(**outcomes: list[str]) -> list[dict[str, Any]]:
    """Trials of two pairs with these outcomes of each arm; void ones have their reason."""
    return made(planned(2), **outcomes)


@pytest.mark.parametrize(
    "records",
    [
        [],
        trials_of(candidate=["void"] * 2, baseline=["void"] * 2),
        trials_of(candidate=["void"] * 2),
        trials_of()[:2],
    ],
    ids=["none", "void", "none of the candidate proven", "half of them"],
)
def test_no_fault_passes_without_its_trials(records: list[dict[str, Any]]) -> None:
    checks = list(trial_checks(planned(2), records, {"plan": {}}))
    assert checks
    assert {check["outcome"] for check in checks} <= {"ERROR", "INCONCLUSIVE"}


PROGRAMS = [turn_of(arm) for arm in ARMS]


def runs_of(*tests: list[list[str]], **fields: Any) -> list[dict[str, Any]]:
    """Records of the two runs of a program, the baseline's first."""
    return [record(one, listed, **fields) for one, listed in zip(PROGRAMS, tests, strict=False)]


@pytest.mark.parametrize(
    "records",
    [
        [],
        runs_of([["t", "passed", ""]]),
        runs_of([], []),
        runs_of([], [], unread_lines=215),
        runs_of([["t", "passed", ""]], [["t", "passed", ""]], problems=["told 2 tests, listed 1"]),
        runs_of([], [], outcome="void", reasons=["the bench did not answer"]),
    ],
    ids=["none", "baseline alone", "nothing told", "nothing understood", "contradicts itself", "void"],
)
def test_no_program_of_others_passes_without_results(records: list[dict[str, Any]]) -> None:
    checks = {check["id"]: check["outcome"] for check in program_checks(PROGRAMS, records, {})}
    assert checks["external.scsi"] in ("ERROR", "INCONCLUSIVE")
    assert any(entry in ("ERROR", "INCONCLUSIVE") for entry in checks.values())


@pytest.mark.parametrize("outcomes", [[], ["SKIPPED"], ["INCONCLUSIVE"], ["PASS", "INCONCLUSIVE"], ["PASS", "ERROR"]])
def test_no_gate_of_trials_passes_on_nothing(outcomes: list[str]) -> None:
    place: dict[str, Any] = {"id": "trials.x", "bench": "b", "adapter": "a", "point": None, "against": "check"}
    criteria = [VerdictEntry(**place, required=True, source=COUNTED, outcome=one, reason="") for one in outcomes]
    informative = [VerdictEntry(**place, required=False, source=COUNTED, outcome="PASS", reason="")]
    for listed in (criteria, [*criteria, *informative]):
        assert run_outcome(listed, [], holes=0, marginal_passes=True)[0] in ("ERROR", "INCONCLUSIVE")
