# SPDX-License-Identifier: Apache-2.0
"""The candidate against the baseline: many criteria at once, so that the points of a campaign share their noise."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.base.text import plural
from storqual.judge.decision import History, decide
from storqual.judge.numbers import as_change, rests_on
from storqual.judge.question import Judged, OddLaunch, Question, Unit, finite, missing, units_of
from storqual.metrics import Metric
from storqual.statistics.comparison import ArmComparison, Limits, Looks, limits_for
from storqual.statistics.launches import pad
from storqual.statistics.pairs import PairLevels, analyse_pairs, pair_levels
from storqual.statistics.sessions import analyse_fixed_sessions
from storqual_core.kit.quantities import format_percent

Histories = Mapping[tuple[str, str, str, str], History]
"""Noise by bench, adapter, point and metric."""

LIKELY = 2 / 3
"""A loss is probably beyond a limit when the odds are more than two to one: at the middle of the interval, more than
five in a hundred unchanged candidates would be marginal where four pairs decide."""

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
        units = _arms(question)
        if isinstance(units, Judged):
            answers[index] = units
            continue
        arms[index] = units
        groups[(question.point.bench, question.criterion.metric, question.by_session)].append(index)
    for (_, _, by_session), members in groups.items():
        group = [questions[index] for index in members]
        values = [arms[index] for index in members]
        priors = [histories.get((*question.point.key, question.criterion.metric)) for question in group]
        compare = _session_comparisons if by_session else _pair_comparisons
        for index, comparison in zip(members, compare(group, values, looks, priors), strict=True):
            answers[index] = _in_words(questions[index], arms[index], comparison)
    return [answers[index] for index in range(len(questions))]


def _metric(question: Question) -> Metric:
    metric = question.metric
    assert metric is not None  # noqa: S101 - questions about no metric were answered before
    return metric


def _limits(question: Question) -> Limits:
    rule = question.criterion
    return limits_for(rule.margin, rule.indifference, rule.alpha, _metric(question).better)


def _arms(question: Question) -> Arms | Judged:
    """The values of both arms, or the answer when they cannot be compared."""
    metric = _metric(question)
    arms: list[list[Unit]] = []
    for arm in ("baseline", "candidate"):
        units = units_of(question.launches.of(arm), metric)
        if isinstance(units, str):
            return missing(question, f"{arm}: {units}")
        arms.append(units)
    sources = sorted({unit.source for arm in arms for unit in arm})
    if len(sources) > 1:
        return missing(
            question,
            f"{metric.label} was read from different sources, which cannot be compared: {', '.join(sources)}",
        )
    smallest = min(unit.value for arm in arms for unit in arm)
    if smallest <= 0:
        return missing(
            question, f"{metric.label} is {smallest:g} in at least one launch, so no ratio to it can be computed"
        )
    return arms[0], arms[1]


def _seconds(units: Sequence[Unit]) -> list[list[float]]:
    series = []
    for unit in units:
        factor = unit.value / (math.fsum(unit.seconds) / len(unit.seconds)) if unit.seconds else 0.0
        series.append([value * factor for value in unit.seconds] if unit.seconds else [unit.value])
    return series


def pair_levels_of(before: Sequence[Unit], after: Sequence[Unit]) -> PairLevels:
    """The launches of one point as pairs, negative log-ratios worse where higher is better; not for no pair."""
    count = min(len(before), len(after))
    filled = pad(_seconds(before[:count]) + _seconds(after[:count]))[None]
    return pair_levels(filled[:, :count], filled[:, count:])


def _pair_comparisons(
    questions: Sequence[Question], values: Sequence[Arms], looks: Looks, histories: Sequence[History | None]
) -> list[ArmComparison]:
    """Points whose arms alternate launch by launch. They lend each other their noise, whatever their limits are."""
    shapes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    filled = []
    for index, (before, after) in enumerate(values):
        count = min(len(before), len(after))
        both = pad(_seconds(before[:count]) + _seconds(after[:count]))
        filled.append(both)
        shapes[count, both.shape[1]].append(index)
    sign = _limits(questions[0]).sign
    levels = []
    for (count, _), members in shapes.items():
        both = np.stack([filled[index] for index in members])
        levels.append(pair_levels(both[:, :count], both[:, count:], sign))
    order = [index for members in shapes.values() for index in members]
    limits = [_limits(questions[index]) for index in order]
    priors = [(histories[index] or History()).pair() for index in order]
    made = dict(zip(order, analyse_pairs(levels, limits, priors=priors, looks=looks), strict=True))
    return [made[index] for index in range(len(questions))]


def _session_comparisons(
    questions: Sequence[Question], values: Sequence[Arms], looks: Looks, histories: Sequence[History | None]
) -> list[ArmComparison]:
    """Points whose arms have boots of their own. Those that were measured in the same boots share their noise."""
    comparisons: dict[int, ArmComparison] = {}
    layouts: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = defaultdict(list)
    for index, (question, (before, after)) in enumerate(zip(questions, values, strict=True)):
        names = _complete(before, after) if looks == "every" else (_sessions_of(before), _sessions_of(after))
        history = histories[index]
        if history is None and min(map(len, names)) > 0:
            layouts[names].append(index)
            continue
        rule = question.criterion
        comparisons[index] = decide(
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
    for names, members in layouts.items():
        arms = [
            _stacked(
                [[unit for unit in values[index][arm] if unit.session in names[arm]] for index in members], names[arm]
            )
            for arm in (0, 1)
        ]
        limits = [_limits(questions[index]) for index in members]
        shared = analyse_fixed_sessions(arms[0], arms[1], limits, looks=looks)
        comparisons.update(zip(members, shared, strict=True))
    return [comparisons[index] for index in range(len(questions))]


def _complete(before: Sequence[Unit], after: Sequence[Unit]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sessions that a look of a campaign under way may use: as many of each arm, complete in both."""
    arms = []
    for units in (before, after):
        names = _sessions_of(units)
        sizes = [sum(unit.session == name for unit in units) for name in names]
        if len(sizes) > 1 and sizes[-1] < np.median(sizes[:-1]):
            # the last one is still under way
            names = names[:-1]
        arms.append(names)
    count = min(map(len, arms))
    return arms[0][:count], arms[1][:count]


