# SPDX-License-Identifier: Apache-2.0
"""Pictures of a comparison: every subject over one factor, IOPS against CPU, shapes beside published ones."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from storqual.base.factor_names import AXIS_NAMES, level_text
from storqual.metrics import METRICS
from storqual.report.axes import size_axis, value_axis
from storqual.report.cells import Chart, ChartTable
from storqual.report.charts.frame import Axis
from storqual.report.charts.line import Curve, Mark, curve_panel
from storqual.report.figures import DASH, Figure, Scale, count, scale_for
from storqual.statistics.estimates import log_levels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storqual.study.adapters import Contest
    from storqual.study.cells import Line
    from storqual.study.published import Beside


_LOOKS = 5


def contest_chart(contest: Contest, ident: str) -> Chart:
    """One metric of all subjects over the contest's factor, with 95 % intervals of the mean."""
    metric = METRICS[contest.metric]
    data = {
        line.subject: log_levels(line.values(contest.metric)) for line in contest.lines if line.values(contest.metric)
    }
    scale = scale_for(
        metric.unit, [value for line in contest.lines for v in line.values(contest.metric).values() for value in v]
    )
    curves, rows = [], []
    for at, (subject, levels) in enumerate(data.items()):
        marks = []
        for number, level in enumerate(levels.at):
            mean = levels.estimate(levels.mean[number], 1 / levels.count[number]).exp()
            marks.append(_mark(level, mean.value, mean.low, mean.high, scale))
            where = f"study:{contest.title}:{contest.metric}:{subject}:{level:g}"
            interval = DASH if mean.low is None or mean.high is None else _interval(mean.low, mean.high, scale, where)
            rows.append(
                (
                    level_text(contest.along, int(level)),
                    subject,
                    scale.figure(mean.value, where),
                    interval,
                    count(levels.count[number], f"{where}:launches"),
                )
            )
        curves.append(Curve(f"subject{at % _LOOKS}", subject, tuple(marks)))
    over = AXIS_NAMES.get(contest.along, contest.along)
    title = f"{metric.label}, {contest.title}"
    across = size_axis(over, [mark.x for curve in curves for mark in curve.marks], sizes=contest.along == "bs")
    highest = max(mark.high if mark.high is not None else mark.y for curve in curves for mark in curve.marks)
    described = f"{title} over {over}, {', '.join(data)}; numbers in the table below."
    picture = curve_panel(ident, title, described, curves, across, value_axis(scale.unit, highest))
    heads = (over.capitalize(), "Adapter", f"{metric.label}, {scale.unit}", "95 % interval", "Launches")
    return Chart(title, picture, ChartTable(title, heads, tuple(rows)))


def _mark(x: float, value: float, low: float | None, high: float | None, scale: Scale) -> Mark:
    ends = (None if end is None else end / scale.divisor for end in (low, high))
    return Mark(x, value / scale.divisor, *ends)


def _interval(low: float, high: float, scale: Scale, where: str) -> Figure:
    return Figure(f"{scale.figure(low, '')} to {scale.figure(high, '')}", None, f"{where}:interval")


def iops_against_cpu(contest: Contest, ident: str) -> Chart | None:
    """IOPS over the CPU that they took, one mark per level (QLA1040 report, figure 10); None where CPU is unknown."""
    curves, rows = [], []
    for at, line in enumerate(contest.lines):
        marks = sorted(_loads(line))
        if marks:
            curves.append(Curve(f"subject{at % _LOOKS}", line.subject, tuple(Mark(x, y) for x, y, _ in marks)))
            for x, y, level in marks:
                where = f"study:{contest.title}:iops-cpu:{line.subject}:{level}"
                rows.append((level, line.subject, Scale("%").figure(x, where), Scale("IOPS").figure(y, where)))
    if len(curves) < 2:
        return None
    title = f"IOPS against CPU, {contest.title}"
    across = value_axis("CPU, %", max(mark.x for curve in curves for mark in curve.marks))
    up = value_axis("IOPS", max(mark.y for curve in curves for mark in curve.marks))
    picture = curve_panel(ident, title, f"{title}; numbers in the table below.", curves, across, up)
    heads = (AXIS_NAMES.get(contest.along, contest.along).capitalize(), "Adapter", "CPU, %", "IOPS")
    return Chart(title, picture, ChartTable(title, heads, tuple(rows)))


def _loads(line: Line) -> Iterator[tuple[float, float, str]]:
    """CPU in percent, IOPS and the level's name, means of each level."""
    for cell in line.cells:
        busy, rate = cell.mean("cpu_percent"), cell.mean("iops")
        if busy is not None and rate is not None:
            yield busy, rate, level_text(line.along, cell.levels[line.along])


def shape_charts(found: Sequence[Beside], ident: str) -> Iterator[Chart]:
    """Published series over a number (ports) beside ours, each relative to its own first value."""
    series: defaultdict[str, list[Beside]] = defaultdict(list)
    for one in found:
        if one.theirs.metric is not None and one.theirs.label is not None and one.theirs.label.isdigit():
            series[f"{METRICS[one.theirs.metric].label}: {one.theirs.source}"].append(one)
    for number, (title, members) in enumerate(series.items()):
        subjects = list(dict.fromkeys(one.cell.subject for one in members))
        theirs = {int(one.theirs.label or 0): one.theirs.value for one in members}
        if len(theirs) < 2:
            continue
        curves = [Curve("published", "published", _relative(theirs))]
        for at, subject in enumerate(subjects):
            ours = {int(one.theirs.label or 0): one.ours for one in members if one.cell.subject == subject}
            if len(ours) > 1:
                curves.append(Curve(f"subject{at % _LOOKS}", subject, _relative(ours)))
        if len(curves) < 2:
            continue
        across = size_axis("ports", list(theirs), sizes=False)
        up: Axis = value_axis("of the first", max(mark.y for curve in curves for mark in curve.marks))
        described = f"{title}, relative to the first value of each; numbers in the table above."
        yield Chart(title, curve_panel(f"{ident}-{number}", title, described, curves, across, up), None)


def _relative(values: dict[int, float]) -> tuple[Mark, ...]:
    first = values[min(values)]
    return tuple(Mark(float(at), values[at] / first) for at in sorted(values))
