# SPDX-License-Identifier: Apache-2.0
"""What an undecided criterion would take, in bench time: people plan in minutes, not in pairs."""

from __future__ import annotations

from dataclasses import replace

from storqual.campaign.effort import effort_of
from storqual.judge.question import Judged, Question
from storqual.store import Run
from storqual_core.quantities import format_duration

__all__ = ["with_time_needed"]


def with_time_needed(run: Run, question: Question, judged: Judged) -> Judged:
    """An undecided answer with the time that its further pairs or sessions take on that bench, where known."""
    if judged.outcome != "INCONCLUSIVE" or not judged.wanted:
        return judged
    effort = effort_of(run, question.point.bench)
    if effort is None:
        return judged
    needed = format_duration(judged.wanted * effort.unit_seconds())
    return replace(judged, reason=f"{judged.reason} ({needed} of bench time)")
