# SPDX-License-Identifier: Apache-2.0
"""What speaks against a number that would pass: shared boots, drives that still changed, an old baseline."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.judge import evidence
from storqual.judge.entry import stale_baseline
from storqual.judge.question import Judged


def run_with(*boots: tuple[str, str], change: str = "reboot") -> Any:
    """A run whose sessions began on these boots, as (session, boot id)."""
    events = [
        SimpleNamespace(
            kind="session_started",
            bench="b1",
            text={"session": session, "boot_id": boot}.__getitem__,
        )
        for session, boot in boots
    ]
    sessions = [SimpleNamespace(bench="b1", id=session, change=change) for session, _ in boots]
    return SimpleNamespace(sessions=sessions, events=events)


def test_two_sessions_on_one_boot_are_told_where_a_drop_costs_one() -> None:
    told = evidence._shared_boots(run_with(("s01", "x"), ("s02", "x"), ("s03", "y")))
    assert told == ["b1: sessions s01, s02 ran in one boot, so they are one session"]
    assert evidence._shared_boots(run_with(("s01", "x"), ("s02", "y"))) == []
    assert evidence._shared_boots(run_with(("s01", "x"), ("s02", "x"), change="none")) == []


@pytest.mark.parametrize("outcome", ["PASS", "MARGINAL"])
def test_a_pass_on_drives_that_still_changed_decides_nothing(outcome: str) -> None:
    question: Any = SimpleNamespace(
        point=SimpleNamespace(bench="b1"), criterion=SimpleNamespace(against="absolute"), by_session=False
    )
    found = evidence.with_steadiness(question, Judged(outcome, "as asked"), {"b1": "the drives still changed"})
    assert (found.outcome, found.reason) == ("INCONCLUSIVE", "the drives still changed; as asked")
    alternated: Any = SimpleNamespace(
        point=question.point, criterion=SimpleNamespace(against="baseline"), by_session=False
    )
    assert evidence.with_steadiness(alternated, Judged(outcome, ""), {"b1": "x"}).outcome == outcome
    assert evidence.with_steadiness(question, Judged("FAIL", ""), {"b1": "x"}).outcome == "FAIL"


def test_a_baseline_is_as_old_as_its_oldest_launch() -> None:
    launches = cast("Any", [SimpleNamespace(start=f"2026-10-{day:02}T10:00:00+00:00") for day in (20, 1, 25)])
    moment = datetime(2026, 10, 26, 10, tzinfo=UTC)
    told = stale_baseline(launches, moment, 20)
    assert told == "the baseline was measured on 2026-10-01; the gate accepts a baseline of at most 20 days"
    assert stale_baseline(launches, moment, 25) == ""
    assert stale_baseline(launches, moment, None) == ""
