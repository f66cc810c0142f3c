# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text, drawn when a page is built: the same input gives the same bytes, every text is escaped."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from storqual.base.figures import scale_for
from storqual.base.text import MINUS
from storqual.report.svg import (
    CHARACTER,
    LINE,
    Axis,
    Box,
    LinearScale,
    LogScale,
    decade_ticks,
    dots,
    drawing,
    element,
    frame,
    group,
    look,
    nice_ceiling,
    nice_ticks,
    path,
    power_ticks,
    spread,
    stroke,
    text,
)
from storqual.run import PlannedPoint

_MINUTE_STEPS = (1 / 12, 1 / 6, 1 / 4, 1 / 2, 1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 7200, 14400)
_MOST_CLOCK_TICKS = 8
_LABELS_ACROSS = 8
_FAR_APART = 10


def short(value: float) -> str:
    """A tick's number, as short as it can be: 0, 250, 12k, 1.5M; a true minus sign."""
    size = abs(value)
    for divisor, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= divisor:
            text = f"{size / (1e3 if suffix == 'k' else divisor):g}{suffix}"
            break
    else:
        text = f"{size:g}"
    return MINUS + text if value < 0 else text


def value_axis(unit: str, highest: float) -> Axis:
    top = nice_ceiling(highest * 1.02)
    return Axis(unit, 0.0, top, tuple((tick, short(tick)) for tick in nice_ticks(0.0, top, 4)))


def rate_axis(unit: str, values: Sequence[float]) -> Axis:
    """An axis from zero; logarithmic where the values are far apart, so that the lowest curve is still one."""
    low, high = min(values), max(values)
    if high < _FAR_APART * low:
        return value_axis(unit, high)
    low, high = low / 1.5, high * 1.5
    return Axis(unit, low, high, tuple((tick, short(tick)) for tick in decade_ticks(low, high, 5)), logarithmic=True)


def size_axis(name: str, values: Sequence[float], *, sizes: bool) -> Axis:
    """A base-2 axis over the values that occur; with few values each has its tick, labelled as a size or a count."""
    low, high = min(values), max(values)
    present = sorted(set(values))
    ticks = tuple(present) if len(present) <= 6 else power_ticks(low, high, 6)
    if high == low:
        low, high = low / 2, high * 2
    labels = tuple((tick, _size_label(tick) if sizes else short(tick)) for tick in _apart(ticks, high / low))
    return Axis(name, low, high, labels, logarithmic=True)


def _apart(ticks: Sequence[float], span: float) -> tuple[float, ...]:
    """Ticks of a logarithmic axis whose labels do not run into each other: an eighth of it from one to the next."""
    readable = list(ticks[:1])
    for tick in ticks[1:]:
        if tick / readable[-1] >= span ** (1 / _LABELS_ACROSS):
            readable.append(tick)
    return tuple(readable)


def _size_label(size: float) -> str:
    """A block size in few characters: 512, 4k, 64k, 1M."""
    for power, suffix in ((3, "G"), (2, "M"), (1, "k")):
        if size >= 1024**power:
            return f"{size / 1024**power:g}{suffix}"
    return f"{size:g}"


def latency_text(nanoseconds: float) -> str:
    """A latency on an axis: 500 µs, 2 ms."""
    scale = scale_for("ns", [nanoseconds])
    return f"{nanoseconds / scale.divisor:.3g} {scale.unit}"


def latency_axis(low: float, high: float) -> Axis:
    ticks = decade_ticks(low, high, 5)
    if len(ticks) < 2:
        ticks = tuple(low * (high / low) ** (step / 3) for step in range(4))
    return Axis("latency", low, high, tuple((tick, latency_text(tick)) for tick in ticks), logarithmic=True)


def share_axis(highest: float) -> Axis:
    top = nice_ceiling(highest * 102, 3) / 100
    ticks = nice_ticks(0.0, top * 100, 3)
    return Axis("of I/O", 0.0, top, tuple((tick / 100, f"{tick:g} %") for tick in ticks))


