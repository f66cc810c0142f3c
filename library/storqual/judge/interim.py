# SPDX-License-Identifier: Apache-2.0
"""What a campaign under way still needs: points that are undecided, fails that want confirmation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from storqual.inputs import load_gate, load_suite
from storqual.inputs.policy import Gate
from storqual.judge.earlier import read_histories
from storqual.judge.point import answer
from storqual.judge.question import Judged, Question
from storqual.judge.verdict import questions_of
from storqual.run import PlannedPoint, Run
from storqual.run.samples import stream
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Need:
    """A required criterion that is not decided yet.

    `more`: `units` further pairs (sessions of each arm) will decide it at this noise and shift. `confirm`: it failed,
    and fresh ones will decide whether it does so again: as many as it took, or, when there are some already, as
    those ask for. `used` is how many there are. Needs are listed with what is decided soonest first.
    """

    point: PlannedPoint
    criterion: str
    what: Literal["more", "confirm"]
    unit: str
    units: int
    used: int


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
    failed = [
        (question, first) for question, first in zip(questions, answers, strict=True) if first.outcome == "FAIL"
    ]
    fresh = [replace(question, place=place) for question, _ in failed if (place := question.place.confirming())]
    again = dict(zip(map(_name, fresh), zip(fresh, answer(fresh, "every", histories), strict=True), strict=True))
    found = [_more(question, first) for question, first in zip(questions, answers, strict=True)]
    found += [_confirm(question, first, again.get(_name(question))) for question, first in failed]
    return sorted(filter(None, found), key=lambda need: (need.units, need.point.key, need.criterion))


def _name(question: Question) -> tuple[tuple[str, str, str], str]:
    return question.point.key, question.criterion.id


def _used(question: Question) -> int:
    """Complete pairs at a point, or sessions that both arms have."""
    arms = [question.place.of(arm) for arm in ("baseline", "candidate")]
    if question.by_session:
        return min(len({launch.session for launch in arm}) for arm in arms)
    return min(map(len, arms))


def _more(question: Question, judged: Judged) -> Need | None:
    """What an undecided criterion needs."""
    if judged.outcome != "INCONCLUSIVE":
        return None
    return Need(question.point, question.criterion.id, "more", judged.unit, max(judged.wanted, 1), _used(question))


def _confirm(question: Question, first: Judged, again: tuple[Question, Judged] | None) -> Need | None:
    """What a criterion that failed needs, from its answer on fresh launches (None: there are none)."""
    if again is None:
        return Need(question.point, question.criterion.id, "confirm", first.unit, max(first.units, 1), 0)
    fresh, second = again
    if second.outcome != "INCONCLUSIVE":
        return None
    wanted = max(second.wanted, 1)
    return Need(question.point, question.criterion.id, "confirm", second.unit, wanted, _used(fresh))


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
