# SPDX-License-Identifier: Apache-2.0
"""Published figures beside ours: which of them are about the same point, and how far apart they are.

Figures of another machine decide nothing here; what can be compared is the shape, so each is also given relative to
the first of its series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from storqual.inputs.references import PublishedValue, overlays
from storqual.study.points import STUDIED, Point
from storqual_core.kit.quantities import format_size, parse_size

_WORDS = {"single": ("ports", "1"), "dual": ("ports", "2"), "read": ("rw", "read"), "write": ("rw", "write")}


@dataclass(frozen=True)
class Beside:
    """A published figure and the point of ours that is most like it; `ours` is a mean, in the same unit."""

    report: str
    theirs: PublishedValue
    point: Point
    ours: float

    @property
    def ratio(self) -> float:
        """Ours as a multiple of theirs."""
        return self.ours / self.theirs.value


def beside(points: Sequence[Point], reports: Sequence[str]) -> list[Beside]:
    """Every published figure with each subject's matching point. Raises BadInputError for an unknown report."""
    found = []
    for report in reports:
        for metric in STUDIED:
            for theirs in overlays(report, metric):
                wanted = dict(_wanted(theirs))
                if "rw" not in wanted or theirs.value <= 0:
                    continue
                for point in _matching(points, wanted):
                    ours = point.mean(metric)
                    if ours is not None:
                        found.append(Beside(report, theirs, point, ours))
    return found


def _wanted(value: PublishedValue) -> Iterator[tuple[str, str]]:
    """Factors that the figure's own text gives, and those that its label says in words."""
    for name, text in value.point.items():
        if name == "operation":
            yield "rw", text
        else:
            yield name, text
    for word in (value.label or "").lower().split():
        if word in _WORDS:
            yield _WORDS[word]
        elif word.endswith("kb") and word[:-2].isdigit():
            yield "bs", f"{word[:-2]}k"


def _matching(points: Sequence[Point], wanted: Mapping[str, str]) -> Iterator[Point]:
    """Per subject the first point with all that is wanted; what the figure does not say is free."""
    seen: set[str] = set()
    for point in points:
        if point.subject not in seen and all(_is(point, name, text) for name, text in wanted.items()):
            seen.add(point.subject)
            yield point


def _is(point: Point, name: str, text: str) -> bool:
    value = point.ports if name == "ports" else point.pattern.get(name)
    if name == "bs" and isinstance(value, int):
        try:
            return format_size(parse_size(text)) == format_size(value)
        except ValueError:
            return False
    return str(value) == text
