# SPDX-License-Identifier: Apache-2.0
"""The control chart of a bench: does its golden reference do what it always did.

An individuals chart of one value per campaign, the mean of its readings. Limits come from the campaigns before the
one that is looked at. Within a campaign the readings say nothing about campaigns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from storqual.judge.earlier import Reading
from storqual.statistics.control import individuals

_SMALLEST_REACH = 0.0015
"""Half width of the limits, as a share of the centre, below which no bench is believed to repeat."""


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A campaign on the chart of its bench; limits are None while there are too few campaigns before it."""

    bench: str
    drive: str
    run: str
    moment: str
    iops: float
    readings: int
    low: float | None
    high: float | None

    @property
    def suspect(self) -> str:
        """Why the bench was out of control; empty when it was not, or nobody knows."""
        if self.low is None or self.high is None or self.low <= self.iops <= self.high:
            return ""
        return (
            f"the golden reference of {self.bench} gave {self.iops:.0f} IOPS, outside of its limits "
            f"{self.low:.0f} to {self.high:.0f}: the bench was out of control"
        )


def control_chart(readings: Iterable[Reading]) -> list[ChartPoint]:
    """The charts of all benches, oldest campaign first; a campaign that was suspect does not widen later limits."""
    campaigns: dict[tuple[str, str], dict[str, list[Reading]]] = {}
    for reading in readings:
        campaigns.setdefault((reading.bench, reading.drive), {}).setdefault(reading.run, []).append(reading)
    points = []
    for (bench, drive), runs in campaigns.items():
        good: list[float] = []
        for run, members in sorted(runs.items(), key=lambda item: min(one.moment for one in item[1])):
            value = sum(one.iops for one in members) / len(members)
            low, high = _limits(good)
            moment = min(one.moment for one in members)
            point = ChartPoint(bench, drive, run, moment, value, len(members), low, high)
            if not point.suspect:
                good.append(value)
            points.append(point)
    return points


def limits_after(readings: Iterable[Reading]) -> dict[tuple[str, str], tuple[float, float]]:
    """Limits for the next campaign, by bench and drive, where there were enough that were in control."""
    good: dict[tuple[str, str], list[float]] = {}
    for point in control_chart(readings):
        if not point.suspect:
            good.setdefault((point.bench, point.drive), []).append(point.iops)
    found = {}
    for key, values in good.items():
        low, high = _limits(values)
        if low is not None and high is not None:
            found[key] = (low, high)
    return found


def _limits(values: list[float]) -> tuple[float | None, float | None]:
    """Limits from campaigns that were in control; None while there are too few."""
    if not values:
        return None, None
    chart = individuals(values)
    if chart.limits is None:
        return None, None
    reach = max(chart.limits[1] - chart.centre, _SMALLEST_REACH * chart.centre)
    return chart.centre - reach, chart.centre + reach
