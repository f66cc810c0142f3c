# SPDX-License-Identifier: Apache-2.0
"""What the judge keeps of each sample: the values of the metrics that are asked for, and nothing else.

A campaign has a hundred thousand samples with histograms in each; they are read one by one and let go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from storqual.metrics import METRICS, Metric, Unavailable, Value
from storqual.metrics import Launch as Primitives
from storqual.run import Sample, planned_session

Key = tuple[str, str, str]
"""Bench, adapter, point."""

_POOLED = ("read_ios", "read_bins", "write_ios", "write_bins")
_FEWEST_SECONDS = 3
"""Seconds from which a launch is judged by its seconds; in fewer, a dip cannot be told from the level."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: where it belongs, whether it ran as asked, and its values by metric.

    `seconds` is the rate per second where it was asked for. `pooled` are the primitives of a percentile that one
    launch is too short for: several launches together may answer.
    """

    id: str
    session: str
    block: str
    start: str
    status: str
    suspect: tuple[str, ...]
    values: Mapping[str, Value | Unavailable]
    seconds: tuple[float, ...]
    pooled: Primitives | None


@dataclass(slots=True)
class Place:
    """The launches of one point by arm, in the order they were measured; `fresh` are those that confirm a fail."""

    arms: dict[str, list[Launch]] = field(default_factory=lambda: defaultdict(list))
    fresh: dict[str, list[Launch]] = field(default_factory=lambda: defaultdict(list))

    def of(self, arm: str) -> Sequence[Launch]:
        """The launches of `arm`."""
        return self.arms.get(arm, ())

    def confirming(self) -> Place | None:
        """The fresh launches as a place of their own; None unless both arms have some."""
        if all(self.fresh.get(arm) for arm in ("baseline", "candidate")):
            return Place(self.fresh)
        return None


def extract(
    samples: Iterable[Sample],
    wanted: Mapping[Key, Sequence[str]],
    confirming: Collection[tuple[str, str]] = frozenset(),
) -> dict[Key, Place]:
    """Values by place; `wanted` says which metrics are judged at which point. Other points are passed by.

    `confirming` are the sessions (bench, session) that were measured to confirm a fail.
    """
    places: dict[Key, Place] = {}
    for sample in samples:
        key = (sample.bench, sample.adapter, sample.point)
        names = wanted.get(key)
        if names is None:
            continue
        place = places.setdefault(key, Place())
        fresh = (sample.bench, planned_session(sample.session)) in confirming
        arms = place.fresh if fresh else place.arms
        arms[sample.arm].append(_launch(sample, names))
    for place in places.values():
        for launches in (*place.arms.values(), *place.fresh.values()):
            launches.sort(key=lambda launch: launch.start)
    return places


def _launch(sample: Sample, names: Sequence[str]) -> Launch:
    values: dict[str, Value | Unavailable] = {}
    seconds: tuple[float, ...] = ()
    pooled: Primitives | None = None
    if sample.status == "ok":
        for name in names:
            metric = METRICS[name]
            found = values[name] = metric.value(sample)
            if metric.series and not seconds:
                seconds = _seconds(sample, metric)
            if isinstance(found, Unavailable) and pooled is None and _percentile(metric):
                kept = {part: sample.primitives[part] for part in _POOLED if part in sample.primitives}
                pooled = Primitives(kept, {})
    return Launch(
        id=sample.id,
        session=sample.session,
        block=sample.block,
        start=sample.start,
        status=sample.status,
        suspect=sample.suspect,
        values=values,
        seconds=seconds,
        pooled=pooled,
    )


def _seconds(sample: Sample, metric: Metric) -> tuple[float, ...]:
    seconds = tuple(float(value) for value in sample.series.get(metric.series) or ())
    return seconds if len(seconds) >= _FEWEST_SECONDS and sum(seconds) > 0 else ()


def _percentile(metric: Metric) -> bool:
    return metric.kind == "time" and any("_bins" in need for need in metric.needs)
