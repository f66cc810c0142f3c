# SPDX-License-Identifier: Apache-2.0
"""The candidate against the baseline: many criteria at once, so that the points of a campaign share their noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from storqual.judge.decision import History, analyse, as_decision, limits_for
from storqual.judge.numbers import percent, plural
from storqual.judge.question import Judged, Question, Unit, finite, missing, units_of
from storqual.metrics import Metric
from storqual.statistics.analysis import Analysis, Limits, Looks
from storqual.statistics.fixed_sessions import analyse_fixed_sessions
from storqual.statistics.launches import pad
from storqual.statistics.noise import LAUNCH_FLOOR, Prior
from storqual.statistics.pairs import analyse_pairs
from storqual.statistics.shared_noise import common_spread

Histories = Mapping[tuple[str, str, str, str], History]
"""Noise by bench, adapter, point and metric."""

Arms = tuple[list[Unit], list[Unit]]
Floats = NDArray[np.float64]


def judge_against_baseline(questions: Sequence[Question], looks: Looks, histories: Histories) -> list[Judged]:
    """Answer criteria against the baseline, all of them rates, times or ratios. Launches were found to be sound.

    `looks` says whether the campaign could end after any pair or session (`every`) or had its size fixed beforehand.
    """
    answers: dict[int, Judged] = {}
    groups: defaultdict[tuple[str, str, bool], list[int]] = defaultdict(list)
    arms: dict[int, Arms] = {}
    for index, question in enumerate(questions):
        found = _arms(question)
        if isinstance(found, Judged):
            answers[index] = found
            continue
        arms[index] = found
        groups[(question.point.bench, question.criterion.metric, question.by_session)].append(index)
    for (_, _, by_session), members in groups.items():
        asked = [questions[index] for index in members]
        values = [arms[index] for index in members]
        known = [histories.get((*question.point.key, question.criterion.metric)) for question in asked]
        if by_session:
            made = _session_analyses(asked, values, looks, known)
        else:
            made = pair_analyses(asked, values, looks, known)
        for index, question, both, analysis in zip(members, asked, values, made, strict=True):
            answers[index] = _in_words(question, both, analysis)
    return [answers[index] for index in range(len(questions))]


def _metric(question: Question) -> Metric:
    metric = question.metric
    assert metric is not None  # noqa: S101 - questions about no metric were answered before
    return metric


def _sign(question: Question) -> float:
    return 1.0 if _metric(question).better == "higher" else -1.0


def _limits(question: Question) -> Limits:
    rule = question.criterion
    return limits_for(rule.margin, rule.indifference, rule.alpha, _metric(question).better)


def _arms(question: Question) -> Arms | Judged:
    """The values of both arms, or the answer when they cannot be compared."""
    metric = _metric(question)
    both: list[list[Unit]] = []
    for arm in ("baseline", "candidate"):
        found = units_of(question.place.of(arm), metric)
        if isinstance(found, str):
            return missing(question, f"{arm}: {found}")
        both.append(found)
    sources = sorted({unit.source for arm in both for unit in arm})
    if len(sources) > 1:
        return missing(question, f"{metric.label} comes from different sources: {', '.join(sources)}")
    smallest = min(unit.value for arm in both for unit in arm)
    if smallest <= 0:
        return missing(question, f"{metric.label} is {smallest:g} in some launch: a ratio to it means nothing")
    return both[0], both[1]


def _seconds(units: Sequence[Unit]) -> list[list[float]]:
    """Each unit as seconds at its own level; one value where it has no seconds."""
    listed = []
    for unit in units:
        factor = unit.value / (math.fsum(unit.seconds) / len(unit.seconds)) if unit.seconds else 0.0
        listed.append([value * factor for value in unit.seconds] if unit.seconds else [unit.value])
    return listed


def pair_analyses(
    questions: Sequence[Question], values: Sequence[Arms], looks: Looks, known: Sequence[History | None]
) -> list[Analysis]:
    """Points whose arms alternate launch by launch. Points that are alike lend each other their noise."""
    shapes: defaultdict[tuple[int, int, Limits, bool], list[int]] = defaultdict(list)
    filled = []
    for index, (question, (before, after)) in enumerate(zip(questions, values, strict=True)):
        count = min(len(before), len(after))
        both = pad(_seconds(before[:count]) + _seconds(after[:count]))
        filled.append(both)
        shapes[(count, both.shape[1], _limits(question), known[index] is not None)].append(index)
    found: dict[int, Analysis] = {}
    for (count, _, limits, with_history), members in shapes.items():
        sign = _sign(questions[members[0]])
        if with_history:
            for index in members:
                history = known[index] or History()
                both = filled[index][None]
                found[index] = analyse_pairs(
                    both[:, :count], both[:, count:], limits, sign=sign, prior=history.pair(), looks=looks
                )[0]
            continue
        both = np.stack([filled[index] for index in members])
        made = analyse_pairs(both[:, :count], both[:, count:], limits, sign=sign, looks=looks)
        if looks == "last" and count >= 2:
            prior = _shared(made)
            if prior is not None:
                made = analyse_pairs(both[:, :count], both[:, count:], limits, sign=sign, looks=looks, prior=prior)
        found.update(zip(members, made, strict=True))
    return [found[index] for index in range(len(questions))]


def _shared(made: Sequence[Analysis]) -> Prior | None:
    """What points with equally many pairs say of each other's noise."""
    usual = float(np.median([one.df for one in made]))
    alike = [one.sd**2 for one in made if one.df >= usual]
    return common_spread(np.array(alike), usual, 2 * LAUNCH_FLOOR**2)


