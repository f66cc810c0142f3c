# SPDX-License-Identifier: Apache-2.0
"""SVG elements as escaped text: the only place of the report that makes markup outside the templates.

Colours are classes of report.css, so that light, dark and print differ; each group also carries plain presentation
attributes, so that a chart is readable where a strict policy drops the style sheet.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from storqual.base.text import visible_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    return value if isinstance(value, Markup) else str(escape(visible_text(value)))


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


def text(
    x: float, y: float, label: str, *, anchor: str = "start", class_: str | None = None, turn: float | None = None
) -> Markup:
    """A label at (x, y); `anchor` is start, middle or end; `turn` rotates it by degrees about its own place."""
    turned = None if turn is None else f"rotate({num(turn)} {num(x)} {num(y)})"
    position = {"x": x, "y": y, "text-anchor": None if anchor == "start" else anchor}
    return element("text", {**position, "class": class_, "transform": turned}, label)


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


def drawing(
    ident: str,
    size: tuple[float, float],
    title: str,
    description: str,
    children: Sequence[str],
    *,
    class_: str = "chart",
) -> Markup:
    """A whole picture of `size` units with a title and a description for those who cannot see it.

    `ident` is unique in the page: the title and description are found by it.
    """
    width, height = size
    return element(
        "svg",
        {
            "class": class_,
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