def _sessions_of(units: Sequence[Unit]) -> tuple[str, ...]:
    """The sessions of an arm, in the order they began."""
    return tuple(dict.fromkeys(unit.session for unit in units))


def _stacked(points: Sequence[Sequence[Unit]], sessions: Sequence[str]) -> Floats:
    """Units of several points as an array (point, session, launch, second), filled up with NaN."""
    number_of = {session: number for number, session in enumerate(sessions)}
    cells: list[tuple[int, int, int, list[float]]] = []
    for number, units in enumerate(points):
        inside = [0] * len(sessions)
        for unit, seconds in zip(units, _seconds(units), strict=True):
            session = number_of[unit.session]
            cells.append((number, session, inside[session], seconds))
            inside[session] += 1
    filled = pad([seconds for _, _, _, seconds in cells])
    launches = 1 + max(launch for _, _, launch, _ in cells)
    array = np.full((len(points), len(sessions), launches, filled.shape[1]), np.nan)
    where = tuple(np.array([cell[axis] for cell in cells]) for axis in range(3))
    array[where] = filled
    return array


def _in_words(question: Question, values: Arms, comparison: ArmComparison) -> Judged:
    """The comparison as an outcome with a sentence; a pass that probably lost more than is acceptable is MARGINAL."""
    rule, metric = question.criterion, _metric(question)
    outcome, reason = "INCONCLUSIVE", ""
    if comparison.outcome == "fail":
        outcome, reason = (
            "FAIL",
            (
                f"{_measured(metric, comparison)}: more than the acceptable {format_percent(rule.indifference)} is "
                "shown to be lost"
            ),
        )
    elif comparison.outcome == "pass" and _marginal(question, comparison):
        outcome = "MARGINAL"
        reason = (
            f"{_measured(metric, comparison)}: probably more than the acceptable "
            f"{format_percent(rule.indifference)} is lost, "
            f"but the unacceptable loss ({format_percent(rule.margin)}) is excluded"
        )
    elif comparison.outcome == "pass":
        outcome = "PASS"
        margin = format_percent(rule.margin)
        reason = f"the unacceptable loss ({margin}) is excluded{_at_most(comparison.bound, rule.alpha)}"
    else:
        reason = _undecided(comparison)
    odd = _odd_launch(values, comparison)
    if odd is not None:
        reason = f"{reason}; one pair left out: {odd.sentence()}"
    low, high = comparison.ci95
    has_noise = comparison.df > 0
    return Judged(
        outcome=outcome,
        reason=f"{reason}{rests_on({'candidate': values[1], 'baseline': values[0]})}",
        candidate=math.fsum(unit.value for unit in values[1]) / len(values[1]),
        reference=math.fsum(unit.value for unit in values[0]) / len(values[0]),
        shift=finite(comparison.shift),
        ci95=(low, high) if has_noise and math.isfinite(low) and math.isfinite(high) else None,
        margin=rule.margin,
        indifference=rule.indifference,
        detectable=finite(comparison.detectable) if has_noise else None,
        unit=comparison.unit,
        source=values[0][0].source,
        loss_p=comparison.loss_p,
        error=finite(comparison.error) if has_noise else None,
        units=comparison.units,
        further_units=comparison.further_units,
        bound=finite(comparison.bound) if has_noise else None,
        sd=finite(comparison.sd) if has_noise else None,
        df=comparison.df,
        # once both limits are shown to be on either side of the loss, more launches only say so again
        settled=outcome != "MARGINAL" or comparison.lost,
        odd=odd,
        ios=_fewest_ios(values),
    )


