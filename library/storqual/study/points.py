# SPDX-License-Identifier: Apache-2.0
"""What a study reads: points of a subject with the values of every launch that ran as asked, and lines of them.

A subject is what is compared: an adapter, or an adapter in one arm or one run where several are looked at together.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from storqual.base.figures import together
from storqual.inputs import load_suite
from storqual.plan.points import points_of as suite_points
from storqual.run import Launch, PlannedPoint, Run, read_run
from storqual.run.measurements import PointData, PointKey, measurements_at
from storqual_core.host.fabric import port_key

STUDIED = (
    "iops",
    "throughput_mb_s",
    "throughput_mib_s",
    "cpu_percent",
    "cpu_us_per_io",
    "cpu_us_per_kib",
    "latency_mean_us",
    "member_ios_per_io",
    "iops_at_cap",
    "load_at_cap",
)
"""The metrics that studies draw on, in the names of `storqual.metrics`."""

_AXES = ("bs", "iodepth", "drives", "ports", "adapters", "numjobs", "rwmixread")

Levels = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class StudyPoint:
    """One point of one subject. `levels` are its factors and varied settings; `launches` are metric -> value.

    `pattern` is every factor and fixed parameter of its workload; `ports` are those that its drives are on; so many
    of the launches are `suspect`.
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
    suspect: int = 0

    def values(self, metric: str) -> tuple[float, ...]:
        return tuple(launch[metric] for launch in self.launches if metric in launch)

    def pairs(self, first: str, second: str) -> list[tuple[float, float]]:
        return [(launch[first], launch[second]) for launch in self.launches if first in launch and second in launch]

    def mean(self, metric: str) -> float | None:
        """The mean of `metric` over launches; None without any."""
        values = self.values(metric)
        return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class PointLine:
    """Cells of one subject and workload that differ in the factor `along` only, ascending."""

    subject: str
    workload: str
    along: str
    rest: Levels
    points: tuple[StudyPoint, ...]

    @property
    def title(self) -> str:
        return together(self.workload, self.rest)

    def values(self, metric: str) -> dict[float, tuple[float, ...]]:
        by_level = {float(point.levels[self.along]): point.values(metric) for point in self.points}
        return {level: values for level, values in by_level.items() if values and min(values) > 0}

    def pairs(self, first: str, second: str) -> dict[float, list[tuple[float, float]]]:
        by_level = {float(point.levels[self.along]): point.pairs(first, second) for point in self.points}
        return {level: pairs for level, pairs in by_level.items() if pairs and min(map(min, pairs)) > 0}


def number(value: object) -> bool:
    """Whether a level can stand on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def lines_of(points: Iterable[StudyPoint], along: str) -> list[PointLine]:
    """Lines along a factor with two levels or more, in the order of the points."""
    groups: defaultdict[tuple[str, str, Levels], list[StudyPoint]] = defaultdict(list)
    for point in points:
        if number(point.levels.get(along)) and point.launches:
            rest = tuple(sorted((name, level) for name, level in point.levels.items() if name != along))
            groups[(point.subject, point.workload, rest)].append(point)
    return [
        PointLine(subject, workload, along, rest, tuple(sorted(members, key=lambda point: point.levels[along])))
        for (subject, workload, rest), members in groups.items()
        if len({point.levels[along] for point in members}) > 1
    ]


def first_axis(points: Sequence[StudyPoint]) -> str | None:
    """The factor to look along: the first of the usual ones that has several levels; None when none has."""
    for name in _AXES:
        if len({point.levels[name] for point in points if number(point.levels.get(name))}) > 1:
            return name
    return None


_Name = tuple[str, str, str, str]
"""Run, bench, adapter, arm."""


def points_of_runs(paths: Sequence[Path], *, arms: Sequence[str] = ("candidate",)) -> list[StudyPoint]:
    """The measured points of runs, of the arms that are looked at.

    A subject is named by what tells it from the others: its adapter, with bench, drop and run where they differ.
    Raises BadInputError for what is no run, StorqualError for a damaged one.
    """
    runs = [read_run(path) for path in paths]
    return points_of([(run, measurements_at(run, dict.fromkeys(run.points, STUDIED)).points) for run in runs], arms)


def points_of(
    runs: Sequence[tuple[Run, Mapping[PointKey, PointData]]], arms: Sequence[str] = ("candidate",)
) -> list[StudyPoint]:
    """The same from what was read of each run's samples, the metrics `STUDIED` among it."""
    by_subject: dict[_Name, list[StudyPoint]] = {}
    drops: dict[_Name, str] = {}
    for run, points in runs:
        patterns = {
            (point.workload, frozenset(point.factors)): point.pattern.values
            for point in suite_points(load_suite(run.input_file("suite")))
        }
        ports = {(bench, drive): port for bench in run.benches for drive, port in ports_of(run, bench).items()}
        for planned in run.plan.points:
            pattern = patterns.get((planned.workload, frozenset(planned.factors.items())), planned.factors)
            wired = {ports.get((planned.bench, drive)) for drive in planned.drives}
            data = points.get(planned.key) or PointData(planned)
            for arm in arms:
                name = (run.name, planned.bench, planned.adapter, arm)
                good = data.good(arm)
                if good:
                    drops[name] = run.arms[arm].drop if arm in run.arms else arm
                    point = _point(planned, pattern, max(1, len(wired - {None})), list(map(_values, good)))
                    doubtful = sum(bool(launch.suspect) for launch in good)
                    by_subject.setdefault(name, []).append(replace(point, suspect=doubtful))
    subjects = _subjects(drops)
    return [replace(point, subject=subjects[name]) for name, points in by_subject.items() for point in points]


def _values(launch: Launch) -> dict[str, float]:
    values = {name: launch.number(name) for name in STUDIED}
    return {name: value for name, value in values.items() if value is not None}


def ports_of(run: Run, bench: str) -> dict[str, tuple[str, object]]:
    return {
        str(drive["id"]): (alias, port_key(drive.get("port")))
        for alias, adapter in (run.benches[bench].get("adapters") or {}).items()
        for drive in adapter.get("drives") or ()
    }


def _point(
    planned: PlannedPoint, pattern: Mapping[str, Any], ports: int, launches: Sequence[Mapping[str, float]]
) -> StudyPoint:
    return StudyPoint(
        subject=planned.adapter,
        bench=planned.bench,
        adapter=planned.adapter,
        point=planned.point,
        workload=planned.workload,
        levels={**planned.factors, **planned.varied},
        varied=tuple(sorted(planned.varied)),
        pattern=pattern,
        drives=planned.drives,
        ports=ports,
        launches=tuple(launches),
    )


def _subjects(drops: Mapping[_Name, str]) -> dict[_Name, str]:
    """Names that tell subjects apart; drops of one name in several runs are told apart by their runs."""
    rows = {name: (name[2], name[1], drop, name[0]) for name, drop in drops.items()}
    varies = [len({row[column] for row in rows.values()}) > 1 for column in range(4)]
    # a run's id tells nothing to a reader where drop or bench do
    for columns in ((True, varies[1], varies[2], False), (True, varies[1], varies[2], True)):
        named = {
            name: " ".join(part for part, shown in zip(row, columns, strict=True) if shown)
            for name, row in rows.items()
        }
        if len(set(named.values())) == len(named):
            break
    return named
