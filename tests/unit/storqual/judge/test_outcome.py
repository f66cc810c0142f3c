# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from storqual.judge.entry import Entry
from storqual.judge.outcome import TRIALS, run_outcome


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