def _fewest_ios(values: Arms) -> tuple[int, int] | None:
    """The fewest I/Os that a percentile of each arm is of; None for what is no percentile."""
    ios_by_arm = [[unit.ios for unit in arm if unit.ios is not None] for arm in values]
    return (min(ios_by_arm[0]), min(ios_by_arm[1])) if all(ios_by_arm) else None


def _marginal(question: Question, comparison: ArmComparison) -> bool:
    """Whether a pass is marginal: it probably lost more than is acceptable (or came within `marginal` of the margin).

    The estimate of the last look is what is compared, so that neither few launches nor wide intervals make it so.
    """
    rule = question.criterion
    if comparison.df <= 0:
        return False
    line = rule.indifference if rule.marginal is None else max(rule.margin - rule.marginal, 0.0)
    limit = math.log1p(-line) if comparison.better == "higher" else -math.log1p(line)
    return float(special.stdtr(comparison.df, (limit - comparison.log_shift) / comparison.error)) > LIKELY


def _measured(metric: Metric, comparison: ArmComparison) -> str:
    low, high = comparison.ci95
    return f"{metric.label} is {format_percent(abs(comparison.shift))} worse ({as_change(low, high)})"


def _at_most(bound: float, alpha: float) -> str:
    """What a pass excludes, on the side and at the level that it was decided on."""
    if bound >= 0:
        return f": no loss ({format_percent(1 - alpha)} one-sided)"
    return f": at most {format_percent(-bound)} is lost ({format_percent(1 - alpha)} one-sided)"


def _odd_launch(values: Arms, comparison: ArmComparison) -> OddLaunch | None:
    """The launch that was left out of the estimate, by the figures of its own metric."""
    if comparison.odd is None:
        return None
    arm = values[1 if comparison.odd.candidate else 0]
    unit = arm[comparison.odd.number]
    other_values = [other.value for number, other in enumerate(arm) if number != comparison.odd.number]
    return OddLaunch(
        arm="candidate" if comparison.odd.candidate else "baseline",
        number=comparison.odd.number + 1,
        id=unit.id,
        of_others=unit.value * len(other_values) / math.fsum(other_values),
        longest_us=unit.longest_us,
    )


def _undecided(comparison: ArmComparison) -> str:
    unit = comparison.unit
    of_each_arm = " of each arm" if unit == "session" else ""
    more = f"{plural(comparison.further_units, f'more {unit}')}{of_each_arm}"
    if comparison.missing:
        return f"{comparison.missing}; {more} needed"
    # a loss of more than everything is none: so few values, or such noise, tell nothing
    whole = not comparison.detectable < 1
    missed = "no loss" if whole else f"no loss below {format_percent(comparison.detectable)}"
    return (
        f"undecided after {plural(comparison.units, unit)}{of_each_arm}: {as_change(comparison.shift)} so far; "
        f"{missed} would have been detected; about {more} needed"
    )
