# SPDX-License-Identifier: Apache-2.0
"""Criteria that compare no pairs of launches: against limits, peers, a straight line, and of counts."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from storqual.base.text import plural
from storqual.judge.numbers import amount, as_change, rests_on
from storqual.judge.question import (
    Judged,
    Question,
    Unit,
    finite,
    loss_to,
    missing,
    session_means,
    units_of,
    values_at,
)
from storqual.metrics import Metric
from storqual.run import Check
from storqual.run.measurements import LookedAt, Measurements
from storqual.statistics.comparison import Looks, Rule, alpha_of, as_fraction, limits_for, nominal_levels
from storqual.statistics.counts import compare_counts, most_share
from storqual.statistics.estimates import CI_SIDE, Estimate, mean_reach
from storqual.statistics.noise import LAUNCH_FLOOR, TELLS_NOTHING
from storqual.statistics.scaling import scaling, scaling_sentences
from storqual_core.kit.quantities import format_percent

_SIDES: tuple[Rule, ...] = ("pass", "fail")
_NEVER = 1e-9
"""The level of a first look, which has none."""


def judge_against_peers(question: Question, metric: Metric) -> Judged:
    """Compare with the mean of the other adapters in the candidate arm.

    All adapters of a bench are measured in the same sessions: each session gives one ratio, in which what the session
    does to all of them cancels. Where there is one session only, launches are compared in their order.
    """
    tested = units_of(question.launches.of("candidate"), metric)
    if isinstance(tested, str):
        return missing(question, tested)
    peers = _others(question, metric)
    if not peers:
        return missing(question, "no other adapter was measured at this point")
    if min(unit.value for unit in tested) <= 0:
        return missing(question, f"{metric.label} is not above zero in every launch, so no ratio can be computed")
    rule = question.criterion
    sign = 1.0 if metric.better == "higher" else -1.0
    ratios, unit = _ratios(tested, peers)
    values = [peer_unit.value for units in peers.values() for peer_unit in units]
    mean, level = math.fsum(my_unit.value for my_unit in tested) / len(tested), math.fsum(values) / len(values)
    shift = sign * math.fsum(ratios) / len(ratios)
    one_sided, reach = (mean_reach(ratios, side, LAUNCH_FLOOR) for side in (rule.alpha, CI_SIDE))
    if one_sided is None or reach is None:
        why = f"one {unit} has no interval{rests_on({'candidate': tested})}"
        return Judged("INCONCLUSIVE", why, candidate=mean, reference=level)
    limits = limits_for(rule.margin, rule.indifference, rule.alpha, metric.better)
    outcome = "INCONCLUSIVE"
    if shift - one_sided > limits.margin:
        outcome = "PASS"
    elif shift + one_sided < limits.indifference:
        outcome = "FAIL"
    if reach > TELLS_NOTHING and outcome == "INCONCLUSIVE":
        why = f"{plural(len(ratios), unit)} of {metric.label} vary too much for an interval"
        return Judged(outcome, why, candidate=mean, reference=level, unit=unit, source=tested[0].source)
    ends = [as_fraction(end, metric.better) for end in (shift, shift - reach, shift + reach)]
    return Judged(
        outcome,
        f"{metric.label} is {as_change(ends[0])} than the mean of "
        f"{', '.join(sorted(peers))} ({as_change(*ends[1:])}, "
        f"{plural(len(ratios), unit)}){rests_on({'candidate': tested})}",
        candidate=mean,
        reference=level,
        shift=finite(ends[0]),
        ci95=(ends[1], ends[2]),
        margin=rule.margin,
        indifference=rule.indifference,
        unit=unit,
        source=tested[0].source,
    )


def _others(question: Question, metric: Metric) -> dict[str, list[Unit]]:
    """The other adapters' values; one with a launch that did not run as asked is left out."""
    peers: dict[str, list[Unit]] = {}
    for name, peer in question.peers:
        launches = peer.of("candidate")
        if not launches or any(launch.status != "ok" for launch in launches):
            continue
        units = units_of(launches, metric)
        if not isinstance(units, str) and min(unit.value for unit in units) > 0:
            peers[name] = units
    return peers


