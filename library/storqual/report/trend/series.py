# SPDX-License-Identifier: Apache-2.0
"""A bench over time: how far the same drop on the same adapter was from its own usual level in each campaign."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from storqual.statistics.control import Control, individuals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storqual.report.trend.read import PastRun

__all__ = ["FEWEST", "Level", "Series", "series_of"]

_METRIC = "iops"
FEWEST = 2
"""Campaigns from which there is something to compare."""


@dataclass(frozen=True)
class Level:
    """One campaign: deviation from the usual level in percent, median over `points` points (readings)."""

    run: PastRun
    percent: float
    points: int


@dataclass(frozen=True)
class Series:
    """Campaigns in the order of time with their control chart: of an adapter or drive of a bench, under `what`."""

    bench: str
    place: str
    what: str
    levels: tuple[Level, ...]
    control: Control


def series_of(runs: Sequence[PastRun]) -> tuple[Series, ...]:
    """A series for every bench, adapter and baseline drop that at least two campaigns have points in common for.

    The baseline is what should not change: it is compared with itself, point by point, as log-ratios to the point's
    median over the campaigns.
    """
    found: defaultdict[tuple[str, str, str], dict[str, tuple[PastRun, dict[str, float]]]] = defaultdict(dict)
    for run in runs:
        for bench, adapter, point, value in _baselines(run):
            found[bench, adapter, run.drop("baseline")].setdefault(run.name, (run, {}))[1][point] = value
    made = []
    for (bench, adapter, drop), by_run in found.items():
        levels = _levels(list(by_run.values()))
        if len(levels) >= FEWEST:
            control = individuals([level.percent for level in levels])
            made.append(Series(bench, adapter, f"baseline drop {drop}", tuple(levels), control))
    return tuple(sorted(made, key=lambda one: (one.bench, one.place, one.what)))


def _baselines(run: PastRun) -> Iterator[tuple[str, str, str, float]]:
    for row in run.rows:
        value = row.number("reference")
        if row.against == "baseline" and row.text("metric") == _METRIC and value is not None and value > 0:
            yield (*row.key, value)


def _levels(runs: Sequence[tuple[PastRun, dict[str, float]]]) -> list[Level]:
    seen: defaultdict[str, list[float]] = defaultdict(list)
    for _, values in runs:
        for point, value in values.items():
            seen[point].append(math.log(value))
    usual = {point: median(values) for point, values in seen.items() if len(values) >= FEWEST}
    levels = []
    for run, values in runs:
        apart = [math.log(value) - usual[point] for point, value in values.items() if point in usual]
        if apart:
            levels.append(Level(run, 100 * math.expm1(median(apart)), len(apart)))
    return levels
