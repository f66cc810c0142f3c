# SPDX-License-Identifier: Apache-2.0
"""Answers to all questions of a run: what cannot be judged first, then each kind of criterion by its own rule.

A fail is measured afresh before it counts: two fails are a FAIL, a fail and a pass decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from storqual.judge.against_baseline import Histories, judge_against_baseline
from storqual.judge.against_others import (
    judge_against_limits,
    judge_against_peers,
    judge_against_scaling,
    judge_counts,
)
from storqual.judge.decision import History
from storqual.judge.numbers import percent
from storqual.judge.question import Judged, Question
from storqual.run import Run
from storqual.run.records import Launch
from storqual.statistics.comparison import Looks


def answer(questions: Sequence[Question], looks: Looks, histories: Histories) -> list[Judged]:
    """One answer for each question; what is missing or unusable is an ERROR, never a PASS."""
    answers: dict[int, Judged] = {}
    compared: list[int] = []
    for index, question in enumerate(questions):
        metric = question.metric
        if metric is None:
            answers[index] = Judged("ERROR", f"there is no metric called {question.criterion.metric!r}")
            continue
        unusable = _unusable(question)
        if question.excused:
            answers[index] = Judged("SKIPPED", question.excused)
        elif unusable:
            answers[index] = Judged("ERROR", unusable)
        elif question.criterion.against in ("absolute", "published"):
            answers[index] = judge_against_limits(question, metric)
        elif question.criterion.against == "peers":
            answers[index] = judge_against_peers(question, metric)
        elif question.criterion.against == "scaling":
            answers[index] = judge_against_scaling(question, metric)
        elif question.criterion.against != "baseline":
            answers[index] = Judged("ERROR", f"a criterion against {question.criterion.against!r} cannot be judged")
        elif metric.kind == "count":
            answers[index] = judge_counts(question, metric)
        else:
            compared.append(index)
    made = judge_against_baseline([questions[index] for index in compared], looks, histories)
    answers.update(zip(compared, made, strict=True))
    return [answers[index] for index in range(len(questions))]


def _unusable(question: Question) -> str:
    """Why the launches of a point cannot be judged; empty when they can."""
    needed: Mapping[str, Sequence[Launch]] = {"candidate": question.launches.of("candidate")}
    if question.criterion.against == "baseline":
        needed = {**needed, "baseline": question.launches.of("baseline")}
    for arm, launches in needed.items():
        if not launches:
            return f"the {arm} has no sample at this point"
        for launch in launches:
            if launch.status != "ok":
                why = launch.suspect[0] if launch.suspect else "no reason was recorded"
                return f"{arm} launch {launch.id} was {launch.status.replace('_', ' ')}: {why}"
    return ""


PURPOSE = "confirm"


def confirming_sessions(run: Run) -> frozenset[tuple[str, str]]:
    """Sessions (bench, session) whose plan says `purpose: confirm`."""
    return frozenset((session.bench, session.id) for session in run.sessions if session.purpose == PURPOSE)


def confirm(
    questions: Sequence[Question], answers: Sequence[Judged], looks: Looks, histories: Histories
) -> list[Judged]:
    """Answers in which a FAIL that was measured afresh is one of the fresh launches too, or none.

    Shift and interval stay those of the first launches; the fresh ones have their own (`Judged.again`).
    """
    found = list(answers)
    for index, second in measured_afresh(questions, answers, looks, histories).items():
        found[index] = replace(_both(answers[index], second), again=second)
    return found


def measured_afresh(
    questions: Sequence[Question], answers: Sequence[Judged], looks: Looks, histories: Histories
) -> dict[int, Judged]:
    """What the fresh launches alone say of each FAIL that has some, by the index of its question.

    The level of the first launches counts for nothing; their noise is lent, because the point is the same.
    """
    fresh: dict[int, Question] = {}
    known = dict(histories)
    for index, (question, first) in enumerate(zip(questions, answers, strict=True)):
        launches = question.launches.confirming()
        if first.outcome != "FAIL" or launches is None:
            continue
        fresh[index] = replace(question, launches=launches)
        if first.unit == "pair" and first.sd is not None:
            # what history and the other points know of it is part of the noise of the first launches
            known[*question.point.key, question.criterion.metric] = History(sd_pair=first.sd, df_pair=first.df)
    return dict(zip(fresh, answer(list(fresh.values()), looks, known), strict=True))


def _both(first: Judged, second: Judged) -> Judged:
    shift = percent(second.shift, signed=True) if second.shift is not None else "no shift"
    if second.ci95 is not None:
        shift += f", {percent(second.ci95[0], signed=True)} to {percent(second.ci95[1], signed=True)}"
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
