# SPDX-License-Identifier: Apache-2.0
"""A campaign that goes on: what it still needs, and what fresh launches make of a fail."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.interim import needs
from storqual.judge.verdict import judge_run
from storqual.run import read_run
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

POINT = POINTS[1]


def sequential(tmp_path: Path, *, fresh: int = 0, **shape: Any) -> Path:
    """A run that may stop at any look; its last `fresh` sessions confirm a fail."""
    path = make_run(tmp_path, **{"noise": 0.004, "sessions": 12, "launches": 1, **shape})
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    document["plan"]["looks"] = "every"
    for session in document["plan"]["sessions"][len(document["plan"]["sessions"]) - fresh :]:
        session["purpose"] = "confirm"
    (path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    return path


def change(path: Path, factor: float, sessions: set[str]) -> None:
    """Make the candidate's reads at POINT faster or slower in some sessions."""
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["arm"] == "candidate" and line["point"] == POINT and line["session"] in sessions:
            line["primitives"]["read_ios"] = int(factor * line["primitives"]["read_ios"])
            line["series"]["iops"] = [factor * value for value in line["series"]["iops"]]
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def entry_at(path: Path, adapter: str) -> dict[str, Any]:
    entries = judge_run(path)["criteria"]
    return next(e for e in entries if (e["id"], e["adapter"], e["point"]) == ("iops", adapter, POINT))


def outcome_at(path: Path, adapter: str) -> tuple[str, str]:
    entry = entry_at(path, adapter)
    return entry["outcome"], entry["reason"]


LATE = {f"s{number:02d}" for number in range(7, 13)}
EARLY = {f"s{number:02d}" for number in range(1, 7)}


def test_two_fails_make_a_fail(tmp_path: Path) -> None:
    path = sequential(tmp_path, fresh=6)
    change(path, 0.8, EARLY | LATE)
    outcome, reason = outcome_at(path, "sym")
    assert outcome == "FAIL"
    assert "confirmed on fresh launches" in reason


def test_fresh_launches_have_a_shift_and_an_interval_of_their_own(tmp_path: Path) -> None:
    """A fifth was lost at first, a tenth when measured afresh: neither figure is mixed into the other."""
    path = sequential(tmp_path, fresh=6)
    change(path, 0.8, EARLY)
    change(path, 0.9, LATE)
    first = entry_at(path, "sym")
    fresh = first["confirmation"]
    assert (first["outcome"], fresh["outcome"]) == ("FAIL", "FAIL")
    assert (round(first["shift_percent"]), round(fresh["shift_percent"])) == (-20, -10)
    assert first["ci95_percent"][0] < -20 < first["ci95_percent"][1] < -15
    assert -15 < fresh["ci95_percent"][0] < -10 < fresh["ci95_percent"][1]
    assert fresh["samples"] == {"candidate": 3, "baseline": 3}
    other_entries = [
        entry for entry in judge_run(path)["criteria"] if entry["id"] == "iops" and entry["point"] != POINT
    ]
    assert {str(entry["confirmation"]) for entry in other_entries} == {"None"}


def test_a_fail_and_a_pass_decide_nothing(tmp_path: Path) -> None:
    path = sequential(tmp_path, fresh=6)
    change(path, 0.8, EARLY)
    outcome, reason = outcome_at(path, "sym")
    assert outcome == "INCONCLUSIVE"
    assert "passes" in reason


def test_fresh_launches_do_not_dilute_the_first_ones(tmp_path: Path) -> None:
    path = sequential(tmp_path, fresh=6)
    change(path, 0.8, LATE)
    assert outcome_at(path, "sym")[0] == "PASS"


def test_a_quiet_unchanged_campaign_needs_nothing(tmp_path: Path) -> None:
    assert needs(read_run(sequential(tmp_path))) == []


def test_a_fail_needs_confirmation_and_a_noisy_point_more(tmp_path: Path) -> None:
    path = sequential(tmp_path / "a", effect={f"sym/{POINT}": -0.2})
    confirm = needs(read_run(path))
    assert [(need.what, need.point.adapter, need.point.point) for need in confirm] == [("confirm", "sym", POINT)]
    noisy = needs(read_run(sequential(tmp_path / "b", noise=0.12)))
    assert {need.what for need in noisy} == {"more"}
    assert all(need.units >= 1 and need.unit == "session" for need in noisy)
    assert [need.units for need in noisy] == sorted(need.units for need in noisy)


def test_a_confirmed_fail_needs_nothing_more(tmp_path: Path) -> None:
    path = sequential(tmp_path, fresh=6)
    change(path, 0.8, EARLY | LATE)
    assert [need for need in needs(read_run(path)) if need.what == "confirm"] == []


@pytest.mark.parametrize("status", ["refused", "io_error"])
def test_what_is_broken_is_not_measured_again(tmp_path: Path, status: str) -> None:
    """More of the same would not help."""
    path = sequential(tmp_path, statuses={f"sym/{POINT}": status})
    assert (f"sym/{POINT}") not in {f"{need.point.adapter}/{need.point.point}" for need in needs(read_run(path))}


def test_a_marginal_pass_is_worth_what_is_left_of_a_budget(tmp_path: Path) -> None:
    """A loss between the limits, not shown to be beyond the acceptable one: as many launches again may tell."""
    path = sequential(tmp_path, noise=0.02, effect=-0.018)
    required = [entry for entry in judge_run(path)["criteria"] if entry["required"]]
    marginal = {(entry["adapter"], entry["point"]) for entry in required if entry["outcome"] == "MARGINAL"}
    marginal_needs = [need for need in needs(read_run(path)) if need.what == "marginal"]
    assert 0 < len(marginal) < len(required)
    assert {(need.point.adapter, need.point.point) for need in marginal_needs} == marginal
    assert {need.units for need in marginal_needs} == {6}


def test_a_loss_that_is_shown_to_lie_between_the_limits_is_settled(tmp_path: Path) -> None:
    """Measured to a tenth of a percent: no launch could make it a plain pass."""
    path = sequential(tmp_path, noise=0.0005, effect={f"sym/{POINT}": -0.05})
    outcome, reason = outcome_at(path, "sym")
    assert outcome == "MARGINAL"
    assert "probably more than the acceptable 2 % is lost, but the unacceptable loss (8 %) is excluded" in reason
    assert needs(read_run(path)) == []