def _ratios(tested: Sequence[Unit], peers: Mapping[str, Sequence[Unit]]) -> tuple[list[float], str]:
    """Log-ratios to the mean of the others, one per session they share; per launch where that is one at most."""
    my_levels = session_means(tested, math.log)
    peer_levels = [session_means(units, math.log) for units in peers.values()]
    shared = [session for session in my_levels if all(session in levels for levels in peer_levels)]
    if len(shared) >= 2:
        return [
            my_levels[session] - math.fsum(levels[session] for levels in peer_levels) / len(peer_levels)
            for session in shared
        ], "session"
    count = min(len(tested), *(len(units) for units in peers.values()))
    return [
        math.log(tested[number].value)
        - math.fsum(math.log(units[number].value) for units in peers.values()) / len(peers)
        for number in range(count)
    ], "launch"


def judge_against_limits(question: Question, metric: Metric) -> Judged:
    """`min` and `max`: held when the interval of the mean lies inside, broken when it lies outside.

    The interval is of the mean over sessions where the arm has several, else over launches. Counts are held when no
    launch breaks the limit: there is no allowance for some.
    """
    units = units_of(question.launches.of("candidate"), metric)
    if isinstance(units, str):
        return missing(question, units)
    rule = question.criterion
    low = -math.inf if rule.min is None else rule.min
    high = math.inf if rule.max is None else rule.max
    requirement = " and ".join(
        text
        for text in (
            f"at least {amount(low, metric)}" if rule.min is not None else "",
            f"at most {amount(high, metric)}" if rule.max is not None else "",
        )
        if text
    )
    # what a maker states is only as good as the document that states it
    requirement = f"{requirement} by {rule.source}" if rule.against == "product" else requirement
    values = list(session_means(units).values()) if question.by_session else [unit.value for unit in units]
    mean = math.fsum(values) / len(values)

    def judged(outcome: str, reason: str, loss: float | None = None) -> Judged:
        reason += rests_on({"candidate": units})
        # the limit that a fail broke, else the first
        limits = (rule.max, rule.min) if outcome == "FAIL" and mean > high else (rule.min, rule.max)
        reference = next((limit for limit in limits if limit is not None), None)
        return Judged(outcome, reason, candidate=mean, reference=reference, source=units[0].source, loss=loss)

    if metric.kind == "count":
        worst = [unit.value for unit in units if not low <= unit.value <= high]
        if worst:
            reason = f"{metric.label}: {amount(worst[0], metric)} in a launch, {requirement} is required"
            losses = [loss_to(value, low if value < low else high) for value in worst]
            # a mean within the limit says nothing of the launch that broke it
            return judged("FAIL", reason, max((loss for loss in losses if loss is not None), default=None))
        return judged("PASS", f"{metric.label}: {amount(mean, metric)}, {requirement} is required")
    reach = mean_reach(values, rule.alpha)
    if reach is None:
        unit = "session" if question.by_session else "launch"
        return judged(
            "INCONCLUSIVE",
            f"{amount(mean, metric)} from one {unit}, which has no interval; {requirement} is required",
        )
    sentence = (
        f"{metric.label} is {amount(mean, metric)} "
        f"({amount(mean - reach, metric)} to {amount(mean + reach, metric)}), {requirement} is required"
    )
    if mean - reach >= low and mean + reach <= high:
        room = min(_room(mean - reach, low), _room(mean + reach, high))
        near = rule.marginal is not None and room < rule.marginal
        return judged("MARGINAL" if near else "PASS", sentence)
    outside = mean + reach < low or mean - reach > high
    return judged("FAIL" if outside else "INCONCLUSIVE", sentence)


