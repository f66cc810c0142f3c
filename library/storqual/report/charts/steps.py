# SPDX-License-Identifier: Apache-2.0
"""Values over time as steps or marks over labelled spans, and distributions as step outlines on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.charts.svg import (
    CHARACTER,
    Axis,
    Box,
    Linear,
    Log,
    dots,
    drawing,
    element,
    frame,
    group,
    look,
    path,
    stroke,
    text,
)

_BADGE = 15.0


@dataclass(frozen=True)
class Trace:
    """An arm's values as (from, to, value) in the order of time; steps that follow each other are joined."""

    arm: str
    steps: tuple[tuple[float, float, float], ...]
    joined: bool = True


@dataclass(frozen=True)
class Span:
    """A stretch of time with a name, such as a session; `short` stands where the name has no room."""

    start: float
    end: float
    label: str
    arm: str
    short: str = ""


@dataclass(frozen=True)
class EventMark:
    """Something at one moment; `badge` is the number or letter that the table below the chart explains."""

    at: float
    badge: str
    serious: bool = True


def time_chart(
    ident: str,
    title: str,
    description: str,
    traces: Sequence[Trace],
    across: Axis,
    up: Axis,
    *,
    spans: Sequence[Span] = (),
    events: Sequence[EventMark] = (),
    zero: float | None = None,
    size: tuple[float, float] = (960, 190),
) -> Markup:
    """Steps (`joined`) or marks at the middle of each step, over spans, with events as numbered lines."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    top = 26 + (16 if spans else 0) + (_badge_rows(events, across, size[0]) * _BADGE)
    box = Box(10 + widest * CHARACTER, top, size[0] - 12, size[1] - 40)
    x, y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    parts: list[str] = [_spans(spans, x, box), frame(box, across, up)]
    if zero is not None:
        parts.append(
            element(
                "path", {"class": "zero", "d": path([(box.left, y(zero)), (box.right, y(zero))]), "stroke": "#999"}
            )
        )
    parts.extend(_steps(trace, x, y) if trace.joined else _marks(trace, x, y) for trace in traces)
    parts.append(_events(events, x, box))
    return drawing(ident, size, title, description, parts)


def _steps(trace: Trace, x: Linear | Log, y: Linear | Log) -> Markup:
    runs: list[list[tuple[float, float]]] = []
    last_end: float | None = None
    for start, end, value in trace.steps:
        if last_end is None or start - last_end > (end - start) * 0.5:
            runs.append([])
        runs[-1] += [(x(start), y(value)), (x(end), y(value))]
        last_end = end
    return stroke(trace.arm, *runs)


def _marks(trace: Trace, x: Linear | Log, y: Linear | Log) -> Markup:
    return dots(trace.arm, [(x((start + end) / 2), y(value)) for start, end, value in trace.steps], radius=2.6)


def _spans(spans: Sequence[Span], x: Linear | Log, box: Box) -> Markup:
    """Sessions as blocks behind the data: candidate sessions tinted, each named above."""
    tints: list[str] = []
    names: list[str] = []
    rules: list[list[tuple[float, float]]] = []
    following = [*(x(span.start) for span in spans[1:]), box.right]
    for span, room in zip(spans, following, strict=False):
        left, right = x(span.start), x(span.end)
        if span.arm == "candidate":
            attributes = {"x": left, "y": box.top, "width": right - left, "height": box.bottom - box.top}
            tints.append(element("rect", attributes))
        rules.append([(left, box.top - 14), (left, box.bottom)])
        # a name may reach over the pause after its session, up to the next one
        name = next((name for name in (span.label, span.short) if room - left > len(name) * CHARACTER), "")
        if name:
            names.append(text(left + 4, box.top - 5, name))
    return (
        group("i-candidate", {"fill": "#1f5fa8", "fill-opacity": ".08"}, tints)
        + element("path", {"class": "gr", "stroke": "#ddd", "fill": "none", "d": path(*rules)})
        + group("lb", {"fill": "#555"}, names)
    )


def _rows(events: Sequence[EventMark], places: Sequence[float]) -> tuple[int, ...]:
    """The row of each event's badge: the first where it does not cover its neighbour, at most three."""
    ends = [-_BADGE] * 3
    rows: list[int] = []
    for event, place in zip(events, places, strict=True):
        half = (len(event.badge) * CHARACTER + 6) / 2
        row = next((number for number in range(3) if place - half > ends[number]), len(rows) % 3)
        ends[row] = place + half
        rows.append(row)
    return tuple(rows)


def _badge_rows(events: Sequence[EventMark], across: Axis, width: float) -> int:
    x = across.scale(40, width - 12)
    return max(_rows(events, [x(event.at) for event in events]), default=-1) + 1


def _events(events: Sequence[EventMark], x: Linear | Log, box: Box) -> Markup:
    places = [x(event.at) for event in events]
    parts: list[str] = []
    count = max(_rows(events, places), default=-1) + 1
    for event, place, row in zip(events, places, _rows(events, places), strict=True):
        height = box.top - 20 - (count - row) * _BADGE + _BADGE
        line = element("path", {"d": path([(place, height + 3), (place, box.bottom)]), "stroke": "#a33"})
        label = text(place, height, event.badge, anchor="middle")
        parts.append(group("ev" if event.serious else "ev mild", {"fill": "#a33"}, [line, label]))
    return Markup("").join(parts)


@dataclass(frozen=True)
class Bin:
    """Values from `low` to `high` with their share of all values (0 to 1)."""

    low: float
    high: float
    share: float


@dataclass(frozen=True)
class Distribution:
    """One arm's bins in rising order; gaps have share zero."""

    arm: str
    bins: tuple[Bin, ...]


def histogram(
    ident: str,
    title: str,
    description: str,
    distributions: Sequence[Distribution],
    across: Axis,
    up: Axis,
    *,
    size: tuple[float, float] = (340, 190),
) -> Markup:
    """Step outlines over one axis; the baseline's is filled, the candidate's a line, so both are seen."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    box = Box(10 + widest * CHARACTER, 26, size[0] - 12, size[1] - 40)
    x, y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    shapes = [_outline(distribution, x, y, box.bottom) for distribution in distributions]
    return drawing(ident, size, title, description, [frame(box, across, up), *shapes])


def _outline(distribution: Distribution, x: Linear | Log, y: Linear | Log, bottom: float) -> Markup:
    places: list[tuple[float, float]] = []
    for bar in distribution.bins:
        places += [(x(bar.low), y(bar.share)), (x(bar.high), y(bar.share))]
    if not places:
        return Markup("")
    outline = path([(places[0][0], bottom), *places, (places[-1][0], bottom)], closed=True)
    colour = look(distribution.arm)["stroke"]
    if distribution.arm == "baseline":
        return element("path", {"class": "i-baseline", "fill": colour, "fill-opacity": ".25", "d": outline})
    line = outline.removesuffix("Z")
    return element(
        "path", {"class": f"s-{distribution.arm}", **look(distribution.arm), "stroke-width": 1.5, "d": line}
    )
