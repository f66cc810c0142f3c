# SPDX-License-Identifier: Apache-2.0
"""What a campaign under way still needs: points that are undecided, fails that want confirmation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from storqual.judge.history import read_histories
from storqual.judge.point import answer
from storqual.judge.question import Judged, Question
from storqual.judge.samples import stream
from storqual.judge.verdict import questions_of
from storqual.model import load_gate, load_suite
from storqual.model.policy import Gate
from storqual.store import PlannedPoint, Run
from storqual_core.errors import BadInputError

__all__ = ["Need", "needs"]


@dataclass(frozen=True, slots=True)
class Need:
    """A required criterion that is not decided yet.

    `more`: `units` further pairs (sessions of each arm) will decide it at this noise and shift. `confirm`: it failed
    and wants as many fresh ones as it took. Needs are listed with what is decided soonest first.
    """

    point: PlannedPoint
    criterion: str
    what: Literal["more", "confirm"]
    unit: str
    units: int


def needs(run: Run, bench: str | None = None) -> list[Need]:
    """Needs of a run (of one bench), from its samples so far; a pure function of the run's files.

    The rules are those of a campaign that may stop at any look, so its plan must say `looks: every`. A point that
    cannot be judged (a refused job, a missing primitive) needs nothing: more of the same would not help.
    """
    rules = load_suite(run.input_file("suite"))
    policy = _gate(run)
    questions = [
        question
        for question in questions_of(run, rules, policy, stream(run.path))
        if question.criterion.required
        and question.criterion.against == "baseline"
        and (bench is None or question.point.bench == bench)
    ]
    histories = read_histories(_history(run))
    answers = answer(questions, "every", histories)
    confirming = [question.place.confirming() for question in questions]
    found = [need for need in map(_need, questions, answers, [place is not None for place in confirming]) if need]
    return sorted(found, key=lambda need: (need.units, need.point.key, need.criterion))


def _need(question: Question, judged: Judged, measured_afresh: bool) -> Need | None:
    rule = question.criterion
    if judged.outcome == "FAIL" and not measured_afresh:
        return Need(question.point, rule.id, "confirm", judged.unit, max(judged.units, 1))
    if judged.outcome == "INCONCLUSIVE":
        return Need(question.point, rule.id, "more", judged.unit, max(judged.wanted, 1))
    return None


def _gate(run: Run) -> Gate:
    try:
        return load_gate(run.input_file("gate"))
    except BadInputError:
        return Gate()


def _history(run: Run) -> Path | None:
    try:
        return run.input_file("history")
    except BadInputError:
        return None
