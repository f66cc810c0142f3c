# SPDX-License-Identifier: Apache-2.0
"""Answers to all questions of a run: what cannot be judged first, then each kind of criterion by its own rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storqual.judge.against_baseline import Histories, judge_against_baseline
from storqual.judge.against_others import (
    judge_against_limits,
    judge_against_peers,
    judge_against_scaling,
    judge_counts,
)
from storqual.judge.question import Judged, Question
from storqual.run.records import Launch
from storqual.statistics.analysis import Looks


def answer(questions: Sequence[Question], looks: Looks, histories: Histories) -> list[Judged]:
    """One answer for each question; what is missing or unusable is an ERROR, never a PASS."""
    answers: dict[int, Judged] = {}
    compared: list[int] = []
    for index, question in enumerate(questions):
        metric = question.metric
        if metric is None:
            answers[index] = Judged("ERROR", f"there is no metric called {question.criterion.metric!r}")
            continue
        spoilt = _spoilt(question)
        if question.excused:
            answers[index] = Judged("SKIPPED", question.excused)
        elif spoilt:
            answers[index] = Judged("ERROR", spoilt)
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


def _spoilt(question: Question) -> str:
    """Why the launches of a point cannot be judged; empty when they can."""
    needed: Mapping[str, Sequence[Launch]] = {"candidate": question.place.of("candidate")}
    if question.criterion.against == "baseline":
        needed = {**needed, "baseline": question.place.of("baseline")}
    for arm, launches in needed.items():
        if not launches:
            return f"the {arm} has no sample at this point"
        for launch in launches:
            if launch.status != "ok":
                why = launch.suspect[0] if launch.suspect else "no reason was recorded"
                return f"{arm} launch {launch.id} was {launch.status.replace('_', ' ')}: {why}"
    return ""
