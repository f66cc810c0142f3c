# SPDX-License-Identifier: Apache-2.0
"""A shift with its interval against the margin, small enough for a table's cell; and the axis above the column.

Left is worse. The zone beyond the margin is shaded and bounded by a dashed line, so that "does the interval reach
into it" is seen without reading numbers and without colour. The dotted line is the loss that counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.charts.svg import Linear, element, group, path, text

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
    wanted = max(_FLOOR, *(1.25 * margin for margin in margins), min(widest * 1.05, limit or widest))
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(nice * power for nice in _ENDS if nice * power >= wanted)


def _scale(end: float) -> Linear:
    return Linear(-end, end, _EDGE, _WIDTH - _EDGE)


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
        place = x(max(-end, -abs(shift.indifference)))
        line = path([(place, 0), (place, _HEIGHT)])
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


def _whisker(shift: Shift, value: float, x: Linear, end: float) -> Markup:
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
