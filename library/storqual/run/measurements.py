# SPDX-License-Identifier: Apache-2.0
"""What a run measured, by point and arm: one pass over its samples, for judge, report, studies, checks and history.

A campaign has a hundred thousand samples with histograms in each. A launch keeps its metrics, its seconds and its
evidence; histograms are added up by point and arm, and let go.
"""

from __future__ import annotations

import gc
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from storqual.metrics import METRICS, Measured, Metric, Primitives, Unavailable, merged
from storqual.metrics.latency import load_curve
from storqual.run.layout import SAMPLES
from storqual.run.recompute import SampleCheck
from storqual.run.records import REFERENCE_POINT, Launch, PlannedPoint, Sample, SessionPool, read_samples
from storqual.run.run import Run
from storqual.run.turns import turns_of
from storqual_core.turns.launch import LoadStep

PointKey = tuple[str, str, str]
"""Bench, adapter, point."""

PATH_COUNTS, _POOLED = ("path_ios", "path_bytes"), ("read_ios", "read_bins", "write_ios", "write_bins")


@dataclass
class PointData:
    """The launches of one point by arm, in the order they were started, and what is added up of each arm."""

    planned: PlannedPoint
    launches: dict[str, list[Launch]] = field(default_factory=lambda: defaultdict(list))
    bins: dict[tuple[str, str], Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Latencies by arm and side (read, write): {ns: count}; empty where nobody asked for them."""
    paths: dict[str, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))
    """Of each path to a multipath device by arm: {(its ends, `path_ios` or `path_bytes`): count}, `("", "ns")`."""
    loads: dict[str, list[LoadStep]] = field(default_factory=lambda: defaultdict(list))
    """Steps of searches for a latency cap, by arm."""
    _pools: dict[str, tuple[str, SessionPool]] = field(default_factory=dict)
    """The session under way of each arm."""

    def good(self, arm: str) -> list[Launch]:
        return [launch for launch in self.launches.get(arm, ()) if launch.status == "ok"]

    def values(self, arm: str, metric: str) -> list[float]:
        return [value for launch in self.good(arm) if (value := launch.number(metric)) is not None]

    def every(self) -> Iterator[Launch]:
        for launches in self.launches.values():
            yield from launches

    def add(self, sample: Sample, judged: Sequence[str], shown: Sequence[str], *, histograms: bool) -> None:
        values = {name: METRICS[name].value(sample) for name in (*judged, *shown) if name in METRICS}
        short = any(isinstance(values[name], Unavailable) and _percentile(METRICS[name]) for name in judged)
        # what is suspect is no evidence, in a pool neither
        doubtful = sample.suspect or sample.suspect_but_rates
        pool = self._pool(sample) if short and sample.status == "ok" and not doubtful else None
        self.launches[sample.arm].append(Launch.of(sample, values, pool))
        if sample.status != "ok" or not histograms:
            return
        # a search whose launches do not fit together has no curve; the judge says so where one was asked for
        with suppress(KeyError, TypeError, ValueError):
            self.loads[sample.arm] += load_curve(sample)
        for side in ("read", "write"):
            # bins that are none make percentiles unavailable, with a reason; there is nothing to draw then
            with suppress(ValueError, TypeError, AttributeError):
                bins = {int(ns): int(number) for ns, number in (sample.primitives.get(f"{side}_bins") or {}).items()}
                if bins:
                    self.bins[sample.arm, side].update(bins)
        with suppress(KeyError, ValueError, TypeError, AttributeError):
            every = [(name, *pair) for name in PATH_COUNTS for pair in sample.primitives[name].items()]
            of_paths = {(ends, name): int(number) for name, ends, number in every}
            self.paths[sample.arm].update({**of_paths, ("", "ns"): int(sample.primitives["wall_ns"])})

    def _pool(self, sample: Sample) -> SessionPool:
        """The pool of a launch that is too short for a percentile, with its bins in it."""
        session, pool = self._pools.get(sample.arm, ("", SessionPool()))
        if session != sample.session:
            if pool.launches == 1:
                # one launch says no more than itself: its bins need not be kept
                pool.primitives = {}
            pool = SessionPool()
            self._pools[sample.arm] = (sample.session, pool)
        launch = Primitives({name: sample.primitives[name] for name in _POOLED if name in sample.primitives}, {})
        parts: list[Measured] = [launch] if pool.launches == 0 else [pool, launch]
        pool.primitives = merged(parts).primitives
        pool.launches += 1
        return pool


@dataclass
class LookedAt:
    """What was read back after the launches of one point and arm: sectors, and the first wrong one.

    `reasons` counts the launches of which nothing was.
    """

    launches: int = 0
    sectors: int = 0
    wrong: int = 0
    wrong_launches: int = 0
    first: Mapping[str, Any] | None = None
    reasons: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, sample: Sample) -> None:
        data = sample.data
        if "sectors" not in data:
            self.reasons[str(data.get("reason") or "nothing is recorded of it")] += 1
            return
        self.launches += 1
        self.sectors += int(data["sectors"])
        if data["wrong"]:
            self.wrong += int(data["wrong"])
            self.wrong_launches += 1
            self.first = self.first or {**data["first"], "of": data["of"], "launch": sample.id}


def _percentile(metric: Metric) -> bool:
    return metric.kind == "time" and any("_bins" in need for need in metric.needs)


@dataclass
class Measurements:
    """The points of a run with their data, and what its samples say of the run as a whole.

    `finished` are the arms that have a sample at each point that is not lost, `reference` the launches on golden
    reference drives, `overhead_s` the seconds that the bench program adds to each launch of fio.
    """

    points: dict[PointKey, PointData]
    finished: dict[PointKey, set[str]] = field(default_factory=lambda: defaultdict(set))
    reference: list[Launch] = field(default_factory=list)
    overhead_s: array[float] = field(default_factory=lambda: array("d"))
    data: dict[PointKey, dict[str, LookedAt]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(LookedAt))
    )
    """What was read back, by point and arm."""
    size: int = 0
    """Bytes of samples.jsonl that were there to be read: with more in it, this is no longer what the run measured."""

    recorded: int = 0
    """How many turns had a record then."""

    evidence: SampleCheck | None = None
    """What speaks against the samples; None where nobody asked."""

    def is_of(self, run: Run) -> bool:
        """Whether the samples and records of `run` are still those that were read."""
        return (self.size, self.recorded) == (_size(run), len(run.recorded))


def _size(run: Run) -> int:
    file = run.path / SAMPLES
    return file.stat().st_size if file.is_file() else 0


def measurements(
    run: Run,
    judged: Mapping[PointKey, Sequence[str]],
    shown: Sequence[str] = (),
    *,
    histograms: bool = False,
    evidence: bool = False,
) -> Measurements:
    """All samples of a run, with the metrics that are `judged` at some of its points and those `shown` at all.

    Without `shown` points are left out at which nothing is judged. With `evidence` each sample is held to its batch
    and its raw files while it is read, and so is each record. Raises StorqualError for a damaged file.
    """
    check = SampleCheck(run.path, run.name) if evidence else None
    samples = read_samples(run.path, look=None if check is None else check.look)
    with _without_collector():
        gathered = _gathered(run, judged, samples, shown, histograms=histograms)
    if check is not None:
        check.finish()
        for finding in turns_of(run).findings():
            check.tell(finding)
    gathered.evidence = check
    return gathered


@contextmanager
def _without_collector() -> Iterator[None]:
    """Samples have no cycles, and what is kept of them stays: looking through it again and again finds nothing."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def measurements_at(run: Run, judged: Mapping[PointKey, Sequence[str]]) -> Measurements:
    """The samples of these points alone: the lines of others, on whatever bench, are not parsed."""
    return _gathered(run, judged, read_samples(run.path, lambda launch: launch.key in judged))


def reference_launches(run: Run) -> list[Launch]:
    """The launches on golden reference drives, with their IOPS; no other line is parsed."""
    return _gathered(run, {}, read_samples(run.path, lambda launch: launch.point == REFERENCE_POINT)).reference


def _gathered(
    run: Run,
    judged: Mapping[PointKey, Sequence[str]],
    samples: Iterable[Sample],
    shown: Sequence[str] = (),
    *,
    histograms: bool = False,
) -> Measurements:
    gathered = Measurements({}, size=_size(run), recorded=len(run.recorded))
    for sample in samples:
        key = (sample.bench, sample.adapter, sample.point)
        if sample.status != "lost":
            gathered.finished[key].add(sample.arm)
        if "overhead_ns" in sample.primitives:
            gathered.overhead_s.append(float(sample.primitives["overhead_ns"]) / 1e9)
        gathered.data[key][sample.arm].add(sample)
        if sample.point == REFERENCE_POINT:
            gathered.reference.append(Launch.of(sample, {"iops": METRICS["iops"].value(sample)}))
        elif key in run.points and (shown or key in judged):
            data = gathered.points.setdefault(key, PointData(run.points[key]))
            data.add(sample, judged.get(key, ()), shown, histograms=histograms)
    for point in gathered.points.values():
        for launches in point.launches.values():
            launches.sort(key=lambda launch: launch.start)
    return gathered
