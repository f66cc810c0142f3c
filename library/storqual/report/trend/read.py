# SPDX-License-Identifier: Apache-2.0
"""Past runs as a trend sees them: run.json and verdict.json of each, no samples: a quarter is read at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

from storqual.judge.earlier import readings_of
from storqual.report.criterion import Criterion, read_criteria
from storqual.run import read_run, read_run_json
from storqual.run.files import read_object
from storqual.run.measurements import reference_launches
from storqual.statistics.control import Control, individuals
from storqual_core.kit.errors import BadInputError

NOT_JUDGED = "NOT JUDGED"


@dataclass(frozen=True)
class PastRun:
    """One run; `verdict` is empty where it was not judged."""

    path: Path
    document: Mapping[str, Any]
    verdict: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The run's id."""
        return str(self.document.get("run"))

    @property
    def created(self) -> str:
        """When it was planned, as an ISO time."""
        return str(self.document.get("created") or "")

    @property
    def outcome(self) -> str:
        """The verdict's outcome, or that there is none."""
        return str(self.verdict.get("outcome") or NOT_JUDGED)

    @property
    def benches(self) -> tuple[str, ...]:
        """The benches it used."""
        return tuple(self.document.get("benches") or ())

    def drop(self, arm: str) -> str:
        """The drop of an arm."""
        return str(((self.document.get("arms") or {}).get(arm) or {}).get("drop") or "")

    @property
    def suite(self) -> str:
        """Suite and profile."""
        suite = self.document.get("suite") or {}
        return f"{suite.get('name')} {suite.get('profile')}"

    @cached_property
    def rows(self) -> tuple[Criterion, ...]:
        """The criteria of its verdict."""
        return read_criteria(self.verdict)

    def shifts(self) -> list[Criterion]:
        """Required criteria against the baseline that have a shift, the worst first."""
        found = [
            row
            for row in self.rows
            if row.against == "baseline" and row.required and row.number("shift_percent") is not None
        ]
        return sorted(found, key=lambda row: row.number("shift_percent") or 0.0)


def read_past(places: Sequence[Path]) -> tuple[PastRun, ...]:
    """The runs at `places` (run directories, or folders of them) in the order of time, each once.

    Raises BadInputError when a place holds none, StorqualError for a damaged file.
    """
    found: dict[str, PastRun] = {}
    problems = []
    for place in places:
        runs = list(_runs_at(place))
        if not runs:
            problems.append(f"{place}: found no run directory, expected one, or a folder of them")
        for path in runs:
            run = PastRun(path, read_run_json(path), _verdict(path))
            found.setdefault(run.name, run)
    if problems:
        raise BadInputError(problems)
    return tuple(sorted(found.values(), key=lambda run: (run.created, run.name)))


def _runs_at(place: Path) -> Iterator[Path]:
    if (place / "run.json").is_file():
        yield place
    elif place.is_dir():
        yield from sorted(path.parent for path in place.glob("*/run.json"))


def _verdict(path: Path) -> Mapping[str, Any]:
    return read_object(path, "verdict.json") if (path / "verdict.json").is_file() else {}


_METRIC = "iops"
FEWEST = 2
"""Campaigns from which there is something to compare."""


@dataclass(frozen=True)
class Level:
    """One campaign: deviation from the usual level in percent, median over `points` points (readings)."""

    run: PastRun
    percent: float
    points: int


@dataclass(frozen=True)
class Series:
    """Campaigns in the order of time with their control chart: of an adapter or drive of a bench, under `what`."""

    bench: str
    place: str
    what: str
    levels: tuple[Level, ...]
    control: Control


def series_of(runs: Sequence[PastRun]) -> tuple[Series, ...]:
    """A series for every bench, adapter and baseline drop that at least two campaigns have points in common for.

    The baseline is what should not change: it is compared with itself, point by point, as log-ratios to the point's
    median over the campaigns.
    """
    found: defaultdict[tuple[str, str, str], dict[str, tuple[PastRun, dict[str, float]]]] = defaultdict(dict)
    for run in runs:
        for bench, adapter, point, value in _baselines(run):
            found[bench, adapter, run.drop("baseline")].setdefault(run.name, (run, {}))[1][point] = value
    made = []
    for (bench, adapter, drop), by_run in found.items():
        levels = _levels(list(by_run.values()))
        if len(levels) >= FEWEST:
            control = individuals([level.percent for level in levels])
            made.append(Series(bench, adapter, f"baseline drop {drop}", tuple(levels), control))
    return tuple(sorted(made, key=lambda one: (one.bench, one.place, one.what)))


def _baselines(run: PastRun) -> Iterator[tuple[str, str, str, float]]:
    for row in run.rows:
        value = row.number("reference")
        if row.against == "baseline" and row.text("metric") == _METRIC and value is not None and value > 0:
            yield (*row.key, value)


def _levels(runs: Sequence[tuple[PastRun, dict[str, float]]]) -> list[Level]:
    seen: defaultdict[str, list[float]] = defaultdict(list)
    for _, values in runs:
        for point, value in values.items():
            seen[point].append(math.log(value))
    usual = {point: median(values) for point, values in seen.items() if len(values) >= FEWEST}
    levels = []
    for run, values in runs:
        apart = [math.log(value) - usual[point] for point, value in values.items() if point in usual]
        if apart:
            levels.append(Level(run, 100 * math.expm1(median(apart)), len(apart)))
    return levels


def reference_series(runs: Sequence[PastRun]) -> tuple[Series, ...]:
    """A series for every bench and reference drive that at least two campaigns have readings of.

    Only runs on benches with a reference have their samples read. A campaign's value is the mean of its readings, as
    deviation from the median campaign.
    """
    found: defaultdict[tuple[str, str], dict[str, tuple[PastRun, list[float]]]] = defaultdict(dict)
    for run in runs:
        if any(bench.get("reference") for bench in (run.document.get("benches") or {}).values()):
            opened = read_run(run.path)
            for reading in readings_of(opened, reference_launches(opened)):
                place = found[reading.bench, reading.drive].setdefault(run.name, (run, []))
                place[1].append(math.log(reading.iops))
    made = []
    for (bench, drive), campaigns in found.items():
        if len(campaigns) < FEWEST:
            continue
        usual = median(fmean(values) for _, values in campaigns.values())
        levels = tuple(
            Level(run, 100 * math.expm1(fmean(values) - usual), len(values)) for run, values in campaigns.values()
        )
        made.append(Series(bench, drive, "golden reference", levels, individuals([one.percent for one in levels])))
    return tuple(made)
