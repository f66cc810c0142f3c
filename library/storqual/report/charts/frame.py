# SPDX-License-Identifier: Apache-2.0
"""The frame of a chart: axes with labelled ticks over a light grid, and the two looks that tell the arms apart.

The arms differ in shape (hollow ring and broad line, filled dot and thin line) before they differ in colour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from markupsafe import Markup

from storqual.report.charts.svg import Attribute, element, group, num, path, text

_NICE = (1.0, 2.0, 5.0, 10.0)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Linear:
    """Values from `low` to `high` at places from `start` to `end`; outside values lie outside."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of `value`; the middle when the scale has no length."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Log:
    """Positive values from `low` to `high` at places from `start` to `end`, equal ratios at equal distances."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of `value`. Raises ValueError for zero and less."""
        return Linear(math.log(self.low), math.log(self.high), self.start, self.end)(math.log(value))


def nice_step(span: float, count: int) -> float:
    """The step of 1, 2 or 5 times a power of ten that cuts `span` into at most `count` parts. Raises ValueError."""
    if not span > 0 or count < 1 or not math.isfinite(span):
        raise ValueError(f"no steps over a span of {span} in {count} parts")
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    return next((nice * power for nice in _NICE if nice * power >= raw * (1 - _ROUNDING)), 10.0 * power)


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Multiples of a nice step within [low, high], at most `count` + 1; one tick when the two are equal."""
    if high == low:
        return (low,)
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    # the product is rounded again, or 3 x 0.1 would be labelled 0.30000000000000004
    digits = max(0, 1 - math.floor(math.log10(step)))
    return tuple(round(number * step, digits) + 0.0 for number in range(first, last + 1))


def nice_ceiling(value: float, count: int = 4) -> float:
    """The smallest multiple of a nice step that is not below `value`: the top of an axis that starts at zero."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    step = nice_step(value, count)
    return math.ceil(value / step - _ROUNDING) * step


