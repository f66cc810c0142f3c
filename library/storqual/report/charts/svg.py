# SPDX-License-Identifier: Apache-2.0
"""SVG elements as escaped text: the only place of the report that makes markup outside the templates.

Colours are classes of report.css, so that light, dark and print differ; each group also carries plain presentation
attributes, so that a chart is readable where a strict policy drops the style sheet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from storqual.text_safety import visible_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Attribute", "drawing", "element", "group", "num", "path", "text"]

Attribute = str | float | int
_NAME = re.compile(r"^[a-zA-Z][a-zA-Z0-9-]*$")
_TEXT_WIDTH = {"font-size": 11}


def num(value: float) -> str:
    """A coordinate with one decimal, without a trailing zero and without minus zero."""
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def element(name: str, attributes: Mapping[str, Attribute | None], *children: str) -> Markup:
    """One element; every attribute and every child that is not already Markup is escaped; None leaves one out.

    Raises ValueError for a name that is no plain word, an event handler or a reference: no chart needs one.
    """
    parts: list[str] = []
    for key, value in attributes.items():
        if value is None:
            continue
        if not _NAME.match(key) or key.lower().startswith("on") or key.lower() in {"href", "src", "style"}:
            raise ValueError(f"{key!r} is no attribute of a chart")
        shown = num(value) if isinstance(value, (int, float)) else escape(visible_text(value))
        parts.append(f' {key}="{shown}"')
    if not _NAME.match(name) or name.lower() in {"script", "foreignobject", "image", "use", "a"}:
        raise ValueError(f"{name!r} is no element of a chart")
    inner = "".join(child if isinstance(child, Markup) else escape(visible_text(child)) for child in children)
    opening = f"<{name}{''.join(parts)}"
    return Markup(f"{opening}>{inner}</{name}>") if inner else Markup(f"{opening}/>")  # noqa: S704 - escaped above


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


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """The `d` of a line through `points`."""
    body = "L".join(f"{num(x)} {num(y)}" for x, y in points)
    return f"M{body}{'Z' if closed else ''}" if points else ""


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
            "font-family": "system-ui, sans-serif",
            **_TEXT_WIDTH,
        },
        element("title", {"id": f"{ident}-t"}, title),
        element("desc", {"id": f"{ident}-d"}, description),
        *children,
    )
