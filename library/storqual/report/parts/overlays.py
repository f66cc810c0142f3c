# SPDX-License-Identifier: Apache-2.0
"""Curves of ours with what was published of the same points, and how the two compare."""

from __future__ import annotations

from collections.abc import Mapping

from storqual.base.factor_names import AXIS_NAMES, level_text
from storqual.metrics import METRICS
from storqual.report.axes import rate_axis, size_axis
from storqual.report.charts.line import Mark, PlottedCurve, curve_panel
from storqual.report.charts.svg import SUBJECTS
from storqual.report.figures import DASH, Figure, Scale, scale_for
from storqual.report.view import Chart, ChartTable
from storqual.study.published import Overlay

_Row = tuple[str | Figure, ...]


def overlay_chart(one: Overlay, ident: str) -> Chart:
    """Lines of ours and the published ones in one picture; the table has the ratio of each pair."""
    metric = METRICS[one.metric]
    ours = {line.subject: _means(line.values(one.metric)) for line in one.lines}
    values = [value for levels in (*ours.values(), *one.theirs.values()) for value in levels.values()]
    scale = scale_for(metric.unit, values)
    curves = [
        PlottedCurve("published", "published" if number == 0 else "", _marks(levels, scale))
        for number, levels in enumerate(one.theirs.values())
    ]
    rows: list[_Row] = []
    for at, (subject, levels) in enumerate(ours.items()):
        curves.append(PlottedCurve(f"subject{at % SUBJECTS}", subject, _marks(levels, scale)))
        for level, value in levels.items():
            where = f"study:overlay:{one.title}:{one.metric}:{subject}:{level:g}"
            found = [(source, theirs[level]) for source, theirs in one.theirs.items() if level in theirs]
            shown = level_text(one.along, int(level) if level.is_integer() else level)
            for source, published in found:
                ratio = Scale("").figure(value / published, f"{where}:{source}:ratio")
                rows.append(
                    (shown, subject, scale.figure(value, where), scale.figure(published, where), ratio, source)
                )
            if not found:
                rows.append((shown, subject, scale.figure(value, where), DASH, DASH, DASH))
    over = AXIS_NAMES.get(one.along, one.along)
    title = f"{metric.label}, {one.title}"
    marks = [mark for curve in curves for mark in curve.marks]
    across = size_axis(over, [mark.x for mark in marks], sizes=one.along == "bs")
    described = f"{title} over {over}: published, and {', '.join(ours)}; numbers in the table below."
    picture = curve_panel(ident, title, described, curves, across, rate_axis(scale.unit, [mark.y for mark in marks]))
    heads = (over.capitalize(), "Ours", f"{metric.label}, {scale.unit}", "Published", "Ours of published", "Source")
    return Chart(title, picture, ChartTable(title, heads, tuple(rows)))


def _means(values: dict[float, tuple[float, ...]]) -> dict[float, float]:
    return {level: sum(launches) / len(launches) for level, launches in sorted(values.items())}


def _marks(levels: Mapping[float, float], scale: Scale) -> tuple[Mark, ...]:
    return tuple(Mark(level, levels[level] / scale.divisor) for level in sorted(levels))
