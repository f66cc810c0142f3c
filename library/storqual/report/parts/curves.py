# SPDX-License-Identifier: Apache-2.0
"""IOPS, throughput and CPU time over block size, per adapter, both arms with intervals.

Where the plan holds whole curves they are drawn as curves, a small multiple per workload; where it holds a thin
fraction of the matrix, its points are rows under their block size. Curves of a study have what was published of the
same points beside them.

How launches lie: those of one point as ratios to the baseline's mean, and all points, arm against arm.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from storqual.base.figures import AXIS_NAMES, DASH, NONE, Scale, ShownNumber, level_text, scale_for
from storqual.base.table import Table
from storqual.metrics import METRICS
from storqual.report.charts import (
    FEWEST_OF_A_LINE,
    DotRow,
    LimitLine,
    Mark,
    PlottedCurve,
    StripRow,
    along,
    combination,
    curve_panel,
    dot_chart,
    levels,
    rate_axis,
    scatter,
    short,
    size_axis,
    strip,
    value_axis,
)
from storqual.report.criterion import JudgedCriterion, adapter_name
from storqual.report.material import ARMS, CURVES, Material, Measure, mean_of, measure, spread_of
from storqual.report.svg import SUBJECTS, Axis, decade_ticks, nice_ticks
from storqual.report.view import DrawnChart
from storqual.run.measurements import PointData
from storqual.statistics.estimates import Estimate, Spread
from storqual.study.findings import Overlay

_FEWEST = 12
_MOST_TICKS = 5
_TONES = {"PASS": "pass", "MARGINAL": "marginal", "FAIL": "fail", "INCONCLUSIVE": "inconclusive"}


def launch_strip(point: PointData, rows: Sequence[JudgedCriterion], ident: str) -> DrawnChart | None:
    """The launches of a point by its first required criterion against the baseline; None without two arms."""
    row = next((row for row in rows if row.against == "baseline" and row.required), None)
    if row is None:
        return None
    name = row.text("metric")
    values = {arm: point.values(arm, name) for arm in ARMS}
    mean = fmean(values["baseline"]) if values["baseline"] else 0.0
    if mean <= 0 or not values["candidate"]:
        return None
    ratios = [StripRow(arm, tuple(value / mean for value in numbers)) for arm, numbers in values.items()]
    limits = _limits(row)
    inside = [1.0, *(ratio for strip_row in ratios for ratio in strip_row.ratios), *(limit.ratio for limit in limits)]
    low, high = min(inside), max(inside)
    room = max(high - low, 0.01) * 0.06
    ticks = nice_ticks(low - room, high + room, _MOST_TICKS)
    label = measure(name).label
    along = Axis("mean of the baseline is 1", low - room, high + room, tuple((tick, f"{tick:g}") for tick in ticks))
    title = f"{label} of each launch"
    described = "A mark for each launch, a ratio to the baseline's mean, with both limits; numbers with the launches."
    return DrawnChart(title, strip(ident, title, described, ratios, limits, along), None)


def _limits(row: JudgedCriterion) -> list[LimitLine]:
    """Where the limits of a loss lie as ratios: below one where more is better, above it where less is."""
    lines: list[LimitLine] = []
    for field, name, hard in (("margin", "unacceptable", True), ("indifference", "acceptable", False)):
        size = row.number(f"{field}_percent")
        if size is not None and 0 < size < 100:
            lines.append(LimitLine(1 + (1 if row.text("better") == "lower" else -1) * size / 100, name, hard))
    return lines


def overview(material: Material, rows: Sequence[JudgedCriterion], ident: str) -> DrawnChart | None:
    """All points of a large matrix, baseline against candidate in IOPS; None for few points or one arm."""
    name = CURVES[0].name
    outcomes: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if row.text("metric") == name and row.against == "baseline":
            outcomes[row.key] = row.outcome
    by_outcome: dict[str, list[tuple[tuple[str, str, str], float, float]]] = {}
    for key, point in material.points.items():
        means = [_mean(point, arm, name) for arm in ARMS]
        if None not in means and min(means[0] or 0.0, means[1] or 0.0) > 0:
            by_outcome.setdefault(outcomes.get(key, ""), []).append((key, means[0] or 0.0, means[1] or 0.0))
    means_shown = [value for pairs in by_outcome.values() for _, *pair in pairs for value in pair]
    if len(means_shown) < 2 * _FEWEST:
        return None
    low, high = min(means_shown) / 1.2, max(means_shown) * 1.2
    ticks = tuple((tick, short(tick)) for tick in decade_ticks(low, high, 6))
    groups = [
        (_TONES.get(outcome, "skipped"), [(before, after) for _, before, after in pairs])
        for outcome, pairs in by_outcome.items()
    ]
    title = f"{measure(name).label} of every point, candidate against baseline"
    picture = scatter(
        ident, title, "A mark for each point; on the line both arms are the same, below it the candidate is worse.",
        groups, Axis("baseline", low, high, ticks, logarithmic=True),
        Axis("candidate", low, high, ticks, logarithmic=True),
    )  # fmt: skip
    return DrawnChart(title, picture, _table(material, by_outcome))


_MOST_ROWS = 200


def _table(material: Material, by_outcome: dict[str, list[tuple[tuple[str, str, str], float, float]]]) -> Table:
    """The points that lie farthest from the line: of a large matrix no more than are read."""
    benches = list(material.run.benches)
    ordered = sorted((mark for group in by_outcome.values() for mark in group), key=lambda mark: mark[2] / mark[1])
    half = _MOST_ROWS // 2
    shown = ordered if len(ordered) <= _MOST_ROWS else [*ordered[:half], *ordered[-half:]]
    scale = scale_for("IOPS", [])
    rows: list[tuple[ShownNumber | str, ...]] = [
        (
            f"{adapter_name(benches, *key[:2])} {key[2]}",
            scale.figure(before, f"samples:mean:iops:{'/'.join(key)}:baseline"),
            scale.figure(after, f"samples:mean:iops:{'/'.join(key)}:candidate"),
        )
        for key, before, after in shown
    ]
    more = "" if len(shown) == len(ordered) else ", those that changed most"
    return Table(f"Estimate IOPS of points{more}", ("Point", "Baseline", "Candidate"), tuple(rows))


def _mean(point: PointData, arm: str, name: str) -> float | None:
    values = point.values(arm, name)
    return fmean(values) if values else None


@dataclass(frozen=True)
class CurveGroup:
    """The small multiples of one metric on one adapter."""

    ident: str
    adapter: str
    metric: str
    charts: tuple[DrawnChart, ...]


_TOGETHER = 3
_Means = dict[tuple[tuple[str, str, str], str], Estimate]


@dataclass(frozen=True)
class _Line:
    """Points that differ in x only, in its order; the label names what tells the line from its neighbours."""

    workload: str
    label: str
    points: tuple[PointData, ...]


def curve_groups(adapter: str, points: Sequence[PointData], ident: str) -> tuple[CurveGroup, ...]:
    """The pictures of one adapter's points; none where nothing was measured."""
    measured = [point for point in points if any(point.good(arm) for arm in ARMS)]
    x = along(point.planned for point in measured)
    if x is None:
        return ()
    measured = [point for point in measured if levels(point.planned).get(x) is not None]
    lines = _lines(measured, x)
    thin = 2 * sum(len(line.points) >= FEWEST_OF_A_LINE for line in lines) < len(lines)
    groups: list[CurveGroup] = []
    charts: list[DrawnChart] = []
    for number, metric in enumerate(CURVES):
        means = _means(measured, metric)
        if not means:
            continue
        scale = scale_for(metric.unit, [mean.value for mean in means.values()])
        if thin:
            charts.append(_rows(f"{ident}-{number}", adapter, measured, x, metric, means, scale))
        else:
            panels = [
                _panel(f"{ident}-{number}-{at}", adapter, title, panel, x, metric, means, scale)
                for at, (title, panel) in enumerate(_panels(lines))
            ]
            shown = tuple(chart for chart in panels if chart is not None)
            groups.append(CurveGroup(f"{ident}-{number}", adapter, metric.label, shown))
    if charts:
        groups.append(CurveGroup(ident, adapter, f"by {AXIS_NAMES.get(x, x)}", tuple(charts)))
    return tuple(groups)


