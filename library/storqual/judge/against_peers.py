# SPDX-License-Identifier: Apache-2.0
"""An adapter against the others at the same point, inside one arm."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from storqual.judge.decision import as_fraction, limits_for
from storqual.judge.numbers import percent, plural
from storqual.judge.question import Judged, Question, Unit, finite, missing, units_of
from storqual.metrics import Metric
from storqual.statistics.noise import LAUNCH_FLOOR, TELLS_NOTHING

CI_SIDE = 0.025


def judge_against_peers(question: Question, metric: Metric) -> Judged:
    """Compare with the mean of the other adapters in the candidate arm.

    All adapters of a bench are measured in the same sessions: each session gives one ratio, in which what the session
    does to all of them cancels. Where there is one session only, launches are compared in their order.
    """
    mine = units_of(question.place.of("candidate"), metric)
    if isinstance(mine, str):
        return missing(question, mine)
    others = _others(question, metric)
    if not others:
        return missing(question, "no other adapter was measured at this point")
    if min(unit.value for unit in mine) <= 0:
        return missing(question, f"{metric.label} is not above zero in some launch: a ratio means nothing")
    rule = question.criterion
    sign = 1.0 if metric.better == "higher" else -1.0
    ratios, unit = _ratios(mine, others)
    values = [one.value for units in others.values() for one in units]
    mean, level = math.fsum(one.value for one in mine) / len(mine), math.fsum(values) / len(values)
    if len(ratios) < 2:
        return Judged("INCONCLUSIVE", f"one {unit} has no interval", candidate=mean, reference=level)
    limits = limits_for(rule.margin, rule.indifference, rule.alpha, metric.better)
    shift = sign * math.fsum(ratios) / len(ratios)
    error = max(float(np.std(ratios, ddof=1)), LAUNCH_FLOOR) / math.sqrt(len(ratios))
    df = len(ratios) - 1
    one_sided = float(special.stdtrit(df, 1 - rule.alpha)) * error
    reach = float(special.stdtrit(df, 1 - CI_SIDE)) * error
    outcome = "INCONCLUSIVE"
    if shift - one_sided > limits.margin:
        outcome = "PASS"
    elif shift + one_sided < limits.indifference:
        outcome = "FAIL"
    if reach > TELLS_NOTHING and outcome == "INCONCLUSIVE":
        why = f"{plural(len(ratios), unit)} of {metric.label} differ by too much to tell an interval"
        return Judged(outcome, why, candidate=mean, reference=level, unit=unit, source=mine[0].source)
    ends = [as_fraction(end, metric.better) for end in (shift, shift - reach, shift + reach)]
    return Judged(
        outcome,
        f"{metric.label} is {percent(abs(ends[0]))} {'worse' if ends[0] < 0 else 'better'} than the mean of "
        f"{', '.join(sorted(others))} ({percent(ends[1], signed=True)} to {percent(ends[2], signed=True)}, "
        f"{plural(len(ratios), unit)})",
        candidate=mean,
        reference=level,
        shift=finite(ends[0]),
        ci95=(ends[1], ends[2]),
        margin=rule.margin,
        indifference=rule.indifference,
        unit=unit,
        source=mine[0].source,
    )


def _others(question: Question, metric: Metric) -> dict[str, list[Unit]]:
    """The other adapters' values; one with a launch that did not run as asked is left out."""
    others: dict[str, list[Unit]] = {}
    for name, place in question.peers:
        launches = place.of("candidate")
        if not launches or any(launch.status != "ok" for launch in launches):
            continue
        found = units_of(launches, metric)
        if not isinstance(found, str) and min(unit.value for unit in found) > 0:
            others[name] = found
    return others


def _ratios(mine: Sequence[Unit], others: Mapping[str, Sequence[Unit]]) -> tuple[list[float], str]:
    """Log-ratios to the mean of the others, one per session they share; per launch where that is one at most."""
    own = _by_session(mine)
    theirs = [_by_session(units) for units in others.values()]
    shared = [session for session in own if all(session in one for one in theirs)]
    if len(shared) >= 2:
        return [
            own[session] - math.fsum(one[session] for one in theirs) / len(theirs) for session in shared
        ], "session"
    count = min(len(mine), *(len(units) for units in others.values()))
    return [
        math.log(mine[number].value)
        - math.fsum(math.log(units[number].value) for units in others.values()) / len(others)
        for number in range(count)
    ], "launch"


def _by_session(units: Sequence[Unit]) -> dict[str, float]:
    """The mean logarithm of each session."""
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for unit in units:
        sessions[unit.session].append(math.log(unit.value))
    return {session: math.fsum(values) / len(values) for session, values in sessions.items()}
