# SPDX-License-Identifier: Apache-2.0
"""Values of both arms as rows under headings, on one axis from zero: for designs too thin for curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storqual.report.charts.frame import Axis, Box, dots, look
from storqual.report.charts.svg import drawing, element, group, path, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from storqual.report.charts.line import Mark

__all__ = ["DotRow", "dot_chart"]

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
