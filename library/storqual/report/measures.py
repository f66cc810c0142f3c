# SPDX-License-Identifier: Apache-2.0
"""The metrics that a report shows: their values by the product's own definitions, their names for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from storqual.metrics import METRICS, Measured, Value

__all__ = ["CURVES", "Measure", "measure", "measured"]


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
