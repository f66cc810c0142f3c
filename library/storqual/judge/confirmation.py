# SPDX-License-Identifier: Apache-2.0
"""A fail is measured afresh before it counts: two fails are a FAIL, a fail and a pass decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from storqual.judge.against_baseline import Histories
from storqual.judge.numbers import percent
from storqual.judge.point import answer
from storqual.judge.question import Judged, Question
from storqual.run import Run
from storqual.statistics.analysis import Looks

PURPOSE = "confirm"


def confirming_sessions(run: Run) -> frozenset[tuple[str, str]]:
    """Sessions (bench, session) whose plan says `purpose: confirm`."""
    return frozenset((session.bench, session.id) for session in run.sessions if session.purpose == PURPOSE)


def confirm(
    questions: Sequence[Question], answers: Sequence[Judged], looks: Looks, histories: Histories
) -> list[Judged]:
    """Answers in which a FAIL that was measured afresh is one of the fresh launches too, or none."""
    found = list(answers)
    again: list[tuple[int, Question]] = []
    for index, (question, first) in enumerate(zip(questions, answers, strict=True)):
        fresh = question.place.confirming()
        if first.outcome == "FAIL" and fresh is not None:
            again.append((index, replace(question, place=fresh)))
    second = answer([question for _, question in again], looks, histories)
    for (index, _), fresh_answer in zip(again, second, strict=True):
        found[index] = _both(answers[index], fresh_answer)
    return found


def _both(first: Judged, second: Judged) -> Judged:
    shift = percent(second.shift, signed=True) if second.shift is not None else "no shift"
    if second.outcome == "FAIL":
        # two independent fails: no correction for many criteria is needed any more
        return replace(first, reason=f"{first.reason}; confirmed on fresh launches ({shift})", loss_p=0.0)
    if second.outcome == "ERROR":
        return replace(first, outcome="ERROR", reason=f"{first.reason}; measured afresh: {second.reason}")
    if second.outcome == "INCONCLUSIVE":
        return replace(
            first,
            outcome="INCONCLUSIVE",
            reason=f"{first.reason}; measured afresh it is not decided: {second.reason}",
        )
    return replace(
        first, outcome="INCONCLUSIVE", reason=f"{first.reason}; measured afresh it passes ({shift}): not decided"
    )
