# SPDX-License-Identifier: Apache-2.0
"""The index of a folder of run directories: SQLite, embedded, rebuilt from them at any time.

A run is known by the digest of its run.json and verdict.json (which holds the digests of samples and inputs): one
that has not changed is not read again, wherever it was moved to, and one that is gone is forgotten. The index is its
reader's own: one that lay beside the runs, which may be anybody's, would say of them what it liked.

The control chart of a bench's golden reference drive is one of individuals, a value per campaign: the mean of its
readings. Limits come from the campaigns before the one that is looked at. Within a campaign the readings say nothing
about campaigns.
"""

import json
import math
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storqual.base.files import state_home
from storqual.history.past_runs import digest_of_run, is_judged, read_past_run
from storqual.inputs import load_suite
from storqual.inputs.policy import Gate
from storqual.judge.against_baseline import pair_levels_of
from storqual.judge.earlier import EXTRACT, SCHEMA, ReferenceReading, read_histories
from storqual.judge.outcome import used_waivers, with_waivers
from storqual.judge.question import (
    Question,
    Unit,
    metrics_of,
    planned_criteria,
    questions_of,
    session_means,
    units_of,
)
from storqual.run import Run, sha256_of
from storqual.run.files import DAMAGE, limit_of
from storqual.run.layout import RUN_FILE, is_inside_run, run_folders
from storqual.run.measurements import measurements_at
from storqual.statistics.estimates import individuals
from storqual.statistics.noise import pooled_sd
from storqual.statistics.pairs import estimate
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_percent

_ARMS = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of a metric at a point: `sd_pair` of a pair's log-ratio, `sd_session` of a session's mean.

    Both are about the mean of what was measured, so that a true loss of the candidate is no noise. None: not seen.
    """

    bench: str
    adapter: str
    point: str
    metric: str
    sd_pair: float | None
    df_pair: float
    sd_session: float | None
    df_session: float


def noise_of(run: Run) -> list[Noise]:
    criteria = [
        (point, rule)
        for point, rule in planned_criteria(run, load_suite(run.input_file("suite")), Gate())
        if rule.against == "baseline"
    ]
    noise = {}
    for question in questions_of(run, criteria, measurements_at(run, metrics_of(criteria)).points):
        metric = question.metric
        if metric is None or metric.kind == "count":
            continue
        arms = [units_of(question.launches.of(arm), metric) for arm in _ARMS]
        if any(isinstance(arm, str) or not arm or min(unit.value for unit in arm) <= 0 for arm in arms):
            continue
        entry = _noise(question, [list(arm) for arm in arms if not isinstance(arm, str)])
        if entry.df_pair or entry.df_session:
            noise[*question.point.key, metric.name] = entry
    return list(noise.values())


def pooled(entries: Iterable[Noise]) -> list[Noise]:
    """Entries of several runs as one for each point and metric: variances weighted by their degrees of freedom."""
    groups: dict[tuple[str, str, str, str], list[Noise]] = {}
    for entry in entries:
        groups.setdefault((entry.bench, entry.adapter, entry.point, entry.metric), []).append(entry)
    combined = []
    for key, members in sorted(groups.items()):
        pair = pooled_sd([(member.sd_pair, member.df_pair) for member in members])
        session = pooled_sd([(member.sd_session, member.df_session) for member in members])
        combined.append(Noise(*key, *pair, *session))
    return combined


def _noise(question: Question, arms: Sequence[Sequence[Unit]]) -> Noise:
    if question.by_session:
        means = [list(session_means(arm, math.log).values()) for arm in arms]
        parts = [(float(np.std(values, ddof=1)), len(values) - 1.0) for values in means if len(values) > 1]
        return Noise(*question.point.key, question.criterion.metric, None, 0.0, *pooled_sd(parts))
    # as the judge takes them: dips bounded, an odd launch left out
    estimates = estimate([pair_levels_of(arms[0], arms[1])], [None])
    has_noise = float(estimates.df[0]) > 0
    spread = float(estimates.sd[0]) if has_noise else None
    return Noise(*question.point.key, question.criterion.metric, spread, float(estimates.df[0]), None, 0.0)


_SMALLEST_REACH = 0.0015
"""Half width of the limits, as a share of the centre, below which no bench is believed to repeat."""


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A campaign on the chart of its bench; limits are None while there are too few campaigns before it."""

    bench: str
    drive: str
    run: str
    moment: str
    iops: float
    readings: int
    low: float | None
    high: float | None

    @property
    def suspect(self) -> str:
        """Why the bench was out of control; empty when it was not, or nobody knows."""
        if self.low is None or self.high is None or self.low <= self.iops <= self.high:
            return ""
        return (
            f"the golden reference of {self.bench} gave {self.iops:.0f} IOPS, outside of its limits "
            f"{self.low:.0f} to {self.high:.0f}: the bench was out of control"
        )


