# SPDX-License-Identifier: Apache-2.0
"""What a report is made from: verdict.json, run.json, the events, and what was measured by point and arm."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from storqual.base.files import NoJsonError
from storqual.inputs import load_suite
from storqual.inputs.suite import Suite
from storqual.metrics import METRICS
from storqual.run import Event, Launch, Run, read_run, sha256_of
from storqual.run.files import parse_line, read_bytes
from storqual.run.measurements import LookedAt, Measurements, PointData, PointKey, measurements
from storqual.run.turns import turns_of
from storqual.statistics.estimates import Estimate, Spread, mean_estimate, pooled_spread
from storqual.study.points import STUDIED
from storqual_core.kit.errors import BadInputError, StorqualError


@dataclass(frozen=True)
class Measure:
    """A metric as a page names it; `better` is higher or lower."""

    name: str
    label: str
    unit: str
    better: str


def measure(name: str, unit: str = "", better: str = "") -> Measure:
    """The metric called `name`; of one that this version does not know, what the verdict says about it."""
    metric = METRICS.get(name)
    if metric is None:
        return Measure(name, name, unit, better or "higher")
    return Measure(name, metric.label, metric.unit, metric.better)


CURVES = tuple(measure(name) for name in ("iops", "throughput_mb_s", "cpu_us_per_io"))
"""What is drawn over block size; names that the metrics do not hold are a bug, found by a test."""


LIMITING = ("cpu_percent", "latency_mean_us")
"""What tells what limits a point, beside what is drawn."""
VERDICT_SCHEMA = "storqual.verdict/1"
ARMS = ("baseline", "candidate")


@dataclass(frozen=True)
class Material:
    """Everything a report shows, read and gathered, nothing rounded."""

    run: Run
    verdict: Mapping[str, Any]
    verdict_sha256: str
    points: Mapping[PointKey, PointData]
    metrics: tuple[str, ...]
    """What is shown of each launch: what is drawn, and what the run was judged by."""
    suite: Suite | None
    """The suite that the run was planned with; None when it cannot be read any more."""
    data: Mapping[PointKey, Mapping[str, LookedAt]] = field(default_factory=dict)
    """What was read back after launches, by point and arm."""

    @property
    def events(self) -> tuple[Event, ...]:
        return self.run.events

    @property
    def document(self) -> Mapping[str, Any]:
        return self.run.document

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that the run has: both, or the candidate alone."""
        return tuple(arm for arm in ARMS if arm in self.run.arms) or ARMS

    @property
    def tested(self) -> tuple[tuple[str, str], ...]:
        # turns are planned in a random order
        in_turns = sorted({(turn.bench, turn.adapter) for turn in turns_of(self.run).planned})
        return tuple(dict.fromkeys([*(key[:2] for key in self.points), *in_turns]))

    def provisioned(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What each session ran on, once for every arm that it measured: a session may hold both."""
        arms = {(session.bench, session.id): session.arms for session in self.run.sessions}
        for entry in self.document.get("provisioned") or ():
            declared = (str(entry.get("arm")),)
            for arm in arms.get((str(entry.get("bench")), str(entry.get("session"))), declared):
                yield arm, entry


def clock(text: str) -> float:
    """Seconds since 1970 of an ISO time. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


def metrics_to_read(suite: Suite | None, judged: Iterable[str]) -> tuple[str, ...]:
    """The metrics that a report is made from: those that are drawn, that were judged, and that studies draw on."""
    studied = STUDIED if suite is not None and suite.studies else LIMITING if suite is not None else ()
    return tuple(dict.fromkeys([*(metric.name for metric in CURVES), *judged, *studied]))


def read_material(run_dir: Path, measured: Measurements | None = None) -> Material:
    """Read a judged run directory; its samples too, unless somebody did (`measured`, with histograms).

    Raises BadInputError when it was not judged, StorqualError when it is damaged.
    """
    run = read_run(run_dir)
    verdict, digest = _verdict(run_dir, run)
    judged = [str(row["metric"]) for row in verdict.get("criteria") or () if row.get("metric")]
    suite = _suite(run)
    if measured is None:
        measured = measurements(run, {}, metrics_to_read(suite, judged), histograms=True)
    points = {key: measured.points.get(key) or PointData(planned) for key, planned in run.points.items()}
    metrics = metrics_to_read(None, judged)
    return Material(run, verdict, digest, points, metrics, suite, measured.data)


def _suite(run: Run) -> Suite | None:
    try:
        return load_suite(run.input_file("suite"))
    except BadInputError:
        # judged by other rules than it was planned with; what was planned cannot be read any more
        return None


def _verdict(run_dir: Path, run: Run) -> tuple[Mapping[str, Any], str]:
    """verdict.json and its digest, checked for shape and for being of this run."""
    path = run_dir / "verdict.json"
    try:
        data = read_bytes(run_dir, path.name)
    except OSError:
        raise BadInputError([f"{path}: this run has no verdict; run `storqual judge {run_dir}` first"]) from None
    try:
        verdict = parse_line(data, path.name)
    except NoJsonError as problem:
        raise StorqualError(f"{path}: not JSON ({problem})") from None
    schema = verdict.get("schema") if isinstance(verdict, dict) else None
    if schema != VERDICT_SCHEMA:
        raise BadInputError([f"{path}: found schema {schema!r}, expected {VERDICT_SCHEMA!r}"])
    if verdict.get("run") != run.name:
        raise BadInputError([f"{path}: found the verdict of run {verdict.get('run')!r}, expected {run.name!r}"])
    return verdict, sha256_of(data)


def _units(launches: Sequence[Launch], metric: str) -> list[float]:
    """The values that vary independently: session means where there are sessions to compare, else launches."""
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for launch in launches:
        value = launch.number(metric)
        if value is not None:
            sessions[launch.session].append(value)
    if len(sessions) > 1:
        return [sum(values) / len(values) for values in sessions.values()]
    return [value for values in sessions.values() for value in values]


def spread_of(points: Iterable[PointData], arm: str, metric: str, *, counted: bool = False) -> Spread:
    """The relative spread of `metric` over points; `counted`: of launches that count as evidence, no suspect ones."""
    return pooled_spread(
        _units([launch for launch in point.good(arm) if not (counted and launch.doubts_about(metric))], metric)
        for point in points
    )


def but_rates(launch: Launch) -> list[str]:
    """Doubts about all but the rates of a launch, as sentences that say so."""
    return [f"suspect but for its rates, because it kept its pace: {doubt}" for doubt in launch.suspect_but_rates]


def mean_of(launches: Sequence[Launch], metric: str, spread: Spread) -> Estimate | None:
    """The mean of `metric` over launches with the interval that `spread` gives; None without a value."""
    values = [value for launch in launches if (value := launch.number(metric)) is not None]
    return mean_estimate(values, len(_units(launches, metric)), spread) if values else None
