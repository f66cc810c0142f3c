# SPDX-License-Identifier: Apache-2.0
"""Everything about one point: its outcomes, its seconds over time, its latencies, each launch with its raw files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.report.axes import short, value_axis
from storqual.report.cells import Chart, Digest
from storqual.report.charts.frame import Axis, nice_ticks
from storqual.report.charts.steps import Event, Span, Trace, time_chart
from storqual.report.criterion import place_name
from storqual.report.figures import DASH, NONE, TIED, Figure, Scale, scale_for
from storqual.report.material import ARMS, CURVES, measure
from storqual.report.parts.latency import latency_charts, load_charts
from storqual.report.view import LaunchRow, PointEvidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storqual.report.criterion import Criterion
    from storqual.report.links import Links
    from storqual.report.moments import Moment
    from storqual.run import Launch
    from storqual.run.measurements import PointData


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
            *load_charts(point, f"{ident}-c"),
            *latency_charts(point, f"{ident}-l"),
        ),
        heads=tuple(_head(name, scales[name]) for name in metrics),
        seconds=any(len(launch.seconds) >= _SECONDS for launch in launches),
        launches=tuple(_launch(launch, metrics, scales) for launch in launches),
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
    events: list[Event] = []
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
            Event(
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