def control_chart(readings: Iterable[ReferenceReading]) -> list[ChartPoint]:
    """The charts of all benches, oldest campaign first; a campaign that was suspect does not widen later limits."""
    campaigns: dict[tuple[str, str], dict[str, list[ReferenceReading]]] = {}
    for reading in readings:
        campaigns.setdefault((reading.bench, reading.drive), {}).setdefault(reading.run, []).append(reading)
    points = []
    for (bench, drive), runs in campaigns.items():
        good: list[float] = []
        for run, members in sorted(runs.items(), key=lambda item: min(reading.moment for reading in item[1])):
            value = sum(reading.iops for reading in members) / len(members)
            low, high = _limits(good)
            moment = min(reading.moment for reading in members)
            point = ChartPoint(bench, drive, run, moment, value, len(members), low, high)
            if not point.suspect:
                good.append(value)
            points.append(point)
    return points


def limits_after(readings: Iterable[ReferenceReading]) -> dict[tuple[str, str], tuple[float, float]]:
    """Limits for the next campaign, by bench and drive, where there were enough that were in control."""
    good: dict[tuple[str, str], list[float]] = {}
    for point in control_chart(readings):
        if not point.suspect:
            good.setdefault((point.bench, point.drive), []).append(point.iops)
    limits = {}
    for key, values in good.items():
        low, high = _limits(values)
        if low is not None and high is not None:
            limits[key] = (low, high)
    return limits


def _limits(values: list[float]) -> tuple[float | None, float | None]:
    """Limits from campaigns that were in control; None while there are too few."""
    if not values:
        return None, None
    chart = individuals(values)
    if chart.limits is None:
        return None, None
    reach = max(chart.limits[1] - chart.centre, _SMALLEST_REACH * chart.centre)
    return chart.centre - reach, chart.centre + reach


_VERSION = 3
_TABLES = """
CREATE TABLE run (digest TEXT PRIMARY KEY, path TEXT, name TEXT, created TEXT, suite TEXT, profile TEXT,
                  baseline TEXT, candidate TEXT, outcome TEXT, waivers TEXT);
CREATE TABLE noise (digest TEXT REFERENCES run ON DELETE CASCADE, bench TEXT, adapter TEXT, point TEXT, metric TEXT,
                    sd_pair REAL, df_pair REAL, sd_session REAL, df_session REAL);
CREATE TABLE reference (digest TEXT REFERENCES run ON DELETE CASCADE, bench TEXT, drive TEXT, moment TEXT, iops REAL);
CREATE INDEX noise_of ON noise (bench, adapter, point, metric);
CREATE INDEX reference_of ON reference (bench, moment);
"""


@dataclass(frozen=True)
class Updated:
    """What an update found: runs that were read, known, forgotten, and those that cannot be read, with why."""

    read: int
    known: int
    forgotten: int
    problems: tuple[str, ...]


class RunIndex:
    """An open index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def update(self, runs: Path) -> Updated:
        """Take in every judged run directory below `runs` that is new or has changed."""
        indexed = {str(row[0]): str(row[1]) for row in self._connection.execute("SELECT digest, path FROM run")}
        present: set[str] = set()
        read, problems = 0, []
        for path in filter(is_judged, run_folders(runs)):
            try:
                digest = digest_of_run(path)
                if digest not in indexed and digest not in present:
                    self._take(path, digest)
                    read += 1
                elif indexed.get(digest) != str(path):
                    self._connection.execute("UPDATE run SET path = ? WHERE digest = ?", (str(path), digest))
                present.add(digest)
            except DAMAGE as problem:
                problems.append(f"{path.name}: {problem}")
        missing = set(indexed) - present
        self._connection.executemany("DELETE FROM run WHERE digest = ?", [(digest,) for digest in missing])
        self._connection.commit()
        return Updated(read, len(present) - read, len(missing), tuple(problems))

    def runs(self) -> list[dict[str, Any]]:
        names = ("path", "run", "created", "suite", "profile", "baseline", "candidate", "outcome", "waivers")
        columns = "path, name, created, suite, profile, baseline, candidate, outcome, waivers"
        query = f"SELECT {columns} FROM run ORDER BY created"  # noqa: S608 - constants
        return [dict(zip(names, row, strict=True)) for row in self._connection.execute(query)]

    def noise(self, newest: int) -> Iterator[Noise]:
        """Noise entries of the newest runs, so many; copies of a run with other verdicts are one."""
        query = (
            "SELECT bench, adapter, point, metric, sd_pair, df_pair, sd_session, df_session FROM noise"
            " WHERE digest IN (SELECT min(digest) FROM run GROUP BY name ORDER BY max(created) DESC LIMIT ?)"
        )
        for row in self._connection.execute(query, (newest,)):
            yield Noise(*row)

    def readings(self) -> Iterator[ReferenceReading]:
        """Launches on golden reference drives, oldest first, with the run they belong to."""
        columns = "run.name, reference.bench, drive, moment, iops"
        query = f"SELECT {columns} FROM reference JOIN run USING (digest) ORDER BY 2, moment"  # noqa: S608 - constants
        for row in self._connection.execute(query):
            yield ReferenceReading(*row)

    def _take(self, path: Path, digest: str) -> None:
        """Read one run into the tables, all of it or nothing."""
        past = read_past_run(path)
        run = past.opened
        accepted = with_waivers(used_waivers(past.criteria))
        head = (digest, str(path), run.name, past.created, run.suite.name, run.suite.profile)
        rest = (past.drop("baseline") or None, past.drop("candidate") or None, past.outcome, accepted)
        noise = [(digest, *astuple(entry)) for entry in noise_of(run)]
        readings = [(digest, read.bench, read.drive, read.moment, read.iops) for read in past.readings()]
        with self._connection:
            self._connection.execute("INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?,?)", (*head, *rest))
            self._connection.executemany("INSERT INTO noise VALUES (?,?,?,?,?,?,?,?,?)", noise)
            self._connection.executemany("INSERT INTO reference VALUES (?,?,?,?,?)", readings)


def index_file(runs: Path) -> Path:
    """Where this user's index of a folder of runs is."""
    return state_home() / "storqual" / "history" / f"{sha256_of(os.fsencode(runs.resolve()))[:16]}.sqlite"


