# SPDX-License-Identifier: Apache-2.0
"""The latency distribution of a point: both arms' histograms on one logarithmic axis, with quantiles."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from storqual.report.axes import latency_axis, latency_text, share_axis, size_axis, value_axis
from storqual.report.cells import Chart, ChartTable
from storqual.report.charts.histogram import Bin, Distribution, histogram
from storqual.report.charts.line import Curve, Mark, curve_panel
from storqual.report.figures import NONE, Figure, Scale, quantity, scale_for
from storqual.report.material import ARMS, quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storqual.run.measurements import PointData


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


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from markupsafe import Markup

    from storqual.report.charts.frame import Axis
    from storqual.run.measurements import PointData
    from storqual_core.measure.load import LoadStep


_Means = dict[int, tuple[float, float]]
"""Load -> mean rate (1/s) and mean response time (ns) over launches."""


def load_charts(point: PointData, ident: str) -> tuple[Chart, ...]:
    """The two pictures of a point whose launches go to a latency cap; none for any other."""
    means = {arm: _means(point.loads[arm]) for arm in ARMS if point.loads.get(arm)}
    if not means:
        return ()
    scale = scale_for("ns", [response for arm in means.values() for _, response in arm.values()])
    table = _load_table(means, scale, point)
    rate = _panel(
        f"{ident}-r",
        "IOPS against load",
        {arm: [(load, iops) for load, (iops, _) in found.items()] for arm, found in means.items()},
        lambda loads: size_axis("outstanding per drive", loads, sizes=False),
        "IOPS",
    )
    response = _panel(
        f"{ident}-t",
        "Response time against IOPS",
        {arm: [(iops, ns / scale.divisor) for iops, ns in found.values()] for arm, found in means.items()},
        lambda rates: value_axis("IOPS", max(rates)),
        scale.unit,
    )
    return (Chart("IOPS against load", rate, table), Chart("Response time against IOPS", response, table))


def _means(steps: Sequence[LoadStep]) -> _Means:
    by_load: defaultdict[int, list[LoadStep]] = defaultdict(list)
    for step in steps:
        by_load[step.load].append(step)
    return {
        load: (
            sum(step.rate for step in members) / len(members),
            sum(step.response_ns for step in members) / len(members),
        )
        for load, members in sorted(by_load.items())
    }


def _panel(
    ident: str,
    title: str,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    across: Callable[[Sequence[float]], Axis],
    up: str,
) -> Markup:
    axis = across([x for marks in curves.values() for x, _ in marks])
    highest = max(y for marks in curves.values() for _, y in marks)
    drawn = [Curve(arm, arm, tuple(Mark(x, y) for x, y in marks)) for arm, marks in curves.items()]
    described = f"{title}, one mark for each load that was tried; the numbers are in the table."
    return curve_panel(ident, title, described, drawn, axis, value_axis(up, highest))


def _load_table(means: Mapping[str, _Means], scale: Scale, point: PointData) -> ChartTable:
    heads = ["Load"]
    for arm in means:
        heads += [f"IOPS, {arm}", f"Response time, {arm}, {scale.unit}"]
    rows: list[tuple[Figure | str, ...]] = []
    for load in sorted({load for found in means.values() for load in found}):
        row: list[Figure | str] = [Figure(str(load), load, f"samples:load:{point.planned.point}:{load}")]
        for arm, found in means.items():
            rate, response = found.get(load, (None, None))
            source = f"samples:load:{point.planned.point}:{load}:{arm}"
            row += [Scale("").figure(rate, source), scale.figure(response, source)] if load in found else [NONE, NONE]
        rows.append(tuple(row))
    return ChartTable("Load curve", tuple(heads), tuple(rows))
