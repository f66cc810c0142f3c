# SPDX-License-Identifier: Apache-2.0
"""Launches of one point as ratios on a line with the limits; and both arms of many points against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.charts.svg import CHARACTER, Axis, Box, dots, drawing, element, frame, group, path, text

_ROW = 30.0
_JITTER = 5.0
_STEPS = 3


@dataclass(frozen=True)
class StripRow:
    """Ratios of one arm's launches to the baseline's mean (1 is the same), in the order they were run."""

    arm: str
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class Limit:
    """A ratio that is a limit, its name, and whether it is the unacceptable one."""

    ratio: float
    name: str
    unacceptable: bool


def strip(
    ident: str, title: str, description: str, rows: Sequence[StripRow], limits: Sequence[Limit], along: Axis,
    *, width: float = 340,
) -> Markup:  # fmt: skip
    """One row of marks for each arm; marks of one row stand a little apart, so that equal launches are all seen."""
    left = 14 + max((len(row.arm) for row in rows), default=0) * CHARACTER
    names = 14.0 * len(limits)
    box = Box(left, 8 + names, width - 14, 8 + names + _ROW * len(rows))
    x = along.scale(box.left, box.right)
    grid = [[(x(value), box.top), (x(value), box.bottom)] for value, _ in along.ticks]
    labels = [text(x(value), box.bottom + 16, label, anchor="middle") for value, label in along.ticks]
    labels.append(text(box.right, box.bottom + 31, along.name, anchor="end", class_="n"))
    parts: list[Markup] = [element("path", {"class": "gr", "stroke": "#ddd", "fill": "none", "d": path(*grid)})]
    for number, limit in enumerate(limits):
        place = x(limit.ratio)
        high = 8 + 14.0 * number
        line = path([(place, high), (place, box.bottom)])
        look = ("limit", "#a33", "3 2") if limit.unacceptable else ("same", "#777", "1 3")
        parts.append(element("path", {"class": look[0], "stroke": look[1], "stroke-dasharray": look[2], "d": line}))
        right = place > (box.left + box.right) / 2
        labels.append(text(place + (-5 if right else 5), high + 9, limit.name, anchor="end" if right else "start"))
    parts.append(
        element("path", {"class": "zero", "d": path([(x(1.0), box.top), (x(1.0), box.bottom)]), "stroke": "#999"})
    )
    for number, row in enumerate(rows):
        middle = box.top + _ROW * (number + 0.5)
        labels.append(text(box.left - 8, middle + 4, row.arm, anchor="end"))
        places = [(x(ratio), middle + _JITTER * (at % _STEPS - 1)) for at, ratio in enumerate(row.ratios)]
        parts.append(dots(row.arm, places, radius=2.6))
    parts.append(group("lb", {"fill": "#555"}, labels))
    return drawing(ident, (width, box.bottom + 38), title, description, parts)


def scatter(
    ident: str, title: str, description: str, groups: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    across: Axis, up: Axis, *, size: tuple[float, float] = (560, 420),
) -> Markup:  # fmt: skip
    """Marks of (baseline, candidate) and the line on which both are the same; a group is a class of marks."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    box = Box(10 + widest * CHARACTER, 26, size[0] - 14, size[1] - 40)
    x, y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    low, high = max(across.low, up.low), min(across.high, up.high)
    same = element(
        "path",
        {"class": "zero", "stroke": "#999", "fill": "none", "d": path([(x(low), y(low)), (x(high), y(high))])},
    )
    marks = [
        group(
            f"sh o-{tone}",
            {"fill": "none", "stroke": "#1f5fa8", "stroke-width": 1.5},
            [element("circle", {"cx": x(one), "cy": y(other), "r": 3}) for one, other in places],
        )
        for tone, places in groups
    ]
    return drawing(ident, size, title, description, [frame(box, across, up), same, *marks])