def _means(points: Sequence[PointData], metric: Measure) -> _Means:
    means: _Means = {}
    for arm in ARMS:
        spread: Spread = spread_of(points, arm, metric.name)
        for point in points:
            mean = mean_of(point.good(arm), metric.name, spread)
            if mean is not None:
                means[point.planned.key, arm] = mean
    return means


def _lines(points: Sequence[PointData], x: str) -> list[_Line]:
    """Points by workload and by the combination of the other factors; constant factors go with the workload."""
    workloads: defaultdict[str, list[PointData]] = defaultdict(list)
    for point in points:
        workloads[point.planned.workload].append(point)
    lines: list[_Line] = []
    for workload, members in workloads.items():
        factors = [name for name in levels(members[0].planned) if name != x]
        varying = [n for n in factors if len({levels(point.planned).get(n) for point in members}) > 1]
        fixed = [level_text(n, v) for n, v in combination(members[0].planned, factors) if n not in varying]
        combos: defaultdict[tuple[Any, ...], list[PointData]] = defaultdict(list)
        for point in members:
            combos[combination(point.planned, varying)].append(point)
        for combo, line in combos.items():
            label = ", ".join(level_text(name, value) for name, value in combo)
            ordered = sorted(line, key=lambda point: levels(point.planned)[x])
            lines.append(_Line(", ".join([workload, *fixed]), label, tuple(ordered)))
    return lines


