# SPDX-License-Identifier: Apache-2.0
"""What a criterion may name: the seam to the list of metrics, which is the judge's."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache

__all__ = ["MetricFacts", "metric_facts", "metric_names"]


@dataclass(frozen=True)
class MetricFacts:
    """What a plan must know of a metric: its unit, its better direction, and the primitives and series it needs."""

    name: str
    unit: str
    better: str
    needs: tuple[str, ...]


@cache
def _table() -> dict[str, MetricFacts]:
    # imported when a suite is read: the metrics bring numpy, and most commands read no suite
    metrics = importlib.import_module("storqual.metrics").METRICS
    return {
        name: MetricFacts(name, str(metric.unit), str(metric.better), tuple(metric.needs))
        for name, metric in metrics.items()
    }


def metric_facts(name: str) -> MetricFacts | None:
    """The metric called `name`, or None."""
    return _table().get(name)


def metric_names() -> list[str]:
    """Every metric, in the order of the list."""
    return list(_table())
