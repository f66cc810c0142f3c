# SPDX-License-Identifier: Apache-2.0
"""A control chart: values in the order of time, the centre line, the limits, and what lies beyond them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from storqual.report.charts.frame import CHARACTER, Axis, Box, dots, frame, stroke
from storqual.report.charts.svg import drawing, element, group, path, text

if TYPE_CHECKING:
    from collections.abc import Sequence


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
