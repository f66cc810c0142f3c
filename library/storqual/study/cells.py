# SPDX-License-Identifier: Apache-2.0
"""What a study reads: points of a subject with the values of every launch that ran as asked, and lines of them.

A subject is what is compared: an adapter, or an adapter in one arm or one run where several are looked at together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.factor_words import together

__all__ = ["METRICS", "Cell", "Line", "first_axis", "lines_of", "number"]

METRICS = (
    "iops",
    "throughput_mb_s",
    "throughput_mib_s",
    "cpu_percent",
    "cpu_us_per_io",
    "cpu_us_per_kib",
    "latency_mean_us",
    "member_ios_per_io",
)
"""The metrics that studies draw on, in the names of `storqual.metrics`."""

_AXES = ("bs", "iodepth", "drives", "ports", "adapters", "numjobs", "rwmixread")

Levels = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Cell:
    """One point of one subject. `levels` are its factors and varied settings; `launches` are metric -> value.

    `pattern` is every factor and fixed parameter of its workload; `ports` are those that its drives are on.
    """

    subject: str
    bench: str
    adapter: str
    point: str
    workload: str
    levels: Mapping[str, Any]
    varied: tuple[str, ...]
    pattern: Mapping[str, Any]
    drives: tuple[str, ...]
    ports: int
    launches: tuple[Mapping[str, float], ...]

    def values(self, metric: str) -> tuple[float, ...]:
        """`metric` in each launch that has it."""
        return tuple(launch[metric] for launch in self.launches if metric in launch)

    def pairs(self, first: str, second: str) -> list[tuple[float, float]]:
        """Two metrics of each launch that has both."""
        return [(launch[first], launch[second]) for launch in self.launches if first in launch and second in launch]

    def mean(self, metric: str) -> float | None:
        """The mean of `metric` over launches; None without any."""
        values = self.values(metric)
        return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class Line:
    """Cells of one subject and workload that differ in the factor `along` only, ascending."""

    subject: str
    workload: str
    along: str
    rest: Levels
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        """The workload with what is fixed on the line."""
        return together(self.workload, self.rest)

    def values(self, metric: str) -> dict[float, tuple[float, ...]]:
        """Level -> the values of `metric` above zero; levels without any are left out."""
        found = {float(cell.levels[self.along]): cell.values(metric) for cell in self.cells}
        return {level: values for level, values in found.items() if values and min(values) > 0}

    def pairs(self, first: str, second: str) -> dict[float, list[tuple[float, float]]]:
        """Level -> two metrics of each launch; levels without any are left out."""
        found = {float(cell.levels[self.along]): cell.pairs(first, second) for cell in self.cells}
        return {level: pairs for level, pairs in found.items() if pairs and min(map(min, pairs)) > 0}


def number(value: object) -> bool:
    """Whether a level can stand on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def lines_of(cells: Iterable[Cell], along: str) -> list[Line]:
    """Lines along a factor with two levels or more, in the order of the cells."""
    groups: defaultdict[tuple[str, str, Levels], list[Cell]] = defaultdict(list)
    for cell in cells:
        if number(cell.levels.get(along)) and cell.launches:
            rest = tuple(sorted((name, level) for name, level in cell.levels.items() if name != along))
            groups[(cell.subject, cell.workload, rest)].append(cell)
    return [
        Line(subject, workload, along, rest, tuple(sorted(members, key=lambda cell: cell.levels[along])))
        for (subject, workload, rest), members in groups.items()
        if len({cell.levels[along] for cell in members}) > 1
    ]


def first_axis(cells: Sequence[Cell]) -> str | None:
    """The factor to look along: the first of the usual ones that has several levels; None when none has."""
    for name in _AXES:
        if len({cell.levels[name] for cell in cells if number(cell.levels.get(name))}) > 1:
            return name
    return None