def _session_analyses(
    questions: Sequence[Question], values: Sequence[Arms], looks: Looks, known: Sequence[History | None]
) -> list[Analysis]:
    """Points whose arms have boots of their own."""
    found: dict[int, Analysis] = {}
    fixed = []
    for index, (question, (before, after)) in enumerate(zip(questions, values, strict=True)):
        history = known[index]
        if looks == "last" and history is None:
            fixed.append(index)
            continue
        rule = question.criterion
        found[index] = analyse(
            _seconds(before),
            _seconds(after),
            margin=rule.margin,
            indifference=rule.indifference,
            alpha=rule.alpha,
            better=_metric(question).better,
            baseline_sessions=[unit.session for unit in before],
            candidate_sessions=[unit.session for unit in after],
            history=history,
        )
    layouts: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = defaultdict(list)
    for index in fixed:
        layouts[_sessions_of(values[index][0]), _sessions_of(values[index][1])].append(index)
    for names, members in layouts.items():
        arms = [_stacked([values[index][arm] for index in members], names[arm]) for arm in (0, 1)]
        limits = [_limits(questions[index]) for index in members]
        made = analyse_fixed_sessions(arms[0], arms[1], limits, sign=_sign(questions[members[0]]))
        found.update(zip(members, made, strict=True))
    return [found[index] for index in range(len(questions))]


def _sessions_of(units: Sequence[Unit]) -> tuple[str, ...]:
    """The sessions of an arm, in the order they began."""
    return tuple(dict.fromkeys(unit.session for unit in units))


def _stacked(points: Sequence[Sequence[Unit]], sessions: Sequence[str]) -> Floats:
    """Units of several points as an array (point, session, launch, second), filled up with NaN."""
    place = {session: number for number, session in enumerate(sessions)}
    rows: list[tuple[int, int, int, list[float]]] = []
    for number, units in enumerate(points):
        inside = [0] * len(sessions)
        for unit, seconds in zip(units, _seconds(units), strict=True):
            session = place[unit.session]
            rows.append((number, session, inside[session], seconds))
            inside[session] += 1
    filled = pad([seconds for _, _, _, seconds in rows])
    launches = 1 + max(launch for _, _, launch, _ in rows)
    array = np.full((len(points), len(sessions), launches, filled.shape[1]), np.nan)
    where = tuple(np.array([row[axis] for row in rows]) for axis in range(3))
    array[where] = filled
    return array


def _in_words(question: Question, values: Arms, analysis: Analysis) -> Judged:
    """The analysis as an outcome with a sentence; a pass near its limit is MARGINAL."""
    rule, metric = question.criterion, _metric(question)
    decision = as_decision(analysis, metric.better)
    low, high = decision.ci95
    outcome, reason = "INCONCLUSIVE", ""
    if decision.outcome == "fail":
        outcome = "FAIL"
        reason = (
            f"{metric.label} is {percent(abs(decision.shift))} worse ({percent(low, signed=True)} to "
            f"{percent(high, signed=True)}): a loss of more than {percent(rule.indifference)} is shown"
        )
    elif decision.outcome == "pass" and rule.marginal is not None and low + rule.margin < rule.marginal:
        outcome = "MARGINAL"
        reason = (
            f"a loss of {percent(rule.margin)} is excluded, but only just: the two-sided 95 % interval reaches to "
            f"{percent(low, signed=True)}"
        )
    elif decision.outcome == "pass":
        outcome = "PASS"
        reason = f"a loss of {percent(rule.margin)} is excluded"
    else:
        reason = _undecided(analysis, decision.shift, decision.detectable, decision.pairs_wanted)
    interval = (low, high) if math.isfinite(low) and math.isfinite(high) else None
    spread = analysis.sd * math.sqrt((2.0 if analysis.unit == "session" else 1.0) / max(analysis.units, 1))
    return Judged(
        outcome=outcome,
        reason=reason,
        candidate=math.fsum(unit.value for unit in values[1]) / len(values[1]),
        reference=math.fsum(unit.value for unit in values[0]) / len(values[0]),
        shift=finite(decision.shift),
        ci95=interval if analysis.df > 0 else None,
        margin=rule.margin,
        indifference=rule.indifference,
        detectable=finite(decision.detectable) if analysis.df > 0 else None,
        unit=analysis.unit,
        source=values[0][0].source,
        loss_p=analysis.loss_p,
        error=finite(spread) if analysis.df > 0 else None,
        units=analysis.units,
        wanted=decision.pairs_wanted,
    )


def _undecided(analysis: Analysis, shift: float, detectable: float, wanted: int) -> str:
    unit = "session" if analysis.unit == "session" else "pair"
    each = " of each arm" if unit == "session" else ""
    if analysis.missing:
        return f"{analysis.missing}; {plural(wanted, f'more {unit}')}{each} needed"
    return (
        f"undecided after {plural(analysis.units, unit)}{each}: shift {percent(shift, signed=True)}, no loss below "
        f"{percent(detectable)} would have been found; about {plural(wanted, f'more {unit}')}{each} would decide it"
    )
