# SPDX-License-Identifier: Apache-2.0
"""Published figures beside ours: which of them are about the same point, and how far apart they are.

Figures of another machine decide nothing here: they are drawn into the curves of the same points, with the ratio.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from storqual.base.factor_names import together
from storqual.inputs.references import PublishedValue, overlays
from storqual.study.points import STUDIED, Levels, PointLine, StudyPoint, first_axis, lines_of
from storqual_core.kit.quantities import format_size, is_whole, parse_size

_WORDS = {"single": ("ports", "1"), "dual": ("ports", "2"), "read": ("rw", "read"), "write": ("rw", "write")}


@dataclass(frozen=True)
class Beside:
    """A published figure and the point of ours that is most like it; `ours` is a mean, in the same unit."""

    report: str
    theirs: PublishedValue
    point: StudyPoint
    ours: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs.value


@dataclass(frozen=True)
class Overlay:
    """A curve of ours, a line per subject, and what was published of its points: source -> level -> value.

    Both are in the unit of `metric`.
    """

    title: str
    metric: str
    along: str
    lines: tuple[PointLine, ...]
    theirs: Mapping[str, Mapping[float, float]]


def beside(points: Sequence[StudyPoint], reports: Sequence[str]) -> list[Beside]:
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


def overlays_of(points: Sequence[StudyPoint], found: Sequence[Beside]) -> list[Overlay]:
    """The curves on which published figures lie; a figure whose point stands alone, on no curve, is in none."""
    series: defaultdict[tuple[str, str, str], list[Beside]] = defaultdict(list)
    for one in found:
        if one.theirs.metric is not None:
            series[one.theirs.metric, one.point.workload, one.theirs.source].append(one)
    curves: dict[tuple[str, str, str], tuple[list[PointLine], dict[str, dict[float, float]]]] = {}
    for (metric, workload, source), members in series.items():
        here = [point for point in points if point.workload == workload]
        along = first_axis([one.point for one in members]) or first_axis(here)
        groups: defaultdict[Levels, list[PointLine]] = defaultdict(list)
        for line in lines_of(here, along) if along is not None else ():
            groups[line.rest].append(line)
        for rest, lines in groups.items():
            on_it = {
                _level(one.point, line.along): one.theirs.value
                for one in members
                for line in lines
                if one.point in line.points
            }
            if on_it:
                _, theirs = curves.setdefault((together(workload, rest), metric, lines[0].along), (lines, {}))
                theirs[source] = on_it
    return [
        Overlay(title, metric, along, tuple(lines), theirs)
        for (title, metric, along), (lines, theirs) in curves.items()
    ]


def _level(point: StudyPoint, along: str) -> float:
    return float(point.levels[along])


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
        elif word.endswith("kb") and is_whole(word[:-2]):
            yield "bs", f"{word[:-2]}k"


def _matching(points: Sequence[StudyPoint], wanted: Mapping[str, str]) -> Iterator[StudyPoint]:
    """Per subject the first point with all that is wanted; what the figure does not say is free."""
    seen: set[str] = set()
    for point in points:
        if point.subject not in seen and all(_is(point, name, text) for name, text in wanted.items()):
            seen.add(point.subject)
            yield point


def _is(point: StudyPoint, name: str, text: str) -> bool:
    value = point.ports if name == "ports" else point.pattern.get(name)
    if name == "bs" and isinstance(value, int):
        try:
            return format_size(parse_size(text)) == format_size(value)
        except ValueError:
            return False
    return str(value) == text
