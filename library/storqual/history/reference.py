# SPDX-License-Identifier: Apache-2.0
"""The golden reference: one drive of a bench, measured first and last in each session with one and the same load.

Nothing that is qualified changes it, so what moves it is the bench. Its launches are no points of the campaign: no
criterion is judged by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from storqual.metrics import METRICS, Value
from storqual.store import REFERENCE_POINT, Run, iter_samples

__all__ = ["Reading", "readings_of"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One launch on a reference drive: I/Os per second at a moment (ISO time)."""

    run: str
    bench: str
    drive: str
    moment: str
    iops: float


def readings_of(run: Run) -> Iterator[Reading]:
    """The reference launches of a run that ended well."""
    drives = {name: str(bench.get("reference") or "") for name, bench in run.benches.items()}
    for sample in iter_samples(run.path):
        if sample.point == REFERENCE_POINT and sample.status == "ok":
            value = METRICS["iops"].value(sample)
            if isinstance(value, Value):
                yield Reading(run.name, sample.bench, drives.get(sample.bench, ""), sample.start, value.value)
