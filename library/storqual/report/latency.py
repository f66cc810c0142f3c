# SPDX-License-Identifier: Apache-2.0
"""The latency distribution of a point: both arms' histograms on one logarithmic axis, with quantiles."""

from __future__ import annotations

import bisect
import math
from itertools import pairwise
from typing import TYPE_CHECKING

from storqual.report.aggregate import quantile
from storqual.report.axes import latency_axis, latency_text, share_axis
from storqual.report.charts.histogram import Bin, Distribution, histogram
from storqual.report.figures import NONE, Figure, quantity
from storqual.report.material import ARMS
from storqual.report.view import Chart, ChartTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storqual.report.material import PointData

__all__ = ["latency_charts"]

_BINS = 14
_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("largest", 1.0))


def latency_charts(point: PointData, ident: str) -> tuple[Chart, ...]:
    """A chart for reads and one for writes, as far as there were any."""
    charts: list[Chart] = []
    for side in ("read", "write"):
        arms = {arm: point.bins[arm, side] for arm in ARMS if point.bins.get((arm, side))}
        if arms:
            charts.append(_chart(point, f"{ident}-{side}", side, arms))
    return tuple(charts)


def _chart(point: PointData, ident: str, side: str, arms: Mapping[str, Mapping[int, int]]) -> Chart:
    low = min(min(bins) for bins in arms.values())
    high = max(max(bins) for bins in arms.values())
    edges = _edges(max(low, 1), max(high, 1))
    shares = {arm: _shares(bins, edges) for arm, bins in arms.items()}
    distributions = [
        Distribution(
            arm,
            tuple(Bin(*ends, share) for ends, share in zip(_pairs(edges), shares[arm], strict=True)),
        )
        for arm in arms
    ]
    top = max(max(values) for values in shares.values())
    title = f"Latency of {side}s"
    described = f"Share of {side}s by latency, both arms; numbers in the table below."
    picture = histogram(ident, title, described, distributions, latency_axis(edges[0], edges[-1]), share_axis(top))
    return Chart(title, picture, _table(point, title, side, edges, shares), beside=_quantiles(point, side, arms))


def _edges(low: int, high: int) -> tuple[float, ...]:
    """Edges of bins of equal ratio around all values."""
    bottom, top = low / 1.1, high * 1.1
    if top / bottom < 2:
        bottom, top = bottom / 1.3, top * 1.3
    return tuple(bottom * (top / bottom) ** (step / _BINS) for step in range(_BINS + 1))


def _pairs(edges: Sequence[float]) -> list[tuple[float, float]]:
    return list(pairwise(edges))


def _shares(bins: Mapping[int, int], edges: Sequence[float]) -> list[float]:
    counts = [0] * (len(edges) - 1)
    for value, number in bins.items():
        at = bisect.bisect_right(edges, value) - 1
        counts[min(max(at, 0), len(counts) - 1)] += number
    total = sum(counts)
    return [number / total for number in counts]


def _quantiles(point: PointData, side: str, arms: Mapping[str, Mapping[int, int]]) -> ChartTable:
    rows: list[tuple[Figure | str, ...]] = []
    for name, at in _QUANTILES:
        rows.append((name, *[_quantile(point, side, arm, arms.get(arm), name, at) for arm in ARMS]))
    return ChartTable(f"Latency of {side}s, quantiles", ("Quantile", "Baseline", "Candidate"), tuple(rows))


def _table(
    point: PointData,
    title: str,
    side: str,
    edges: Sequence[float],
    shares: Mapping[str, Sequence[float]],
) -> ChartTable:
    rows: list[tuple[Figure | str, ...]] = []
    for number, (low, high) in enumerate(_pairs(edges)):
        found = [shares[arm][number] if arm in shares else None for arm in ARMS]
        if any(found):
            label = f"{latency_text(low)} to {latency_text(high)}"
            rows.append(
                (
                    Figure(label, None, "samples:edges"),
                    *(_share(point, side, arm, value) for arm, value in zip(ARMS, found, strict=True)),
                )
            )
    return ChartTable(title, ("Latency", "Baseline", "Candidate"), tuple(rows))


def _quantile(point: PointData, side: str, arm: str, bins: Mapping[int, int] | None, name: str, at: float) -> Figure:
    found = quantile(bins, at) if bins else None
    where = f"{name}:{side}:{'/'.join(point.planned.key)}:{arm}"
    return NONE if found is None else quantity(found, "ns", f"samples:quantile:{where}")


def _share(point: PointData, side: str, arm: str, value: float | None) -> Figure:
    if value is None or math.isnan(value):
        return NONE
    return Figure(f"{100 * value:.2f} %", 100 * value, f"samples:share:{side}:{'/'.join(point.planned.key)}:{arm}")