def _panels(lines: Sequence[_Line]) -> list[tuple[str, list[_Line]]]:
    """Few lines of a workload share a panel; many get one each."""
    workloads: defaultdict[str, list[_Line]] = defaultdict(list)
    for line in lines:
        workloads[line.workload].append(line)
    panels: list[tuple[str, list[_Line]]] = []
    for title, members in workloads.items():
        if len(members) <= _TOGETHER:
            panels.append((title, members))
        else:
            panels += [(f"{title}, {line.label}", [_Line(line.workload, "", line.points)]) for line in members]
    return panels


def _panel(
    ident: str, adapter: str, title: str, lines: Sequence[_Line], x: str, metric: Measure, means: _Means, scale: Scale
) -> DrawnChart | None:
    points = [point for line in lines for point in line.points]
    have = [means[p.planned.key, arm] for p in points for arm in ARMS if (p.planned.key, arm) in means]
    if not have:
        return None
    curves = []
    for line in lines:
        for arm in ARMS:
            marks = [
                _mark(levels(p.planned)[x], means[p.planned.key, arm], scale)
                for p in line.points
                if (p.planned.key, arm) in means
            ]
            label = (line.label or arm) if arm == "candidate" or len(lines) == 1 else ""
            curves.append(PlottedCurve(arm, label, tuple(marks)))
    name = f"{metric.label}, {title}"
    over = AXIS_NAMES.get(x, x)
    described = f"{adapter}: {metric.label} over {over}, {title}{_whose(means)}; numbers in the table below."
    across = size_axis(over, [mark.x for curve in curves for mark in curve.marks], sizes=x == "bs")
    picture = curve_panel(ident, name, described, curves, across, value_axis(scale.unit, _highest(have, scale)))
    return DrawnChart(title, picture, _curves_table(name, points, means, metric, scale))


def _rows(
    ident: str, adapter: str, points: Sequence[PointData], x: str, metric: Measure, means: _Means, scale: Scale
) -> DrawnChart:
    """Points as rows under their level of x, in the plan's order below it."""
    ordered = sorted(points, key=lambda point: levels(point.planned)[x])
    rows: list[DotRow] = []
    last: Any = None
    for point in ordered:
        factors = levels(point.planned)
        rest = combination(point.planned, [name for name in factors if name != x])
        label = " ".join([point.planned.workload, *(_tight(name, value) for name, value in rest)])
        marks = {
            arm: _mark(0.0, means[point.planned.key, arm], scale) for arm in ARMS if (point.planned.key, arm) in means
        }
        rows.append(DotRow(level_text(x, factors[x]) if factors[x] != last else "", label, marks))
        last = factors[x]
    over = AXIS_NAMES.get(x, x)
    described = f"{adapter}: {metric.label} of every point by {over}{_whose(means)}; numbers in the table below."
    axis = value_axis(scale.unit, _highest(list(means.values()), scale))
    picture = dot_chart(ident, f"{metric.label} by {over}", described, rows, axis)
    return DrawnChart(
        metric.label, picture, _curves_table(f"{adapter}, {metric.label}", ordered, means, metric, scale)
    )


def _tight(name: str, value: object) -> str:
    return f"QD{value}" if name == "iodepth" else level_text(name, value)


def _highest(means: Sequence[Estimate], scale: Scale) -> float:
    return max(mean.high if mean.high is not None else mean.value for mean in means) / scale.divisor


def _mark(x: float, mean: Estimate, scale: Scale) -> Mark:
    low, high = (None if end is None else max(0.0, end / scale.divisor) for end in (mean.low, mean.high))
    return Mark(float(x), mean.value / scale.divisor, low, high)


