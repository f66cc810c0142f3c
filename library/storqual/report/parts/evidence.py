# SPDX-License-Identifier: Apache-2.0
"""Everything about one point: outcomes, seconds over time, latencies and load, each launch with its raw files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.axes import short, size_axis, value_axis
from storqual.report.charts.line import Mark, PlottedCurve, curve_panel
from storqual.report.charts.steps import EventMark, Span, Trace, time_chart
from storqual.report.charts.svg import Axis, nice_ticks
from storqual.report.criterion import Criterion, Outcome, place_name
from storqual.report.figures import DASH, NONE, TIED, Figure, Scale, scale_for
from storqual.report.links import Links
from storqual.report.material import ARMS, CURVES, measure
from storqual.report.parts.latency import latency_charts
from storqual.report.parts.limiting import NOTHING, Limit
from storqual.report.parts.repeat import Repeat
from storqual.report.parts.spread import launch_strip
from storqual.report.parts.timeline import Moment
from storqual.report.view import Chart, ChartTable, Digest
from storqual.run import Launch
from storqual.run.measurements import PointData
from storqual_core.turns.launch import LoadStep


@dataclass(frozen=True)
class LaunchRow:
    """One finished launch with its values and its evidence."""

    ident: str
    arm: str
    session: str
    start: str
    status: str
    suspect: tuple[str, ...]
    values: tuple[Figure, ...]
    seconds: Figure
    length: Figure
    long: bool
    raw: tuple[Digest, ...]


@dataclass(frozen=True)
class PointEvidence:
    """Everything about one point; `outcomes` are (metric, outcome, reference) of its criteria."""

    ident: str
    bench: str
    adapter: str
    point: str
    outcomes: tuple[tuple[str, Outcome, str], ...]
    open: bool
    sentences: tuple[str, ...]
    skipped: str
    drives: tuple[str, ...]
    charts: tuple[Chart, ...]
    heads: tuple[str, ...]
    seconds: bool
    launches: tuple[LaunchRow, ...]
    repeat: Repeat | None = None
    limit: Limit = NOTHING


_SECONDS = 3
_GAP = 0.6
_LONG = 12


def point_evidence(
    point: PointData,
    rows: Sequence[Criterion],
    links: Links,
    benches: Sequence[str],
    moments: Sequence[Moment],
    *,
    few: bool,
    repeat: Repeat | None = None,
    limit: Limit = NOTHING,
) -> PointEvidence:
    """The evidence of one point; `moments` are what happened on its bench.

    Where the page tells many points (not `few`), seconds are drawn only for a point that did not pass or that saw
    something happen; as numbers they stand with every launch.
    """
    ident = links.point(point.planned.key).partition("#")[2]
    launches = sorted(point.every(), key=lambda one: one.began)
    metrics = [metric.name for metric in CURVES]
    metrics += [name for name in dict.fromkeys(row.text("metric") for row in rows) if name and name not in metrics]
    metrics = [name for name in metrics if any(launch.number(name) is not None for launch in launches)]
    scales = {name: _scale(name, launches) for name in metrics}
    bad = any(row.required and row.outcome not in ("PASS", "SKIPPED") for row in rows)
    seen = any(launch.began <= moment.at <= _end(launch) for launch in launches for moment in moments)
    series = _series(launches, f"{ident}-s", moments) if few or bad or seen else None
    strip = launch_strip(point, rows, f"{ident}-r") if few or bad else None
    return PointEvidence(
        ident=ident,
        bench=point.planned.bench,
        adapter=place_name(benches, point.planned.bench, point.planned.adapter),
        point=point.planned.point,
        outcomes=tuple((measure(row.text("metric")).label, row.badge, links.criterion(row)) for row in rows),
        open=few and bad,
        sentences=tuple(str(text) for row in rows for text in row.fields.get("evidence") or ()),
        skipped=point.planned.skipped,
        drives=point.planned.drives,
        charts=(
            *([series] if series else []),
            *([strip] if strip else []),
            *load_charts(point, f"{ident}-c"),
            *latency_charts(point, f"{ident}-l"),
        ),
        heads=tuple(_head(name, scales[name]) for name in metrics),
        seconds=any(len(launch.seconds) >= _SECONDS for launch in launches),
        launches=tuple(_launch(launch, metrics, scales) for launch in launches),
        repeat=repeat,
        limit=limit,
    )


def _scale(name: str, launches: Sequence[Launch]) -> Scale:
    return scale_for(measure(name).unit, [launch.number(name) for launch in launches])


def _head(name: str, scale: Scale) -> str:
    label = measure(name).label
    return f"{label}, {scale.unit}" if scale.unit and scale.unit.lower() != label.lower() else label


def _launch(launch: Launch, metrics: Sequence[str], scales: dict[str, Scale]) -> LaunchRow:
    return LaunchRow(
        ident=launch.id,
        arm=launch.arm,
        session=launch.session,
        start=launch.start[11:19] if len(launch.start) > 19 else launch.start,
        status=launch.status,
        suspect=launch.suspect,
        values=tuple(
            NONE
            if launch.number(name) is None
            else scales[name].figure(launch.number(name), f"samples:launch:{name}:{launch.id}")
            for name in metrics
        ),
        seconds=_rates(launch),
        length=Figure(f"{len(launch.seconds)}{TIED}s", len(launch.seconds), f"samples:length:{launch.id}"),
        long=len(launch.seconds) > _LONG,
        raw=tuple(Digest(raw.path, raw.sha256) for raw in launch.raw),
    )


def _end(launch: Launch) -> float:
    return launch.began + max(launch.runtime_s, len(launch.seconds))


def _series(launches: Sequence[Launch], ident: str, moments: Sequence[Moment]) -> Chart | None:
    """Seconds of all launches side by side in the order they were run, with what happened meanwhile."""
    shown = [launch for launch in launches if len(launch.seconds) >= _SECONDS]
    if not shown:
        return None
    steps: dict[str, list[tuple[float, float, float]]] = {arm: [] for arm in ARMS}
    spans: list[Span] = []
    events: list[EventMark] = []
    at = 0.0
    for launch in shown:
        gap = max(_GAP, len(launch.seconds) * 0.08)
        begin = at
        steps.setdefault(launch.arm, []).extend(
            (at + second, at + second + 1, rate) for second, rate in enumerate(launch.seconds)
        )
        at += len(launch.seconds)
        spans.append(Span(begin, at, launch.session, launch.arm))
        end = _end(launch)
        events += [
            EventMark(
                begin + (moment.at - launch.began) / (end - launch.began) * len(launch.seconds),
                moment.badge,
                moment.serious,
            )
            for moment in moments
            if launch.began <= moment.at <= end
        ]
        at += gap
    end = at - gap
    ticks = [0.0] if len(shown) > 1 else list(nice_ticks(0, end, 6))
    across = Axis(
        "launches in the order they ran, one step per second",
        0.0,
        end,
        tuple((t, short(t)) for t in ticks[: 0 if len(shown) > 1 else None]),
    )
    top = max(max(launch.seconds) for launch in shown)
    title = "IOPS over time"
    described = "Launches second by second in the order they ran, candidate tinted; numbers in the table of launches."
    picture = time_chart(
        ident, title, described, [Trace(arm, tuple(found)) for arm, found in steps.items() if found], across,
        value_axis("", top), spans=spans, events=events, size=(960, 170),
    )  # fmt: skip
    return Chart(title, picture, None, wide=True)


def _rates(launch: Launch) -> Figure:
    scale = Scale("")
    shown = " ".join(str(scale.figure(rate, "")) for rate in launch.seconds)
    return Figure(shown or DASH, None, f"samples:series:{launch.id}")


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
    drawn = [PlottedCurve(arm, arm, tuple(Mark(x, y) for x, y in marks)) for arm, marks in curves.items()]
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
