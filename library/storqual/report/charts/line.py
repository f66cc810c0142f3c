# SPDX-License-Identifier: Apache-2.0
"""Curves of both arms over one factor, with interval bands; and control charts: values, centre line, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.charts.svg import (
    CHARACTER,
    LINE,
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
    spread,
    stroke,
    text,
)

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


def curve_panel(
    ident: str,
    title: str,
    description: str,
    curves: Sequence[PlottedCurve],
    across: Axis,
    up: Axis,
    *,
    size: tuple[float, float] = (340, 216),
) -> Markup:
    """One small multiple. Fewer than three marks have whiskers and no line: two values are no curve."""
    longest = max((len(curve.label) for curve in curves), default=0)
    widest = max((len(label) for _, label in up.ticks), default=1)
    margin = 14 + longest * CHARACTER if longest else 12
    box = Box(10 + widest * CHARACTER, 26, size[0] - margin, size[1] - 40)
    x, y = across.scale(box.left + 12, box.right - 8), up.scale(box.bottom, box.top)
    bands: list[str] = []
    lines: list[str] = []
    marks: list[str] = []
    for curve in curves:
        dodge = _DODGE.get(curve.arm, 0.0) if len(curve.marks) < FEWEST_OF_A_LINE else 0.0
        places = [(x(mark.x) + dodge, y(mark.y)) for mark in curve.marks]
        bands.append(_interval(curve, places, y))
        lines.append(stroke(curve.arm, places if len(places) >= FEWEST_OF_A_LINE else []))
        marks.append(dots(curve.arm, places))
    axes = frame(box, _inset(across, box), up)
    return drawing(ident, size, title, description, [axes, *bands, *lines, *marks, _ends(curves, box, x, y)])


def tail_panel(
    ident: str, title: str, description: str, curves: Sequence[PlottedCurve], across: Axis, up: Axis,
    *, size: tuple[float, float] = (340, 216),
) -> Markup:  # fmt: skip
    """Lines alone, one for each arm, on the axes as they are: for curves of many marks."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    box = Box(10 + widest * CHARACTER, 26, size[0] - 12, size[1] - 40)
    x, y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    lines = [stroke(curve.arm, [(x(mark.x), y(mark.y)) for mark in curve.marks]) for curve in curves]
    return drawing(ident, size, title, description, [frame(box, across, up), *lines])


def _inset(across: Axis, box: Box) -> Axis:
    """The same axis with its ends moved so that marks there keep clear of the frame (12 units left, 8 right)."""
    width = box.right - box.left
    left, right = 12 / (width - 20), 8 / (width - 20)
    if across.logarithmic:
        ratio = across.high / across.low
        return Axis(across.name, across.low / ratio**left, across.high * ratio**right, across.ticks, logarithmic=True)
    span = across.high - across.low
    return Axis(across.name, across.low - span * left, across.high + span * right, across.ticks)


def _interval(curve: PlottedCurve, places: Sequence[tuple[float, float]], y: Linear | Log) -> Markup:
    """A band between the interval ends of several marks, or whiskers at fewer than three."""
    ends = [
        (place[0], y(mark.low), y(mark.high))
        for place, mark in zip(places, curve.marks, strict=True)
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


def _ends(curves: Sequence[PlottedCurve], box: Box, x: Linear | Log, y: Linear | Log) -> Markup:
    """Labels at the right ends of the curves, moved apart where they would cover each other."""
    named = [curve for curve in curves if curve.label and curve.marks]
    wanted = [y(curve.marks[-1].y) + 4 for curve in named]
    placed = spread(wanted, LINE, box.top, box.bottom + 4)
    labels: list[str] = []
    for curve, want, place in zip(named, wanted, placed, strict=True):
        labels.append(text(box.right + 8, place, curve.label, class_=f"t-{curve.arm}"))
        end = x(curve.marks[-1].x)
        if abs(place - want) > 3 or end < box.right - 12:
            leader = [(end + 5, want - 4), (box.right + 6, place - 4)]
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


def dot_chart(
    ident: str, title: str, description: str, rows: Sequence[DotRow], along: Axis, *, width: float = 340
) -> Markup:
    """Rows from top to bottom; the baseline's ring is drawn first, so that a dot inside it means no change."""
    longest = max((len(row.label) for row in rows), default=0)
    left = min(18 + longest * _LABELS, width * 0.55)
    height = _TOP + _ROW * (len(rows) + sum(bool(row.heading) for row in rows)) + 40
    box = Box(left, _TOP, width - 14, height - 36)
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
            place = x(mark.y)
            if mark.low is not None and mark.high is not None:
                whisker = path([(x(mark.low), y), (x(min(mark.high, along.high)), y)])
                colour = look(arm)["stroke"]
                marks.append(
                    element("path", {"class": f"w-{arm}", "stroke": colour, "stroke-width": 1.5, "d": whisker})
                )
            marks.append(dots(arm, [(place, y)]))
    return drawing(
        ident,
        (width, height),
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
    size: tuple[float, float] = (960, 200),
) -> Markup:
    """Marks at 0, 1, 2, … of the horizontal axis; signals carry their letter, so that colour is not needed."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    box = Box(10 + widest * CHARACTER, 26, size[0] - 60, size[1] - 40)
    x, y = across.scale(box.left + 12, box.right - 8), up.scale(box.bottom, box.top)
    parts: list[Markup] = [frame(box, across, up)]
    names: list[str] = []
    for value, name, class_ in _lines(centre, limits):
        line = path([(box.left, y(value)), (box.right, y(value))])
        dashes = None if class_ == "zero" else "5 3"
        parts.append(element("path", {"class": class_, "stroke": "#a33", "stroke-dasharray": dashes, "d": line}))
        names.append(text(box.right + 6, y(value) + 4, name))
    places = [(x(float(at)), y(mark.value)) for at, mark in enumerate(marks)]
    parts += [stroke("baseline", places), dots("candidate", places)]
    parts.append(group("lb", {"fill": "#555"}, names))
    for place, mark in zip(places, marks, strict=True):
        if mark.signal:
            label = text(place[0], place[1] - 8, mark.signal, anchor="middle")
            ring = element("circle", {"cx": place[0], "cy": place[1], "r": 7, "fill": "none", "stroke": "#a33"})
            parts.append(group("ev", {"fill": "#a33"}, [ring, label]))
    return drawing(ident, size, title, description, parts)


def _lines(centre: float | None, limits: tuple[float, float] | None) -> list[tuple[float, str, str]]:
    shown = [] if centre is None else [(centre, "centre", "zero")]
    if limits is not None:
        shown += [(limits[0], "limit", "limit"), (limits[1], "limit", "limit")]
    return shown
