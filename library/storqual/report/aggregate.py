# SPDX-License-Identifier: Apache-2.0
"""From launches to what a curve shows: the mean per point and arm with an interval, and quantiles of a histogram.

These describe; they decide nothing. The interval of a curve is that of the arm's own mean; the interval that a
verdict rests on is that of the shift, and it comes from verdict.json.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from storqual.report.material import Launch, PointData

__all__ = ["Mean", "Spread", "mean_of", "quantile", "spread_of"]

_CONFIDENCE = 0.975


@dataclass(frozen=True)
class Mean:
    """A mean with the ends of its 95 % interval (None without a second unit), and how many launches it is of."""

    value: float
    low: float | None
    high: float | None
    launches: int


@dataclass(frozen=True)
class Spread:
    """The relative standard deviation between units of one arm, pooled over points, and its degrees of freedom."""

    relative: float
    freedom: int


def _units(launches: Sequence[Launch], metric: str) -> list[float]:
    """The values that vary independently: session means where there are sessions to compare, else launches."""
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for launch in launches:
        if metric in launch.values:
            sessions[launch.session].append(launch.values[metric])
    if len(sessions) > 1:
        return [sum(values) / len(values) for values in sessions.values()]
    return [value for values in sessions.values() for value in values]


def spread_of(points: Iterable[PointData], arm: str, metric: str) -> Spread:
    """Pool the relative spread of `metric` over points: one point alone has too few units to know its own."""
    total, freedom = 0.0, 0
    for point in points:
        units = _units(point.good(arm), metric)
        mean = sum(units) / len(units) if units else 0.0
        if len(units) < 2 or mean == 0:
            continue
        total += sum((value / mean - 1) ** 2 for value in units)
        freedom += len(units) - 1
    return Spread(math.sqrt(total / freedom) if freedom else 0.0, freedom)


def mean_of(launches: Sequence[Launch], metric: str, spread: Spread) -> Mean | None:
    """The mean of `metric` over launches with the interval that `spread` gives; None without a value."""
    values = [launch.values[metric] for launch in launches if metric in launch.values]
    if not values:
        return None
    mean = sum(values) / len(values)
    units = len(_units(launches, metric))
    if spread.freedom < 1:
        return Mean(mean, None, None, len(values))
    half = _student(spread.freedom) * spread.relative / math.sqrt(units) * abs(mean)
    return Mean(mean, mean - half, mean + half, len(values))


@cache
def _student(freedom: int) -> float:
    """The quantile of Student's t that bounds a 95 % interval."""
    from scipy.special import stdtrit  # noqa: PLC0415 - a tenth of a second that a page without intervals saves

    return float(stdtrit(freedom, _CONFIDENCE))


def quantile(bins: Mapping[int, int], fraction: float) -> int | None:
    """The smallest bin value that at least `fraction` of all counts do not exceed; None for an empty histogram."""
    total = sum(bins.values())
    if total <= 0:
        return None
    wanted, seen = fraction * total, 0
    for value in sorted(bins):
        seen += bins[value]
        # counts are whole and `fraction` is not: 0.9 * 10 is a little more than nine
        if seen >= wanted - 1e-9 * total:
            return value
    return max(bins)