def percent_axis(reach: float) -> Axis:
    top = nice_ceiling(reach * 1.05, 2)
    ticks = nice_ticks(-top, top, 4)
    return Axis("", -top, top, tuple((tick, f"{'+' if tick > 0 else ''}{short(tick)} %") for tick in ticks))


def clock_axis(start: float, end: float) -> Axis:
    """Time of day in UTC at round minutes; days are named where the campaign crosses midnight."""
    span = max(end - start, 1.0)
    step = next((60.0 * m for m in _MINUTE_STEPS if span / (60.0 * m) <= _MOST_CLOCK_TICKS), span)
    first = math.ceil(start / step)
    times = [number * step for number in range(first, math.floor(end / step) + 1)]
    days = datetime.fromtimestamp(start, UTC).date() != datetime.fromtimestamp(end, UTC).date()
    form = "%d %b %H:%M" if days else "%H:%M:%S" if step < 60 else "%H:%M"
    ticks = tuple((at, datetime.fromtimestamp(at, UTC).strftime(form)) for at in times)
    return Axis("UTC", start, end, ticks)


_PREFERRED = ("bs", "iodepth", "drives", "ports", "numjobs", "rwmixread")


def levels(point: PlannedPoint) -> dict[str, Any]:
    return {**point.factors, **point.varied}


def along(points: Iterable[PlannedPoint]) -> str | None:
    """The factor to put on the horizontal axis: the first of the usual ones that has several numeric levels.

    Block size wins wherever it varies; with nothing that varies it is still the axis. None without any number.
    """
    levels_of: dict[str, set[Any]] = {}
    for point in points:
        for name, value in point.factors.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
                levels_of.setdefault(name, set()).add(value)
    several = [name for name in _PREFERRED if len(levels_of.get(name, ())) > 1]
    several += [name for name in levels_of if name not in _PREFERRED and len(levels_of[name]) > 1]
    return several[0] if several else next((name for name in (*_PREFERRED, *levels_of) if name in levels_of), None)


