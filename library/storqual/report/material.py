# SPDX-License-Identifier: Apache-2.0
"""What a report is made from: verdict.json, run.json, the events, and the samples gathered by point and arm.

Samples are streamed: a launch keeps its metrics, its seconds and its evidence, the histograms are added up per arm.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storqual.metrics import METRICS, Measured, Value
from storqual.metrics.load import load_curve
from storqual.run import REFERENCE_POINT, Event, PlannedPoint, RawFile, Run, Sample, iter_samples, read_run
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.measure.load import LoadStep


@dataclass(frozen=True)
class Measure:
    """A metric as a page names it; `better` is higher or lower."""

    name: str
    label: str
    unit: str
    better: str


def measure(name: str, unit: str = "", better: str = "") -> Measure:
    """The metric called `name`; of one that this version does not know, what the verdict says about it."""
    known = METRICS.get(name)
    if known is None:
        return Measure(name, name, unit, better or "higher")
    return Measure(name, known.label, known.unit, known.better)


CURVES = tuple(measure(name) for name in ("iops", "throughput_mb_s", "cpu_us_per_io"))
"""What is drawn over block size; names that the metrics do not hold are a bug, found by a test."""


def measured(sample: Measured, names: Iterable[str]) -> dict[str, float]:
    """The values of a sample for those of `names` that it can answer."""
    found: dict[str, float] = {}
    for name in names:
        known = METRICS.get(name)
        value = known.value(sample) if known is not None else None
        if isinstance(value, Value):
            found[name] = value.value
    return found


VERDICT_SCHEMA = "storqual.verdict/1"
ARMS = ("baseline", "candidate")
_NS = 1e9


@dataclass(frozen=True, slots=True)
class Launch:
    """One finished launch: times in seconds since 1970, `values` by metric, `rate` the IOPS of each second."""

    ident: str
    arm: str
    session: str
    n: int
    start: float
    start_text: str
    runtime_s: float
    status: str
    suspect: tuple[str, ...]
    values: Mapping[str, float]
    rate: tuple[float, ...]
    raw: tuple[RawFile, ...]


@dataclass
class PointData:
    """All launches of one point on one adapter, and the latency bins of each arm: {(arm, side): {ns: count}}."""

    planned: PlannedPoint
    launches: dict[str, list[Launch]] = field(default_factory=lambda: defaultdict(list))
    bins: dict[tuple[str, str], Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    loads: dict[str, list[LoadStep]] = field(default_factory=lambda: defaultdict(list))
    """Steps of searches for a latency cap, by arm."""

    def good(self, arm: str) -> list[Launch]:
        """The launches of `arm` that may be shown as values: those that ran as asked."""
        return [launch for launch in self.launches.get(arm, ()) if launch.status == "ok"]


@dataclass(frozen=True)
class Material:
    """Everything a report shows, read and gathered, nothing rounded."""

    run: Run
    verdict: Mapping[str, Any]
    verdict_sha256: str
    events: tuple[Event, ...]
    points: Mapping[tuple[str, str, str], PointData]
    lost: int

    @property
    def document(self) -> Mapping[str, Any]:
        """run.json."""
        return self.run.document

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that the run has: both, or the candidate alone."""
        return tuple(arm for arm in ARMS if arm in self.run.arms) or ARMS

    def provisioned(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What each session ran on, once for every arm that it measured: a session may hold both."""
        arms = {(session.bench, session.id): session.arms for session in self.run.sessions}
        for entry in self.document.get("provisioned") or ():
            own = (str(entry.get("arm")),)
            for arm in arms.get((str(entry.get("bench")), str(entry.get("session"))), own):
                yield arm, entry


def clock(text: str) -> float:
    """Seconds since 1970 of an ISO time. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


def read_material(run_dir: Path) -> Material:
    """Read a judged run directory. Raises BadInputError when it was not judged, StorqualError when it is damaged."""
    run = read_run(run_dir)
    verdict, digest = _verdict(run_dir, run)
    points = {point.key: PointData(point) for point in run.plan.points}
    judged = (str(row.get("metric")) for row in verdict.get("criteria") or () if row.get("metric"))
    metrics = tuple(dict.fromkeys([*(metric.name for metric in CURVES), *judged]))
    lost = 0
    for sample in iter_samples(run_dir):
        if sample.point == REFERENCE_POINT:
            continue
        data = points.get((sample.bench, sample.adapter, sample.point))
        if data is None:
            lost += 1
            continue
        _add(data, sample, metrics)
    return Material(run=run, verdict=verdict, verdict_sha256=digest, events=run.events, points=points, lost=lost)


def _verdict(run_dir: Path, run: Run) -> tuple[Mapping[str, Any], str]:
    """verdict.json and its digest, checked for shape and for being of this run."""
    path = run_dir / "verdict.json"
    try:
        data = path.read_bytes()
    except OSError:
        raise BadInputError([f"{path}: found no verdict; run `storqual judge {run_dir}` first"]) from None
    try:
        verdict = json.loads(data)
    except ValueError as problem:
        raise StorqualError(f"{path}: found no JSON ({problem})") from None
    schema = verdict.get("schema") if isinstance(verdict, dict) else None
    if schema != VERDICT_SCHEMA:
        raise BadInputError([f"{path}: found schema {schema!r}, expected {VERDICT_SCHEMA!r}"])
    if verdict.get("run") != run.name:
        raise BadInputError([f"{path}: found the verdict of run {verdict.get('run')!r}, expected {run.name!r}"])
    return verdict, hashlib.sha256(data).hexdigest()


def _add(data: PointData, sample: Sample, metrics: Sequence[str]) -> None:
    """Put one sample where it belongs, with the values of `metrics`."""
    try:
        start = clock(sample.start)
    except ValueError:
        raise StorqualError(f"sample {sample.id}: found start {sample.start!r}, expected an ISO time") from None
    data.launches[sample.arm].append(
        Launch(
            ident=sample.id,
            arm=sample.arm,
            session=sample.session,
            n=sample.n,
            start=start,
            start_text=sample.start,
            runtime_s=sample.runtime_s,
            status=sample.status,
            suspect=sample.suspect,
            values=measured(sample, metrics),
            rate=tuple(sample.series.get("iops") or ()),
            raw=sample.raw,
        )
    )
    if sample.status != "ok":
        return
    # a search whose launches do not fit together has no curve; the judge says so where one was asked for
    with suppress(KeyError, TypeError, ValueError):
        data.loads[sample.arm] += load_curve(sample)
    for side in ("read", "write"):
        bins = sample.primitives.get(f"{side}_bins")
        if bins:
            counter = data.bins[(sample.arm, side)]
            for nanoseconds, number in bins.items():
                counter[int(nanoseconds)] += number


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_CONFIDENCE = 0.975


@dataclass(frozen=True)
class Mean:
    """A mean with the ends of its 95 % interval (None without a second unit), and how many launches it is of."""

    value: float
    low: float | None
    high: float | None
    launches: int


@dataclass(frozen=True)
class Spread:
    """The relative standard deviation between units of one arm, pooled over points, and its degrees of freedom."""

    relative: float
    freedom: int


def _units(launches: Sequence[Launch], metric: str) -> list[float]:
    """The values that vary independently: session means where there are sessions to compare, else launches."""
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for launch in launches:
        if metric in launch.values:
            sessions[launch.session].append(launch.values[metric])
    if len(sessions) > 1:
        return [sum(values) / len(values) for values in sessions.values()]
    return [value for values in sessions.values() for value in values]


def spread_of(points: Iterable[PointData], arm: str, metric: str) -> Spread:
    """Pool the relative spread of `metric` over points: one point alone has too few units to know its own."""
    total, freedom = 0.0, 0
    for point in points:
        units = _units(point.good(arm), metric)
        mean = sum(units) / len(units) if units else 0.0
        if len(units) < 2 or mean == 0:
            continue
        total += sum((value / mean - 1) ** 2 for value in units)
        freedom += len(units) - 1
    return Spread(math.sqrt(total / freedom) if freedom else 0.0, freedom)


def mean_of(launches: Sequence[Launch], metric: str, spread: Spread) -> Mean | None:
    """The mean of `metric` over launches with the interval that `spread` gives; None without a value."""
    values = [launch.values[metric] for launch in launches if metric in launch.values]
    if not values:
        return None
    mean = sum(values) / len(values)
    units = len(_units(launches, metric))
    if spread.freedom < 1:
        return Mean(mean, None, None, len(values))
    half = _student(spread.freedom) * spread.relative / math.sqrt(units) * abs(mean)
    return Mean(mean, mean - half, mean + half, len(values))


@cache
def _student(freedom: int) -> float:
    """The quantile of Student's t that bounds a 95 % interval."""
    from scipy.special import stdtrit  # noqa: PLC0415 - a tenth of a second that a page without intervals saves

    return float(stdtrit(freedom, _CONFIDENCE))


def quantile(bins: Mapping[int, int], fraction: float) -> int | None:
    """The smallest bin value that at least `fraction` of all counts do not exceed; None for an empty histogram."""
    total = sum(bins.values())
    if total <= 0:
        return None
    wanted, seen = fraction * total, 0
    for value in sorted(bins):
        seen += bins[value]
        # counts are whole and `fraction` is not: 0.9 * 10 is a little more than nine
        if seen >= wanted - 1e-9 * total:
            return value
    return max(bins)