def decade_ticks(low: float, high: float, count: int = 6) -> tuple[float, ...]:
    """Ticks for a logarithmic axis: 1, 2, 5 of each decade where there is room, else decades, or every nth."""
    bottom, top = math.floor(math.log10(low) + _ROUNDING), math.ceil(math.log10(high) - _ROUNDING)
    for marks in ((1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [mark * 10.0**power for power in range(bottom, top + 1) for mark in marks]
        inside = tuple(tick for tick in ticks if low * (1 - _ROUNDING) <= tick <= high * (1 + _ROUNDING))
        if len(inside) <= count:
            return inside
    stride = math.ceil(len(inside) / count)
    return inside[::stride]


def power_ticks(low: float, high: float, count: int = 7) -> tuple[float, ...]:
    """Powers of two within [low, high], every nth where all would be too many: block sizes and queue depths."""
    first, last = math.ceil(math.log2(low) - _ROUNDING), math.floor(math.log2(high) + _ROUNDING)
    powers = tuple(2.0**power for power in range(first, last + 1))
    return powers[:: max(1, math.ceil(len(powers) / count))] or (low,)


if TYPE_CHECKING:
    from collections.abc import Sequence


CHARACTER = 6.3
"""Width of a character in a label, at the font size of the charts; generous, since system fonts differ."""
LINE = 13.0
"""Height of a line of labels."""

_LOOKS: dict[str, dict[str, Attribute]] = {
    "baseline": {"stroke": "#767676", "fill": "none"},
    "candidate": {"stroke": "#1f5fa8", "fill": "none"},
    "published": {"stroke": "#7a5c00", "fill": "none", "stroke-dasharray": "1 3"},
    # subjects of a comparison: told apart by dashes and the labels at their ends before colour
    "subject0": {"stroke": "#1f5fa8", "fill": "none"},
    "subject1": {"stroke": "#a33b1f", "fill": "none", "stroke-dasharray": "7 3"},
    "subject2": {"stroke": "#2c7a3f", "fill": "none", "stroke-dasharray": "3 3"},
    "subject3": {"stroke": "#6b3fa0", "fill": "none", "stroke-dasharray": "9 3 2 3"},
    "subject4": {"stroke": "#555555", "fill": "none", "stroke-dasharray": "12 3"},
}


@dataclass(frozen=True)
class Axis:
    """What one direction of a chart shows: its name, its ends, the ticks with their labels, linear or logarithmic."""

    name: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def scale(self, start: float, end: float) -> Linear | Log:
        """Places of values when the axis reaches from `start` to `end`."""
        return (Log if self.logarithmic else Linear)(self.low, self.high, start, end)


@dataclass(frozen=True)
class Box:
    """The place of a chart's data within its picture: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float


def look(arm: str) -> dict[str, Attribute]:
    """Plain presentation attributes of an arm's lines, for a page whose style sheet was dropped."""
    return _LOOKS.get(arm, _LOOKS["published"])


def frame(box: Box, across: Axis, up: Axis) -> Markup:
    """Grid, ticks and names of both axes; the vertical one's name stands above it, so that nobody turns the head."""
    x, y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    grid = [[(box.left, y(value)), (box.right, y(value))] for value, _ in up.ticks]
    base = [[(x(value), box.bottom), (x(value), box.bottom + 4)] for value, _ in across.ticks]
    base.append([(box.left, box.bottom), (box.right, box.bottom)])
    labels: list[str] = [text(box.left - 6, y(value) + 4, label, anchor="end") for value, label in up.ticks]
    labels += [text(x(value), box.bottom + 16, label, anchor="middle") for value, label in across.ticks]
    if up.name:
        labels.append(text(box.left - 6, box.top - 9, up.name, anchor="start", class_="n"))
    labels.append(text(box.right, box.bottom + 31, across.name, anchor="end", class_="n"))
    return (
        element("path", {"class": "gr", "stroke": "#ddd", "fill": "none", "d": path(*grid)})
        + element("path", {"class": "ax", "stroke": "#888", "fill": "none", "d": path(*base)})
        + group("lb", {"fill": "#555"}, labels)
    )


def stroke(arm: str, *lines: Sequence[tuple[float, float]]) -> Markup:
    """Lines through an arm's places; nothing through fewer than two."""
    shown = [line for line in lines if len(line) > 1]
    if not shown:
        return Markup("")
    width = 3.5 if arm == "baseline" else 1.6
    return element("path", {"class": f"s-{arm}", **look(arm), "stroke-width": width, "d": path(*shown)})


def dots(arm: str, points: Sequence[tuple[float, float]], *, radius: float = 3.2) -> Markup:
    """An arm's marks: hollow rings for the baseline, filled dots for the candidate."""
    ring = arm == "baseline"
    size = radius + (1.0 if ring else -0.4)
    circles = [element("circle", {"cx": x, "cy": y, "r": size}) for x, y in points]
    colour = look(arm)["stroke"]
    attributes: dict[str, Attribute] = {"fill": "#fff" if ring else colour, "stroke": colour, "stroke-width": 1.5}
    return group(f"d-{arm}", attributes, circles)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> tuple[float, ...]:
    """Places near the wanted ones, in their order, at least `gap` apart, and within [low, high] when they fit."""
    # places that differ by less than a line keep the order they came in, so that two equal curves always read alike
    order = sorted(range(len(wanted)), key=lambda index: (round(wanted[index] / gap), index))
    placed: list[float] = []
    for index in order:
        placed.append(max(wanted[index], placed[-1] + gap if placed else low))
    if placed and placed[-1] > high:
        placed[-1] = high
        for later, earlier in pairwise(range(len(placed) - 1, -1, -1)):
            placed[earlier] = min(placed[earlier], placed[later] - gap)
    result = [0.0] * len(wanted)
    for index, place in zip(order, placed, strict=True):
        result[index] = float(num(place))
    return tuple(result)