def combination(point: PlannedPoint, names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    have = levels(point)
    return tuple((name, have[name]) for name in names if name in have)


_WIDTH, _HEIGHT, _AXIS = 200.0, 24.0, 20.0
_EDGE = 8.0
_FLOOR = 2.0
_ROOM = 8.0
_ENDS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
"""Ends of an axis whose halves are round too: they carry the labels."""


@dataclass(frozen=True)
class Shift:
    """A shift in percent with its 95 % interval, margin and indifference (all may be missing), and the outcome."""

    value: float | None
    low: float | None
    high: float | None
    margin: float | None
    outcome: str
    indifference: float | None = None


def reach(shifts: Sequence[Shift]) -> float:
    """The end of a column's axis in percent: wide enough for nearly all, never so wide that the margin is a hair.

    What reaches further is drawn with an arrow at the edge.
    """
    margins = [abs(shift.margin) for shift in shifts if shift.margin]
    ends = sorted(abs(end) for shift in shifts for end in (shift.value, shift.low, shift.high) if end is not None)
    widest = ends[-1] if ends else 0.0
    limit = max(margins, default=widest) * _ROOM
    least = max(_FLOOR, *(1.25 * margin for margin in margins), min(widest * 1.05, limit or widest))
    power = 10.0 ** math.floor(math.log10(least))
    return next(nice * power for nice in _ENDS if nice * power >= least)


def _scale(end: float) -> LinearScale:
    return LinearScale(-end, end, _EDGE, _WIDTH - _EDGE)


def interval_axis(end: float, label: Callable[[float], str]) -> Markup:
    """The axis above a column of interval bars that reach from minus `end` to `end` percent; for the header cell."""
    x = _scale(end)
    ticks = (-end / 2, 0.0, end / 2)
    marks: list[str] = [text(x(value), 11, label(value), anchor="middle") for value in ticks]
    rules = path(*([(x(value), 15), (x(value), _AXIS)] for value in ticks))
    return element(
        "svg",
        {
            "class": "iv",
            "viewBox": f"0 0 {_WIDTH:g} {_AXIS:g}",
            "width": _WIDTH,
            "height": _AXIS,
            "aria-hidden": "true",
            "font-size": 10,
        },
        group("lb", {"fill": "#555"}, marks),
        element("path", {"class": "ax", "stroke": "#888", "fill": "none", "d": rules}),
    )


def interval_bar(shift: Shift, end: float, sentence: str) -> Markup:
    """One row's picture on the column's axis; `sentence` says the same in words."""
    x = _scale(end)
    parts: list[str] = [element("title", {}, sentence)]
    if shift.margin is not None:
        limit = x(max(-end, -abs(shift.margin)))
        parts.append(
            element("rect", {"class": "zone", "x": 0, "y": 0, "width": limit, "height": _HEIGHT, "fill": "#f4e3e0"})
        )
        line = path([(limit, 0), (limit, _HEIGHT)])
        parts.append(element("path", {"class": "limit", "d": line, "stroke": "#a33", "stroke-dasharray": "3 2"}))
    if shift.indifference:
        pixel = x(max(-end, -abs(shift.indifference)))
        line = path([(pixel, 0), (pixel, _HEIGHT)])
        parts.append(element("path", {"class": "same", "d": line, "stroke": "#777", "stroke-dasharray": "1 3"}))
    parts.append(element("path", {"class": "zero", "d": path([(x(0), 0), (x(0), _HEIGHT)]), "stroke": "#999"}))
    if shift.value is not None:
        parts.append(_whisker(shift, shift.value, x, end))
    return element(
        "svg",
        {
            "class": f"iv o-{shift.outcome.lower()}",
            "viewBox": f"0 0 {_WIDTH:g} {_HEIGHT:g}",
            "width": _WIDTH,
            "height": _HEIGHT,
            "role": "img",
        },
        *parts,
    )


def _whisker(shift: Shift, value: float, x: LinearScale, end: float) -> Markup:
    """The interval as a bar with end ticks, or arrow heads where it leaves the axis, and the shift as a dot."""
    middle = _HEIGHT / 2
    parts: list[str] = []
    if shift.low is not None and shift.high is not None:
        low, high = x(max(-end, min(end, shift.low))), x(max(-end, min(end, shift.high)))
        bar = [(low, middle), (high, middle)]
        left = _end(low, middle, outward=-1 if shift.low < -end else 0)
        right = _end(high, middle, outward=1 if shift.high > end else 0)
        parts.append(element("path", {"d": path(bar, left, right)}))
    if abs(value) <= end:
        parts.append(element("circle", {"cx": x(value), "cy": middle, "r": 3, "fill": "#222"}))
    else:
        tip = _WIDTH - 1 if value > 0 else 1
        back = tip - 7 if value > 0 else tip + 7
        head = path([(tip, middle), (back, middle - 5), (back, middle + 5)], closed=True)
        parts.append(element("path", {"d": head, "fill": "#222"}))
    return group("sh", {"stroke": "#222", "fill": "none", "stroke-width": 1.5}, parts)


def _end(at: float, middle: float, *, outward: int) -> list[tuple[float, float]]:
    """A tick at an end of the interval, or an arrow head when the interval goes on beyond the axis."""
    if outward == 0:
        return [(at, middle - 5.5), (at, middle + 5.5)]
    back = at - 5 * outward
    return [(back, middle - 4), (at, middle), (back, middle + 4)]


FEWEST_OF_A_LINE = 3
"""Marks through which a line is drawn: two levels show a difference, and no curve."""

_DODGE = {"baseline": -2.5, "candidate": 2.5}


@dataclass(frozen=True)
class Mark:
    """One value of a curve, with the ends of its interval where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PlottedCurve:
    """Marks in the order of x that belong to one arm; the label stands at the right end."""

    arm: str
    label: str
    marks: tuple[Mark, ...]


_WIDE = 340.0
_PANEL = (_WIDE, 216.0)
_INSET = (12.0, 8.0)
"""Units by which marks at the ends of an axis keep clear of the frame, left and right."""


def _canvas(
    size: tuple[float, float],
    across: Axis,
    up: Axis,
    *,
    right: float,
    top: float = 26.0,
    inset: tuple[float, float] = (0.0, 0.0),
) -> tuple[Box, LinearScale | LogScale, LinearScale | LogScale]:
    """The place of the data within a picture, and where its values lie; labels of the vertical axis have room."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    box = Box(10 + widest * CHARACTER, top, size[0] - right, size[1] - 40)
    return box, across.scale(box.left + inset[0], box.right - inset[1]), up.scale(box.bottom, box.top)


def curve_panel(
    ident: str, title: str, description: str, curves: Sequence[PlottedCurve], across: Axis, up: Axis
) -> Markup:
    """One small multiple. Fewer than three marks have whiskers and no line: two values are no curve."""
    longest = max((len(curve.label) for curve in curves), default=0)
    box, x, y = _canvas(_PANEL, across, up, right=14 + longest * CHARACTER if longest else 12, inset=_INSET)
    bands: list[str] = []
    lines: list[str] = []
    marks: list[str] = []
    for curve in curves:
        dodge = _DODGE.get(curve.arm, 0.0) if len(curve.marks) < FEWEST_OF_A_LINE else 0.0
        pixels = [(x(mark.x) + dodge, y(mark.y)) for mark in curve.marks]
        bands.append(_interval(curve, pixels, y))
        lines.append(stroke(curve.arm, pixels if len(pixels) >= FEWEST_OF_A_LINE else []))
        marks.append(dots(curve.arm, pixels))
    axes = frame(box, _inset(across, box), up)
    return drawing(ident, _PANEL, title, description, [axes, *bands, *lines, *marks, _ends(curves, box, x, y)])


def tail_panel(
    ident: str, title: str, description: str, curves: Sequence[PlottedCurve], across: Axis, up: Axis
) -> Markup:
    """Lines alone, one for each arm, on the axes as they are: for curves of many marks."""
    box, x, y = _canvas(_PANEL, across, up, right=12)
    lines = [stroke(curve.arm, [(x(mark.x), y(mark.y)) for mark in curve.marks]) for curve in curves]
    return drawing(ident, _PANEL, title, description, [frame(box, across, up), *lines])


def _inset(across: Axis, box: Box) -> Axis:
    """The same axis with its ends moved so that marks there keep clear of the frame (12 units left, 8 right)."""
    width = box.right - box.left
    left, right = (side / (width - sum(_INSET)) for side in _INSET)
    if across.logarithmic:
        ratio = across.high / across.low
        return Axis(across.name, across.low / ratio**left, across.high * ratio**right, across.ticks, logarithmic=True)
    span = across.high - across.low
    return Axis(across.name, across.low - span * left, across.high + span * right, across.ticks)


def _interval(curve: PlottedCurve, pixels: Sequence[tuple[float, float]], y: LinearScale | LogScale) -> Markup:
    """A band between the interval ends of several marks, or whiskers at fewer than three."""
    ends = [
        (pixel[0], y(mark.low), y(mark.high))
        for pixel, mark in zip(pixels, curve.marks, strict=True)
        if mark.low is not None and mark.high is not None
    ]
    colour = look(curve.arm)["stroke"]
    if len(ends) >= FEWEST_OF_A_LINE:
        outline = [(at, high) for at, _, high in ends] + [(at, low) for at, low, _ in reversed(ends)]
        shape = path(outline, closed=True)
        return element("path", {"class": f"i-{curve.arm}", "fill": colour, "fill-opacity": ".15", "d": shape})
    whiskers = [[(at, low), (at, high)] for at, low, high in ends]
    whiskers += [[(at - 3, end), (at + 3, end)] for at, *both in ends for end in both]
    if not whiskers:
        return Markup("")
    return element("path", {"class": f"w-{curve.arm}", "stroke": colour, "fill": "none", "d": path(*whiskers)})


def _ends(curves: Sequence[PlottedCurve], box: Box, x: LinearScale | LogScale, y: LinearScale | LogScale) -> Markup:
    """Labels at the right ends of the curves, moved apart where they would cover each other."""
    named = [curve for curve in curves if curve.label and curve.marks]
    heights = [y(curve.marks[-1].y) + 4 for curve in named]
    placed = spread(heights, LINE, box.top, box.bottom + 4)
    labels: list[str] = []
    for curve, height, pixel in zip(named, heights, placed, strict=True):
        labels.append(text(box.right + 8, pixel, curve.label, class_=f"t-{curve.arm}"))
        end = x(curve.marks[-1].x)
        if abs(pixel - height) > 3 or end < box.right - 12:
            leader = [(end + 5, height - 4), (box.right + 6, pixel - 4)]
            labels.append(element("path", {"class": "ld", "d": path(leader), "stroke": "#bbb", "fill": "none"}))
    return group("lb", {"fill": "#333"}, labels)


_ROW = 18.0
_TOP = 8.0
_LABELS = 6.2


@dataclass(frozen=True)
class DotRow:
    """One row: a heading above it where it starts a group, its label, and a mark per arm (`x` is not used)."""

    heading: str
    label: str
    marks: Mapping[str, Mark]


def dot_chart(ident: str, title: str, description: str, rows: Sequence[DotRow], along: Axis) -> Markup:
    """Rows from top to bottom; the baseline's ring is drawn first, so that a dot inside it means no change."""
    longest = max((len(row.label) for row in rows), default=0)
    left = min(18 + longest * _LABELS, _WIDE * 0.55)
    height = _TOP + _ROW * (len(rows) + sum(bool(row.heading) for row in rows)) + 40
    box = Box(left, _TOP, _WIDE - 14, height - 36)
    x = along.scale(box.left, box.right)
    grid = [[(x(value), box.top - 4), (x(value), box.bottom)] for value, _ in along.ticks]
    labels: list[str] = [text(x(value), box.bottom + 14, label, anchor="middle") for value, label in along.ticks]
    labels.append(text(box.right, box.bottom + 29, along.name, anchor="end", class_="n"))
    headings: list[str] = []
    marks: list[str] = []
    y = box.top - _ROW / 2 + 4
    for row in rows:
        if row.heading:
            y += _ROW
            headings.append(text(0, y + 4, row.heading))
        y += _ROW
        labels.append(text(8, y + 4, row.label))
        grid.append([(box.left, y), (box.right, y)])
        for arm, mark in row.marks.items():
            pixel = x(mark.y)
            if mark.low is not None and mark.high is not None:
                whisker = path([(x(mark.low), y), (x(min(mark.high, along.high)), y)])
                colour = look(arm)["stroke"]
                marks.append(
                    element("path", {"class": f"w-{arm}", "stroke": colour, "stroke-width": 1.5, "d": whisker})
                )
            marks.append(dots(arm, [(pixel, y)]))
    return drawing(
        ident,
        (_WIDE, height),
        title,
        description,
        [
            element("path", {"class": "gr", "stroke": "#ddd", "fill": "none", "d": path(*grid)}),
            group("lb", {"fill": "#555"}, labels),
            group("hd", {"fill": "#222", "font-weight": "600"}, headings),
            *marks,
        ],
    )


@dataclass(frozen=True)
class ControlMark:
    """One value; `signal` is what the table calls it when it is out of control, empty when it is not."""

    value: float
    signal: str = ""


def control_chart(
    ident: str,
    title: str,
    description: str,
    marks: Sequence[ControlMark],
    across: Axis,
    up: Axis,
    *,
    centre: float | None,
    limits: tuple[float, float] | None,
) -> Markup:
    """Marks at 0, 1, 2, … of the horizontal axis; signals carry their letter, so that colour is not needed."""
    size = (960.0, 200.0)
    box, x, y = _canvas(size, across, up, right=60, inset=_INSET)
    parts: list[Markup] = [frame(box, across, up)]
    names: list[str] = []
    for value, name, class_ in _lines(centre, limits):
        line = path([(box.left, y(value)), (box.right, y(value))])
        dashes = None if class_ == "zero" else "5 3"
        parts.append(element("path", {"class": class_, "stroke": "#a33", "stroke-dasharray": dashes, "d": line}))
        names.append(text(box.right + 6, y(value) + 4, name))
    pixels = [(x(float(at)), y(mark.value)) for at, mark in enumerate(marks)]
    parts += [stroke("baseline", pixels), dots("candidate", pixels)]
    parts.append(group("lb", {"fill": "#555"}, names))
    for pixel, mark in zip(pixels, marks, strict=True):
        if mark.signal:
            label = text(pixel[0], pixel[1] - 8, mark.signal, anchor="middle")
            ring = element("circle", {"cx": pixel[0], "cy": pixel[1], "r": 7, "fill": "none", "stroke": "#a33"})
            parts.append(group("ev", {"fill": "#a33"}, [ring, label]))
    return drawing(ident, size, title, description, parts)


def _lines(centre: float | None, limits: tuple[float, float] | None) -> list[tuple[float, str, str]]:
    shown = [] if centre is None else [(centre, "centre", "zero")]
    if limits is not None:
        shown += [(limits[0], "limit", "limit"), (limits[1], "limit", "limit")]
    return shown


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
    top = 26 + (16 if spans else 0) + (_badge_rows(events, across, size[0]) * _BADGE)
    box, x, y = _canvas(size, across, up, right=12, top=top)
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


def _steps(trace: Trace, x: LinearScale | LogScale, y: LinearScale | LogScale) -> Markup:
    runs: list[list[tuple[float, float]]] = []
    last_end: float | None = None
    for start, end, value in trace.steps:
        if last_end is None or start - last_end > (end - start) * 0.5:
            runs.append([])
        runs[-1] += [(x(start), y(value)), (x(end), y(value))]
        last_end = end
    return stroke(trace.arm, *runs)


def _marks(trace: Trace, x: LinearScale | LogScale, y: LinearScale | LogScale) -> Markup:
    return dots(trace.arm, [(x((start + end) / 2), y(value)) for start, end, value in trace.steps], radius=2.6)


def _spans(spans: Sequence[Span], x: LinearScale | LogScale, box: Box) -> Markup:
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


def _rows(events: Sequence[EventMark], pixels: Sequence[float]) -> tuple[int, ...]:
    """The row of each event's badge: the first where it does not cover its neighbour, at most three."""
    ends = [-_BADGE] * 3
    rows: list[int] = []
    for event, pixel in zip(events, pixels, strict=True):
        half = (len(event.badge) * CHARACTER + 6) / 2
        row = next((number for number in range(3) if pixel - half > ends[number]), len(rows) % 3)
        ends[row] = pixel + half
        rows.append(row)
    return tuple(rows)


def _badge_rows(events: Sequence[EventMark], across: Axis, width: float) -> int:
    x = across.scale(40, width - 12)
    return max(_rows(events, [x(event.at) for event in events]), default=-1) + 1


def _events(events: Sequence[EventMark], x: LinearScale | LogScale, box: Box) -> Markup:
    pixels = [x(event.at) for event in events]
    parts: list[str] = []
    count = max(_rows(events, pixels), default=-1) + 1
    for event, pixel, row in zip(events, pixels, _rows(events, pixels), strict=True):
        height = box.top - 20 - (count - row) * _BADGE + _BADGE
        line = element("path", {"d": path([(pixel, height + 3), (pixel, box.bottom)]), "stroke": "#a33"})
        label = text(pixel, height, event.badge, anchor="middle")
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
    ident: str, title: str, description: str, distributions: Sequence[Distribution], across: Axis, up: Axis
) -> Markup:
    """Step outlines over one axis; the baseline's is filled, the candidate's a line, so both are seen."""
    size = (_WIDE, 190.0)
    box, x, y = _canvas(size, across, up, right=12)
    shapes = [_outline(distribution, x, y, box.bottom) for distribution in distributions]
    return drawing(ident, size, title, description, [frame(box, across, up), *shapes])