def _room(end: float, limit: float) -> float:
    """How far an interval's end is from a limit, as a fraction of the limit."""
    return math.inf if not math.isfinite(limit) or limit == 0 else abs(end - limit) / abs(limit)


def judge_counts(question: Question, metric: Metric, looks: Looks) -> Judged:
    """In how many launches of each arm something rare was seen: fail when the candidate is shown to do it more often.

    Pass when the candidate never did, or when at most `margin` of all launches more than with the baseline did. A
    launch that stalls six times is one finding, not six independent ones.
    """
    arms: list[list[Unit]] = []
    for arm in ("baseline", "candidate"):
        units = units_of(question.launches.of(arm), metric)
        if isinstance(units, str):
            return missing(question, f"{arm}: {units}")
        arms.append(units)
    rule = question.criterion
    means = [math.fsum(unit.value for unit in arm) / len(arm) for arm in arms]
    before, after = (sum(unit.value > 0 for unit in arm) for arm in arms)
    launches = (len(arms[0]), len(arms[1]))
    levels = {"pass": rule.alpha, "fail": rule.alpha}
    if looks == "every":
        # error is spent over the looks, as where launches are compared by their rates
        at = np.array([float(min(launches))])
        levels = {side: float(nominal_levels(side, rule.alpha, at)[0]) or _NEVER for side in _SIDES}
    test = compare_counts(
        (before, after), launches, margin=rule.margin, pass_level=levels["pass"], fail_level=levels["fail"]
    )
    of_each = (
        f"{after} of {plural(launches[1], 'launch')} of the candidate and {before} of {launches[0]} of the baseline"
    )
    sentence = f"{metric.label}: seen in {of_each}, {amount(means[1], metric)} against {amount(means[0], metric)}"
    share = format_percent(most_share(0, launches[1], rule.alpha))
    unseen = f"in less than {share} of launches at {format_percent(1 - rule.alpha)}"
    none = f"{metric.label}: none was seen in {plural(launches[1], 'launch')} of the candidate ({unseen})"
    reasons = {
        "fail": f"{sentence}, which chance does not explain (p = {test.p:.2g})",
        "pass": f"{sentence}: an increase of at most {format_percent(test.most)} of launches"
        if after
        else f"{none}, in {before} of {launches[0]} of the baseline",
        "inconclusive": f"{sentence}: an increase of {format_percent(rule.margin)} of launches is not excluded",
    }
    sessions = min(len({unit.session for unit in arm}) for arm in arms) if question.by_session else 0
    return Judged(
        outcome={"fail": "FAIL", "pass": "PASS", "inconclusive": "INCONCLUSIVE"}[test.outcome],
        reason=reasons[test.outcome],
        candidate=means[1],
        reference=means[0],
        margin=rule.margin,
        loss=_more_often(means, (before / launches[0], after / launches[1])),
        loss_p=alpha_of("fail", test.p, float(min(launches))) if looks == "every" else test.p,
        source=arms[0][0].source,
        unit="session" if sessions else "pair",
        units=sessions or min(launches),
        further_units=math.ceil(test.further_launches * sessions / min(launches))
        if sessions
        else test.further_launches,
    )


def _more_often(means: Sequence[float], shares: Sequence[float]) -> float | None:
    """By how much more was seen, or in more launches, whichever is worse; None where the baseline never showed it."""
    if means[0] <= 0 or shares[0] <= 0:
        return None
    return finite(max(means[1] / means[0], shares[1] / shares[0]) - 1)


