# SPDX-License-Identifier: Apache-2.0
"""Two adapters at equal load: CPU at equal IOPS, IOPS at equal CPU, from curves that were measured at other points.

A curve is measured by raising the queue depth (or the number of processes); each level gives a load and a response.
Between two neighbouring loads the logarithm of the response is taken as straight. Outside the loads that both
adapters reached nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storqual.analysis.estimates import Estimate, LogLevels, log_estimate, log_levels

__all__ = ["Curve", "common_loads", "curve", "response_at", "shift_at_equal_load"]


@dataclass(frozen=True)
class Curve:
    """Loads and responses of one adapter, rising in load; a curve that bends back is cut at its highest load."""

    load: LogLevels
    response: LogLevels
    order: tuple[int, ...]
    """Places of the levels in ascending order of load."""


def curve(launches: Mapping[float, Sequence[tuple[float, float]]]) -> Curve:
    """A curve from `launches`: level -> (load, response) of each launch. Raises ValueError as `log_levels` does."""
    load = log_levels({level: [one for one, _ in pairs] for level, pairs in launches.items()})
    response = log_levels({level: [other for _, other in pairs] for level, pairs in launches.items()})
    rising: list[int] = []
    for place in range(len(load.at)):
        if not rising or load.mean[place] > load.mean[rising[-1]]:
            rising.append(place)
    return Curve(load, response, tuple(rising))


def common_loads(first: Curve, second: Curve) -> tuple[float, float] | None:
    """The lowest and the highest load that both reached; None when there is none."""
    low = max(one.load.mean[one.order[0]] for one in (first, second))
    high = min(one.load.mean[one.order[-1]] for one in (first, second))
    return (math.exp(low), math.exp(high)) if low <= high else None


def response_at(one: Curve, load: float) -> Estimate:
    """The response at `load`, between the two levels around it. Raises ValueError outside the curve."""
    estimate, _ = _log_response(one, math.log(load))
    return estimate.exp()


def shift_at_equal_load(first: Curve, second: Curve, load: float) -> Estimate:
    """What the first's response is above the second's at `load`, as a fraction. Raises ValueError outside either."""
    (here, of_here), (there, of_there) = (_log_response(one, math.log(load)) for one in (first, second))
    difference = here.value - there.value
    if of_here is None or of_there is None:
        return Estimate(math.expm1(difference), None, None)
    df = _satterthwaite((of_here, first.response.df), (of_there, second.response.df))
    half = LogLevels((), (), (), 1.0, df).quantile() * math.sqrt(of_here + of_there)
    ratio = log_estimate(difference, half).exp()
    ends = [None if end is None else end - 1 for end in (ratio.low, ratio.high)]
    return Estimate(math.expm1(difference), *ends)


def _log_response(one: Curve, load: float) -> tuple[Estimate, float | None]:
    """Logarithm of the response and its variance: the response's own, and the load's by the slope."""
    loads = [one.load.mean[place] for place in one.order]
    slack = 1e-9
    if not loads[0] - slack <= load <= loads[-1] + slack:
        lowest, highest = math.exp(loads[0]), math.exp(loads[-1])
        raise ValueError(f"load {math.exp(load):g} is outside the curve, {lowest:g} to {highest:g}")
    right = next((place for place, value in enumerate(loads) if value >= load), len(loads) - 1)
    left = max(0, right - 1)
    width = loads[right] - loads[left]
    weight = 1.0 if not width else min(1.0, max(0.0, (load - loads[left]) / width))
    ends = [(one.order[left], 1 - weight), (one.order[right], weight)]
    value = sum(share * one.response.mean[place] for place, share in ends)
    if one.response.variance is None or one.load.variance is None:
        return Estimate(value, None, None), None
    rise = one.response.mean[one.order[right]] - one.response.mean[one.order[left]]
    slope = rise / width if width else 0.0
    noise = one.response.variance + slope**2 * one.load.variance
    variance = noise * sum(share**2 / one.response.count[place] for place, share in ends)
    half = one.response.quantile() * math.sqrt(variance)
    return log_estimate(value, half), variance


def _satterthwaite(*parts: tuple[float, int]) -> int:
    """Degrees of freedom of a sum of variances, rounded down; at least those of the poorest part."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return min(df for _, df in parts)
    return max(
        min(df for _, df in parts), int(total**2 / sum(variance**2 / df for variance, df in parts if variance))
    )