@contextmanager
def open_history(runs: Path) -> Iterator[RunIndex]:
    """Open the index of a folder of runs, made anew when it is of another version or damaged.

    Raises BadInputError when the folder is none, or cannot be written to.
    """
    path = index_file(runs)
    if not runs.is_dir():
        raise BadInputError([f"{runs}: found no folder, expected one that holds run directories"])
    if is_inside_run(runs / RUN_FILE):
        raise BadInputError([f"{runs}: found a run directory, expected the folder that holds run directories"])
    try:
        connection = _sound(path) or _fresh(path)
    except (sqlite3.Error, OSError) as problem:
        raise BadInputError([f"{path}: the index cannot be written ({problem})"]) from None
    with closing(connection):
        yield RunIndex(connection)


def _sound(path: Path) -> sqlite3.Connection | None:
    """The index that is there; None when there is none that can be used."""
    if not path.is_file():
        return None
    connection = sqlite3.connect(path)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("SELECT count(*) FROM run").fetchone()
    except sqlite3.DatabaseError:
        version = None
    if version == _VERSION:
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
    connection.close()
    return None


def _fresh(path: Path) -> sqlite3.Connection:
    """A new index, empty; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with closing(sqlite3.connect(draft)) as connection:
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.commit()
    draft.replace(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


NEWEST = 10
"""Runs whose noise counts: a bench changes, and what it did years ago says little about today."""


def extract_of(runs: Path, benches: Collection[str] | None = None) -> bytes:
    """Noise of points and limits of references (of some benches) from a folder of runs, as a run's input file."""
    with open_history(runs) as history:
        history.update(runs)
        entries = pooled(history.noise(NEWEST))
        limits = limits_after(history.readings())
    chosen = [asdict(entry) for entry in entries if benches is None or entry.bench in benches]
    reference = [
        {"bench": bench, "drive": drive, "low": low, "high": high}
        for (bench, drive), (low, high) in limits.items()
        if benches is None or bench in benches
    ]
    return (json.dumps({"schema": SCHEMA, "noise": chosen, "reference": reference}, indent=1) + "\n").encode()


def history_bytes(path: Path, benches: Collection[str]) -> bytes:
    """The extract that `path` is, or one made of the folder of runs that it is. Raises BadInputError."""
    if path.is_dir():
        return extract_of(path, benches)
    read_histories(path)
    return read_regular(path, limit_of(EXTRACT).most)


def reference_shifts(runs: Path) -> dict[str, str]:
    """By bench how far its golden reference was from its usual value in the newest campaign of the index as it is."""
    if not index_file(runs).is_file():
        return {}
    with open_history(runs) as history:
        newest = {point.bench: point for point in control_chart(history.readings())}
    shifts = {}
    for bench, point in newest.items():
        if point.low is not None and point.high is not None:
            shift = 2 * point.iops / (point.low + point.high) - 1
            beyond = ", outside of its limits" if point.suspect else ""
            shifts[bench] = f"golden reference {format_percent(shift, signed=True)}{beyond} ({point.run})"
    return shifts


def history_of(runs: Path) -> dict[str, Any]:
    """What the index says, brought up to date first. Raises BadInputError for a folder that is none."""
    with open_history(runs) as history:
        updated = history.update(runs)
        chart = control_chart(history.readings())
        noise = pooled(history.noise(NEWEST))
        indexed = history.runs()
    suspects = {point.run: point.suspect for point in chart if point.suspect}
    return {
        "index": asdict(updated),
        "runs": [{**run, "suspect": suspects.get(run["run"], "")} for run in indexed],
        "control_chart": [{**asdict(point), "suspect": point.suspect} for point in chart],
        "noise": [asdict(entry) for entry in noise],
    }
