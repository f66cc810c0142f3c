# SPDX-License-Identifier: Apache-2.0
"""What a campaign under way still needs: points that are undecided, fails that want confirmation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from storqual.inputs import load_gate, load_suite
from storqual.inputs.policy import Gate
from storqual.judge.answers import answer, measured_afresh
from storqual.judge.earlier import read_histories
from storqual.judge.evidence import NOTHING, Settling, settling
from storqual.judge.question import Judged, Question, metrics_of, optional_input, planned_criteria, questions_of
from storqual.run import PlannedPoint, Run
from storqual.run.measurements import measurements_at
from storqual.run.records import Launch


@dataclass(frozen=True, slots=True)
class Need:
    """A required criterion that is not decided yet, or only just.

    `more`: `units` further pairs (sessions of each arm) will decide it at this noise and shift. `confirm`: it failed,
    and fresh ones will decide whether it does so again: as many as it took, or, when there are some already, as
    those ask for. `marginal`: it passes with a loss between the two limits, and as many again may tell on which side
    of the acceptable one it lies; that is worth what is left of a budget, and no more. `used` is how many there are
    that are evidence, `launched` how many there are with those that are suspect.
    `settling` is what launches of the point still need beyond their ramp.
    Needs are listed with what is decided soonest first.
    """

    point: PlannedPoint
    criterion: str
    what: Literal["more", "confirm", "marginal"]
    unit: str
    units: int
    used: int
    launched: int
    settling: Settling = NOTHING


def needs(run: Run, bench: str | None = None) -> list[Need]:
    """Needs of a run (of one bench), from its samples so far; a pure function of the run's files.

    The rules are those of a campaign that may stop at any look, so its plan must say `looks: every`. A point that
    cannot be judged (a refused job, a missing primitive) needs nothing: more of the same would not help.
    """
    rules = load_suite(run.input_file("suite"))
    gate, history = optional_input(run, "gate"), optional_input(run, "history")
    criteria = [
        (point, rule)
        for point, rule in planned_criteria(run, rules, Gate() if gate is None else load_gate(gate))
        if bench in (None, point.bench) and rule.required and rule.against == "baseline"
    ]
    questions = questions_of(run, criteria, measurements_at(run, metrics_of(criteria)).points)
    histories = read_histories(history)
    answers = answer(questions, "every", histories)
    again = measured_afresh(questions, answers, "every", histories)
    candidates = [_more(question, first) for question, first in zip(questions, answers, strict=True)]
    candidates += [
        _confirm(question, first, again.get(index))
        for index, (question, first) in enumerate(zip(questions, answers, strict=True))
        if first.outcome == "FAIL"
    ]
    settles = settling(questions)
    needed = [need for need in candidates if need is not None]
    settled = [replace(need, settling=settles.get(need.point.key, NOTHING)) for need in needed]
    return sorted(settled, key=lambda need: (need.units, need.point.key, need.criterion))


def _used(question: Question) -> tuple[int, int]:
    """Complete pairs at a point, or sessions that both arms have: those that are evidence, and all of them."""
    launches = question.launches
    return _units(question, launches.arms), _units(question, (launches.whole or launches).arms)


def _used_afresh(question: Question) -> tuple[int, int]:
    """The same of the launches that confirm a fail."""
    launches = question.launches
    return _units(question, launches.fresh), _units(question, (launches.whole or launches).fresh)


def _units(question: Question, arms: Mapping[str, Sequence[Launch]]) -> int:
    both = [arms.get(arm, ()) for arm in ("baseline", "candidate")]
    if question.by_session:
        return min(len({launch.session for launch in arm}) for arm in both)
    return min(map(len, both))


def _more(question: Question, judged: Judged) -> Need | None:
    """What a criterion needs that is undecided, or passes only just."""
    used = _used(question)
    if judged.outcome == "MARGINAL" and not judged.settled:
        return Need(question.point, question.criterion.id, "marginal", judged.unit, max(used[0], 1), *used)
    if judged.outcome != "INCONCLUSIVE":
        return None
    return Need(question.point, question.criterion.id, "more", judged.unit, max(judged.further_units, 1), *used)


def _confirm(question: Question, first: Judged, second: Judged | None) -> Need | None:
    """What a criterion that failed needs, from its answer on fresh launches (None: there are none)."""
    used = _used_afresh(question)
    if second is None:
        return Need(question.point, question.criterion.id, "confirm", first.unit, max(first.units, 1), *used)
    if second.outcome != "INCONCLUSIVE":
        return None
    return Need(question.point, question.criterion.id, "confirm", second.unit, max(second.further_units, 1), *used)