def judge_against_scaling(question: Question, metric: Metric) -> Judged:
    """Pass when the candidate is shown to be linear up to the level, fail when a level before is shown not to be."""
    rule, curve = question.criterion, question.curve
    if curve is None or rule.linear_to is None:
        return missing(question, f"there is no other level of {rule.over} at this point")
    values = values_at(curve, question.launches_at, metric, "candidate")
    limit = float(rule.linear_to)
    if limit not in values or min(values) >= limit:
        return missing(question, f"{metric.label} was not measured at {rule.over} {limit:g} and at a lower level")
    result = scaling({level: values[level] for level in values if level <= limit}, tolerance=rule.margin)
    last = result.levels[-1]
    outcome = "INCONCLUSIVE"
    if result.broken_at is not None:
        outcome = "FAIL"
    elif result.linear_to >= limit:
        outcome = "PASS"
    return Judged(
        outcome=outcome,
        reason=" ".join(scaling_sentences(result, rule.over, metric.unit)),
        candidate=last.value.value,
        reference=result.levels[0].value.value * limit / result.levels[0].at,
        shift=last.efficiency.value - 1,
        ci95=_interval(last.efficiency),
        # the level that is not linear may be one before the last
        loss=max(1 - level.efficiency.value for level in result.levels),
        margin=rule.margin,
        unit="launch",
        units=min(map(len, values.values())),
    )


def _interval(estimate: Estimate) -> tuple[float, float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low - 1, estimate.high - 1


DATA = "data"
"""The id of these criteria."""
READ_BACK = "read back"
_SHOWN = 32
"""Bytes of the first wrong sector that a sentence has; all of it is in the sample."""
_NOTHING = LookedAt()


def data_checks(measured: Measurements) -> Iterator[Check]:
    """The checks of a run, for each point at which something was read back in the arm under test.

    A candidate with a wrong sector fails, whatever the baseline does; a baseline with one is told.
    """
    for (bench, adapter, point), arms in sorted(measured.data.items()):
        candidate, baseline = (arms.get(arm, _NOTHING) for arm in ("candidate", "baseline"))
        if not candidate.launches:
            continue
        reason = _readback_sentence(candidate)
        if baseline.wrong:
            reason += f"; of the baseline: {_readback_sentence(baseline)}"
        outcome = "FAIL" if candidate.wrong else "PASS"
        yield Check(DATA, outcome, reason, READ_BACK, bench, adapter, point, {})


def baseline_data(measured: Measurements) -> list[str]:
    """A sentence for each point at which the baseline's data was wrong: nobody judges it, and everybody must know."""
    return [
        f"{bench}: {adapter} {point}: the baseline's data is wrong: {_readback_sentence(arms['baseline'])}"
        for (bench, adapter, point), arms in sorted(measured.data.items())
        if "baseline" in arms and arms["baseline"].wrong
    ]


def _readback_sentence(readback: LookedAt) -> str:
    sectors = f"{readback.sectors:,} sectors" if readback.sectors != 1 else "1 sector"
    if readback.first is None:
        return f"{sectors} were read back after {plural(readback.launches, 'launch')}, none was wrong"
    where = f"{readback.wrong_launches} of {plural(readback.launches, 'launch')}"
    return f"{readback.wrong:,} of {sectors} read back are wrong, in {where}; {_first(readback.first)}"


def _first(first: Mapping[str, object]) -> str:
    """Where the first wrong sector is, and where its content begins to differ, in hexadecimal."""
    expected, read = str(first["expected"]), str(first["found"])
    differs = next((at for at in range(0, len(read), 2) if expected[at : at + 2] not in ("??", read[at : at + 2])), 0)
    begin = min(differs // 32 * 32, len(read) - 2 * _SHOWN)
    shown = slice(begin, begin + 2 * _SHOWN)
    address, bs = int(str(first["address"])), int(str(first["bs"]))
    return (
        f"the first is sector {address // 512} (byte {address}, in a block of {bs} bytes) of {first['drive']}, "
        f"read back after launch {first['launch']}: {first['why']}; bytes {begin // 2} to {begin // 2 + _SHOWN - 1}: "
        f"expected {expected[shown]}, found {read[shown]}; a second read of it alone found {first['again']}"
    )
