# SPDX-License-Identifier: Apache-2.0
"""Load curves of a point: I/Os per second against load, response time against I/Os per second, both arms."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from storqual.report.axes import size_axis, value_axis
from storqual.report.charts.line import Curve, Mark, curve_panel
from storqual.report.figures import NONE, Figure, Scale, scale_for
from storqual.report.material import ARMS
from storqual.report.view import Chart, ChartTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from markupsafe import Markup

    from storqual.report.charts.frame import Axis
    from storqual.report.material import PointData
    from storqual_core.load_search import LoadStep

__all__ = ["load_charts"]

_Means = dict[int, tuple[float, float]]
"""Load -> mean rate (1/s) and mean response time (ns) over launches."""


def load_charts(point: PointData, ident: str) -> tuple[Chart, ...]:
    """The two pictures of a point whose launches go to a latency cap; none for any other."""
    means = {arm: _means(point.loads[arm]) for arm in ARMS if point.loads.get(arm)}
    if not means:
        return ()
    scale = scale_for("ns", [response for arm in means.values() for _, response in arm.values()])
    table = _table(means, scale, point)
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


def _table(means: Mapping[str, _Means], scale: Scale, point: PointData) -> ChartTable:
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
