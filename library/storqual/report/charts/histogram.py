# SPDX-License-Identifier: Apache-2.0
"""A distribution of both arms as step outlines on one axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from storqual.report.charts.frame import CHARACTER, Axis, Box, frame, look
from storqual.report.charts.svg import drawing, element, path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storqual.report.charts.frame import Linear, Log


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
    ident: str,
    title: str,
    description: str,
    distributions: Sequence[Distribution],
    across: Axis,
    up: Axis,
    *,
    size: tuple[float, float] = (340, 190),
) -> Markup:
    """Step outlines over one axis; the baseline's is filled, the candidate's a line, so both are seen."""
    widest = max((len(label) for _, label in up.ticks), default=1)
    box = Box(10 + widest * CHARACTER, 26, size[0] - 12, size[1] - 40)
    x, y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    shapes = [_outline(distribution, x, y, box.bottom) for distribution in distributions]
    return drawing(ident, size, title, description, [frame(box, across, up), *shapes])


def _outline(distribution: Distribution, x: Linear | Log, y: Linear | Log, bottom: float) -> Markup:
    places: list[tuple[float, float]] = []
    for bar in distribution.bins:
        places += [(x(bar.low), y(bar.share)), (x(bar.high), y(bar.share))]
    if not places:
        return Markup("")
    outline = path([(places[0][0], bottom), *places, (places[-1][0], bottom)], closed=True)
    colour = look(distribution.arm)["stroke"]
    if distribution.arm == "baseline":
        return element("path", {"class": "i-baseline", "fill": colour, "fill-opacity": ".25", "d": outline})
    line = outline.removesuffix("Z")
    return element(
        "path", {"class": f"s-{distribution.arm}", **look(distribution.arm), "stroke-width": 1.5, "d": line}
    )