def _curves_table(
    name: str, points: Sequence[PointData], means: Mapping[Any, Estimate], metric: Measure, scale: Scale
) -> Table:
    rows: list[tuple[ShownNumber | str, ...]] = []
    arms = _arms(means)
    for point in points:
        cells: list[ShownNumber | str] = [point.planned.point]
        numbers: list[str] = []
        for arm in arms:
            mean = means.get((point.planned.key, arm))
            cells += _cells(mean, scale, f"{metric.name}:{'/'.join(point.planned.key)}:{arm}")
            numbers.append(str(sum(launch.number(metric.name) is not None for launch in point.good(arm))))
        where = f"samples:launches:{metric.name}:{'/'.join(point.planned.key)}"
        rows.append((*cells, ShownNumber(" + ".join(numbers), None, where)))
    unit = f", {scale.unit}" if scale.unit else ""
    heads = [head for arm in arms for head in (f"{arm.capitalize()}{unit}", "95 % interval")]
    return Table(name, ("Point", *heads, "Launches"), tuple(rows))


def _arms(means: Mapping[Any, Estimate]) -> Sequence[str]:
    """The arms that a table has columns for: a run without a baseline has one."""
    return ARMS if any(arm == ARMS[0] for _, arm in means) else ARMS[1:]


def _whose(means: Mapping[Any, Estimate]) -> str:
    return ", both arms" if len(_arms(means)) > 1 else ""


def _cells(mean: Estimate | None, scale: Scale, where: str) -> tuple[ShownNumber | str, ShownNumber | str]:
    if mean is None:
        return NONE, DASH
    value = scale.figure(mean.value, f"samples:mean:{where}")
    if mean.low is None or mean.high is None:
        return value, DASH
    low, high = scale.figure(mean.low, ""), scale.figure(mean.high, "")
    return value, ShownNumber(f"{low} to {high}", None, f"samples:interval:{where}")


def overlay_chart(overlay: Overlay, ident: str) -> DrawnChart:
    """Lines of ours and the published ones in one picture; the table has the ratio of each pair."""
    metric = METRICS[overlay.metric]
    ours = {line.subject: _level_means(line.values(overlay.metric)) for line in overlay.lines}
    values = [value for levels in (*ours.values(), *overlay.theirs.values()) for value in levels.values()]
    scale = scale_for(metric.unit, values)
    curves = [
        PlottedCurve("published", "published" if number == 0 else "", _level_marks(levels, scale))
        for number, levels in enumerate(overlay.theirs.values())
    ]
    rows: list[tuple[str | ShownNumber, ...]] = []
    for at, (subject, means) in enumerate(ours.items()):
        curves.append(PlottedCurve(f"subject{at % SUBJECTS}", subject, _level_marks(means, scale)))
        for level, value in means.items():
            where = f"study:overlay:{overlay.title}:{overlay.metric}:{subject}:{level:g}"
            matches = [(source, theirs[level]) for source, theirs in overlay.theirs.items() if level in theirs]
            shown = level_text(overlay.along, int(level) if level.is_integer() else level)
            for source, published in matches:
                ratio = Scale("").figure(value / published, f"{where}:{source}:ratio")
                rows.append(
                    (shown, subject, scale.figure(value, where), scale.figure(published, where), ratio, source)
                )
            if not matches:
                rows.append((shown, subject, scale.figure(value, where), DASH, DASH, DASH))
    over = AXIS_NAMES.get(overlay.along, overlay.along)
    title = f"{metric.label}, {overlay.title}"
    marks = [mark for curve in curves for mark in curve.marks]
    across = size_axis(over, [mark.x for mark in marks], sizes=overlay.along == "bs")
    described = f"{title} over {over}: published, and {', '.join(ours)}; numbers in the table below."
    picture = curve_panel(ident, title, described, curves, across, rate_axis(scale.unit, [mark.y for mark in marks]))
    heads = (
        over.capitalize(),
        "Ours",
        f"{metric.label}, {scale.unit}",
        "Published",
        "Measured of published",
        "Source",
    )
    return DrawnChart(title, picture, Table(title, heads, tuple(rows)))


def _level_means(values: dict[float, tuple[float, ...]]) -> dict[float, float]:
    return {level: sum(launches) / len(launches) for level, launches in sorted(values.items())}


def _level_marks(levels: Mapping[float, float], scale: Scale) -> tuple[Mark, ...]:
    return tuple(Mark(level, levels[level] / scale.divisor) for level in sorted(levels))
