# SPDX-License-Identifier: Apache-2.0
"""The candidate against limits of a specification."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy import special

from storqual.judge.numbers import amount
from storqual.judge.question import Judged, Question, Unit, missing, units_of
from storqual.metrics import Metric


def judge_against_limits(question: Question, metric: Metric) -> Judged:
    """`min` and `max`: held when the interval of the mean lies inside, broken when it lies outside.

    The interval is of the mean over sessions where the arm has several, else over launches. Counts are held when no
    launch breaks the limit: there is no allowance for some.
    """
    found = units_of(question.place.of("candidate"), metric)
    if isinstance(found, str):
        return missing(question, found)
    rule = question.criterion
    low = -math.inf if rule.min is None else rule.min
    high = math.inf if rule.max is None else rule.max
    asked = " and ".join(
        text
        for text in (
            f"at least {amount(low, metric)}" if rule.min is not None else "",
            f"at most {amount(high, metric)}" if rule.max is not None else "",
        )
        if text
    )
    values = by_session(found) if question.by_session else [unit.value for unit in found]
    mean = math.fsum(values) / len(values)
    reference = rule.min if rule.min is not None else rule.max

    def judged(outcome: str, reason: str) -> Judged:
        return Judged(outcome, reason, candidate=mean, reference=reference, source=found[0].source)

    if metric.kind == "count":
        worst = [unit.value for unit in found if not low <= unit.value <= high]
        if worst:
            return judged("FAIL", f"{metric.label}: {amount(worst[0], metric)} in a launch, {asked} is asked")
        return judged("PASS", f"{metric.label}: {amount(mean, metric)}, {asked} is asked")
    if len(values) < 2:
        unit = "session" if question.by_session else "launch"
        return judged(
            "INCONCLUSIVE", f"{amount(mean, metric)} from one {unit}, which has no interval; {asked} is asked"
        )
    reach = float(special.stdtrit(len(values) - 1, 1 - rule.alpha) * np.std(values, ddof=1) / math.sqrt(len(values)))
    said = (
        f"{metric.label} is {amount(mean, metric)} "
        f"({amount(mean - reach, metric)} to {amount(mean + reach, metric)}), {asked} is asked"
    )
    if mean - reach >= low and mean + reach <= high:
        room = min(_room(mean - reach, low), _room(mean + reach, high))
        near = rule.marginal is not None and room < rule.marginal
        return judged("MARGINAL" if near else "PASS", said)
    outside = mean + reach < low or mean - reach > high
    return judged("FAIL" if outside else "INCONCLUSIVE", said)


def _room(end: float, limit: float) -> float:
    """How far an interval's end is from a limit, as a fraction of the limit."""
    return math.inf if not math.isfinite(limit) or limit == 0 else abs(end - limit) / abs(limit)


def by_session(units: Sequence[Unit]) -> list[float]:
    """The mean of each session, in the order the sessions began."""
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for unit in units:
        sessions[unit.session].append(unit.value)
    return [math.fsum(values) / len(values) for values in sessions.values()]
