# SPDX-License-Identifier: Apache-2.0
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.inputs.policy import Gate, Waiver
from storqual.judge.entry import VerdictEntry
from storqual.judge.outcome import apply_waivers, run_outcome
from storqual.judge.question import required_by
from storqual.kinds.kind import COUNTED


def outcome(*sources: str) -> str:
    """Of a run that was judged by passed checks alone; a source of '' is a point that was skipped."""
    criteria = [
        VerdictEntry(
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
    assert outcome(COUNTED, "pytest") == "PASS"


def entries(*outcomes: str) -> list[VerdictEntry]:
    return [
        VerdictEntry(
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


KNOWN: dict[str, Any] = {"owner": "qa", "reason": "known", "reference": "HBA-1", "expiry": date(2026, 12, 30)}


def test_a_waiver_of_points_covers_no_check_that_has_none() -> None:
    fields: dict[str, Any] = {"bench": None, "adapter": None, "point": None, "source": "pytest", "reason": ""}
    failed = VerdictEntry(id="x", against="check", required=True, outcome="FAIL", **fields)
    (problem,) = apply_waivers(
        [failed], [Waiver(criterion="x", point="N*", **KNOWN)], drop="", suite="", today=date(2026, 12, 1)
    )
    assert (problem.kind, failed.waiver) == ("unused", None)


@pytest.mark.parametrize(("day", "counts"), [(30, True), (31, False)])
def test_a_waiver_counts_through_its_last_day(day: int, counts: bool) -> None:
    failed = entries("FAIL")
    waiver = Waiver(drop="new", suite="adapter", criterion="iops", **KNOWN)
    problems = apply_waivers(failed, [waiver], drop="new", suite="adapter", today=date(2026, 12, day))
    assert bool(failed[0].waiver) is counts
    assert [problem.kind for problem in problems] == ([] if counts else ["expired"])


def accepts(max_loss: float | None, **fields: Any) -> bool:
    """Whether a waiver with `max_loss` accepts this failure; what it does not accept, it must say."""
    entry_fields: dict[str, Any] = {"against": "absolute", "source": "", "reason": "", **fields}
    failed = VerdictEntry(id="x", bench="b", adapter="a", point="p", required=True, outcome="FAIL", **entry_fields)
    most = None if max_loss is None else f"{100 * max_loss:.6f}%"
    waiver = Waiver(criterion="x", max_loss=most, **KNOWN)
    problems = apply_waivers([failed], [waiver], drop="new", suite="s", today=date(2026, 12, 1))
    assert [problem.kind for problem in problems] == ([] if failed.waiver else ["loss"])
    passes = run_outcome([failed], [], holes=0, marginal_passes=True)[0] in ("PASS", "ERROR")
    assert passes is (failed.waiver is not None)
    return failed.waiver is not None


@pytest.mark.parametrize("against", ["absolute", "published", "product"])
@given(loss=st.floats(0.0001, 1000), most=st.floats(0, 1000), limit=st.floats(1e-3, 1e9), floor=st.booleans())
def test_a_loss_beyond_a_limit_is_held_to_max_loss(
    against: str, loss: float, most: float, limit: float, floor: bool
) -> None:
    value = limit * (1 - loss) if floor else limit * (1 + loss)
    if abs(loss - most) > 1e-5:
        fields: dict[str, Any] = {"against": against, "candidate": value, "reference": limit}
        assert accepts(most, better="higher" if floor else "lower", **fields) is (loss <= most)


@pytest.mark.parametrize("against", ["baseline", "peers", "scaling"])
@given(loss=st.floats(0, 1000), most=st.floats(0, 1000))
def test_a_loss_between_arms_or_adapters_is_held_to_max_loss(against: str, loss: float, most: float) -> None:
    if abs(loss - most) > 1e-5:
        assert accepts(most, against=against, shift_percent=-100 * loss) is (loss <= most)


@pytest.mark.parametrize(
    "fields",
    [
        {"candidate": 3.0, "reference": 0.0},
        {"candidate": None, "reference": 5.0},
        {"candidate": 5.0, "reference": None},
        {"against": "check"},
        {"against": "check", "source": COUNTED},
        {"against": "baseline", "candidate": 3.0, "reference": 0.0, "unit": "1/TB"},
        {"against": "peers", "candidate": 3.0, "reference": 5.0},
    ],
)
def test_max_loss_covers_nothing_that_has_no_loss_in_percent(fields: dict[str, Any]) -> None:
    assert not accepts(1000.0, **fields)
    assert accepts(None, **fields)


def test_brackets_are_part_of_the_id_of_a_check() -> None:
    """A gate that requires `test_x.py::test_y[1]` means that check, and not `test_x.py::test_y1`."""
    gate = Gate(required=("test_x.py::test_y[1]", "test_z.py::*"))
    named = ("test_x.py::test_y[1]", "test_x.py::test_y1", "test_z.py::test_y[1]")
    assert [required_by(gate, name) for name in named] == [True, None, True]
