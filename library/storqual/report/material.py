# SPDX-License-Identifier: Apache-2.0
"""What a report is made from: verdict.json, run.json, the events, and the samples gathered by point and arm.

Samples are streamed: a launch keeps its metrics, its seconds and its evidence, the histograms are added up per arm.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from storqual.metrics.load import load_curve
from storqual.report.measures import CURVES, measured
from storqual.store import REFERENCE_POINT, Event, PlannedPoint, RawFile, Run, Sample, iter_samples, read_run
from storqual_core.errors import BadInputError, StorqualError
from storqual_core.load_search import LoadStep

__all__ = ["ARMS", "Launch", "Material", "PointData", "clock", "read_material"]

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