def _outline(
    distribution: Distribution, x: LinearScale | LogScale, y: LinearScale | LogScale, bottom: float
) -> Markup:
    pixels: list[tuple[float, float]] = []
    for bar in distribution.bins:
        pixels += [(x(bar.low), y(bar.share)), (x(bar.high), y(bar.share))]
    if not pixels:
        return Markup("")
    outline = path([(pixels[0][0], bottom), *pixels, (pixels[-1][0], bottom)], closed=True)
    colour = look(distribution.arm)["stroke"]
    if distribution.arm == "baseline":
        return element("path", {"class": "i-baseline", "fill": colour, "fill-opacity": ".25", "d": outline})
    line = outline.removesuffix("Z")
    return element(
        "path", {"class": f"s-{distribution.arm}", **look(distribution.arm), "stroke-width": 1.5, "d": line}
    )


_STRIP_ROW = 30.0
_JITTER = 5.0
_STEPS = 3


@dataclass(frozen=True)
class StripRow:
    """Ratios of one arm's launches to the baseline's mean (1 is the same), in the order they were run."""

    arm: str
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class LimitLine:
    """A ratio that is a limit, its name, and whether it is the unacceptable one."""

    ratio: float
    name: str
    unacceptable: bool


def strip(
    ident: str, title: str, description: str, rows: Sequence[StripRow], limits: Sequence[LimitLine], along: Axis
) -> Markup:
    """One row of marks for each arm; marks of one row stand a little apart, so that equal launches are all seen."""
    left = 14 + max((len(row.arm) for row in rows), default=0) * CHARACTER
    names = 14.0 * len(limits)
    box = Box(left, 8 + names, _WIDE - 14, 8 + names + _STRIP_ROW * len(rows))
    x = along.scale(box.left, box.right)
    grid = [[(x(value), box.top), (x(value), box.bottom)] for value, _ in along.ticks]
    labels = [text(x(value), box.bottom + 16, label, anchor="middle") for value, label in along.ticks]
    labels.append(text(box.right, box.bottom + 31, along.name, anchor="end", class_="n"))
    parts: list[Markup] = [element("path", {"class": "gr", "stroke": "#ddd", "fill": "none", "d": path(*grid)})]
    for number, limit in enumerate(limits):
        pixel = x(limit.ratio)
        high = 8 + 14.0 * number
        line = path([(pixel, high), (pixel, box.bottom)])
        look = ("limit", "#a33", "3 2") if limit.unacceptable else ("same", "#777", "1 3")
        parts.append(element("path", {"class": look[0], "stroke": look[1], "stroke-dasharray": look[2], "d": line}))
        right = pixel > (box.left + box.right) / 2
        labels.append(text(pixel + (-5 if right else 5), high + 9, limit.name, anchor="end" if right else "start"))
    parts.append(
        element("path", {"class": "zero", "d": path([(x(1.0), box.top), (x(1.0), box.bottom)]), "stroke": "#999"})
    )
    for number, row in enumerate(rows):
        middle = box.top + _STRIP_ROW * (number + 0.5)
        labels.append(text(box.left - 8, middle + 4, row.arm, anchor="end"))
        pixels = [(x(ratio), middle + _JITTER * (at % _STEPS - 1)) for at, ratio in enumerate(row.ratios)]
        parts.append(dots(row.arm, pixels, radius=2.6))
    parts.append(group("lb", {"fill": "#555"}, labels))
    return drawing(ident, (_WIDE, box.bottom + 38), title, description, parts)


def scatter(
    ident: str, title: str, description: str, groups: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    across: Axis, up: Axis,
) -> Markup:  # fmt: skip
    """Marks of (baseline, candidate) and the line on which both are the same; a group is a class of marks."""
    size = (560.0, 420.0)
    box, x, y = _canvas(size, across, up, right=14)
    low, high = max(across.low, up.low), min(across.high, up.high)
    same = element(
        "path", {"class": "zero", "stroke": "#999", "fill": "none", "d": path([(x(low), y(low)), (x(high), y(high))])}
    )
    marks = [
        group(
            f"sh o-{tone}",
            {"fill": "none", "stroke": "#1f5fa8", "stroke-width": 1.5},
            [element("circle", {"cx": x(before), "cy": y(after), "r": 3}) for before, after in pixels],
        )
        for tone, pixels in groups
    ]
    return drawing(ident, size, title, description, [frame(box, across, up), same, *marks])
