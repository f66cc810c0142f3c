# SPDX-License-Identifier: Apache-2.0
"""SVG elements as escaped text: the only place of the report that makes markup outside the templates.

Colours are classes of report.css, so that light, dark and print differ; each group also carries plain presentation
attributes, so that a chart is readable where a strict policy drops the style sheet.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markupsafe import Markup, escape

from storqual.base.text import typeset_text

Attribute = str | float | int
_NAME = re.compile(r"^[a-zA-Z][a-zA-Z0-9-]*$")
_TEXT_WIDTH = {"font-size": 11}


def num(value: float) -> str:
    """A coordinate with one decimal, without a trailing zero and without minus zero."""
    if value.__class__ is int:
        return str(value)
    short = f"{value:.1f}"
    if short[-1] == "0":
        short = short[:-2]
    return "0" if short == "-0" else short


@cache
def _attribute(name: str) -> str:
    """The start of an attribute. Raises ValueError for an event handler, a reference, a style or what is no word."""
    if not _NAME.match(name) or name.lower().startswith("on") or name.lower() in {"href", "src", "style"}:
        raise ValueError(f"{name!r} is no attribute of a chart")
    return f' {name}="'


@cache
def _tag(name: str) -> str:
    """A name of an element. Raises ValueError for one that runs, fetches, embeds or leads away."""
    if not _NAME.match(name) or name.lower() in {"script", "foreignobject", "image", "use", "a"}:
        raise ValueError(f"{name!r} is no element of a chart")
    return name


def _escaped(value: str) -> str:
    return value if isinstance(value, Markup) else str(escape(typeset_text(value)))


def element(name: str, attributes: Mapping[str, Attribute | None], *children: str) -> Markup:
    """One element; every attribute and every child that is not already Markup is escaped; None leaves one out.

    Raises ValueError for a name that is no plain word, an event handler or a reference: no chart needs one.
    """
    parts = ["<", _tag(name)]
    for key, value in attributes.items():
        if value is not None:
            # a quote ends an attribute also in text that is Markup already
            parts += (_attribute(key), _escaped(str(value)) if isinstance(value, str) else num(value), '"')
    inner = "".join([_escaped(child) for child in children])
    parts.append(f">{inner}</{name}>" if inner else "/>")
    return Markup("".join(parts))  # noqa: S704 - escaped above


def group(class_: str, attributes: Mapping[str, Attribute | None], children: Sequence[str]) -> Markup:
    """Elements that share a class and its plain fallback attributes; nothing for no children."""
    return element("g", {"class": class_, **attributes}, *children) if children else Markup("")


def text(x: float, y: float, label: str, *, anchor: str = "start", class_: str | None = None) -> Markup:
    """A label at (x, y); `anchor` is start, middle or end."""
    position = {"x": x, "y": y, "text-anchor": None if anchor == "start" else anchor}
    return element("text", {**position, "class": class_}, label)


def path(*lines: Sequence[tuple[float, float]], closed: bool = False) -> str:
    """The `d` of lines through points; level and upright parts are written short, what lies between is left out."""
    return "".join(_line(points) + ("Z" if closed else "") for points in lines if points)


def _line(points: Sequence[tuple[float, float]]) -> str:
    parts: list[tuple[str, str]] = []
    last_x, last_y = num(points[0][0]), num(points[0][1])
    start = f"M{last_x} {last_y}"
    for point in points[1:]:
        x, y = num(point[0]), num(point[1])
        if x == last_x and y == last_y:
            continue
        command, value = ("V", y) if x == last_x else ("H", x) if y == last_y else ("L", f"{x} {y}")
        if command != "L" and parts and parts[-1][0] == command:
            parts.pop()
        parts.append((command, value))
        last_x, last_y = x, y
    return start + "".join(command + value for command, value in parts)


def drawing(ident: str, size: tuple[float, float], title: str, description: str, children: Sequence[str]) -> Markup:
    """A whole picture of `size` units with a title and a description for those who cannot see it.

    `ident` is unique in the page: the title and description are found by it.
    """
    width, height = size
    return element(
        "svg",
        {
            "class": "chart",
            "viewBox": f"0 0 {num(width)} {num(height)}",
            "width": width,
            "height": height,
            "role": "img",
            "aria-labelledby": f"{ident}-t {ident}-d",
            **_TEXT_WIDTH,
        },
        element("title", {"id": f"{ident}-t"}, title),
        element("desc", {"id": f"{ident}-d"}, description),
        *children,
    )


_NICE = (1.0, 2.0, 5.0, 10.0)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class LinearScale:
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
class LogScale:
    """Positive values from `low` to `high` at places from `start` to `end`, equal ratios at equal distances."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of `value`. Raises ValueError for zero and less."""
        return LinearScale(math.log(self.low), math.log(self.high), self.start, self.end)(math.log(value))


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


SUBJECTS = 5
"""Looks of subjects (`subject0` and on) that can be told apart in one picture."""
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

    def scale(self, start: float, end: float) -> LinearScale | LogScale:
        return (LogScale if self.logarithmic else LinearScale)(self.low, self.high, start, end)


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
    # a label at the right end stays within the picture
    last = box.right + 10
    labels += [
        text(min(x(value), last - len(label) * CHARACTER / 2), box.bottom + 16, label, anchor="middle")
        for value, label in across.ticks
    ]
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


def spread(ideal: Sequence[float], gap: float, low: float, high: float) -> tuple[float, ...]:
    """Places near the wanted ones, in their order, at least `gap` apart, and within [low, high] when they fit."""
    # places that differ by less than a line keep the order they came in, so that two equal curves always read alike
    order = sorted(range(len(ideal)), key=lambda index: (round(ideal[index] / gap), index))
    placed: list[float] = []
    for index in order:
        placed.append(max(ideal[index], placed[-1] + gap if placed else low))
    if placed and placed[-1] > high:
        placed[-1] = high
        for later, earlier in pairwise(range(len(placed) - 1, -1, -1)):
            placed[earlier] = min(placed[earlier], placed[later] - gap)
    result = [0.0] * len(ideal)
    for index, pixel in zip(order, placed, strict=True):
        result[index] = float(num(pixel))
    return tuple(result)
