# SPDX-License-Identifier: Apache-2.0
"""Every metric, once: a function of stored primitives, so that a metric added today can judge last year's run."""

from collections.abc import Mapping

from storqual.metrics.latency import LATENCIES, LOAD
from storqual.metrics.metric import Measured, Metric, Primitives, Unavailable, Value, merged
from storqual.metrics.processor import PROCESSOR
from storqual.metrics.rates import RATES, STEADINESS, VOLUMES

__all__ = ["METRICS", "OF_RATES", "Measured", "Metric", "Primitives", "Unavailable", "Value", "merged"]

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *RATES,
        *LATENCIES,
        *LOAD,
        *PROCESSOR,
        *STEADINESS,
        *VOLUMES,
    )
}
"""All metrics by name."""

OF_RATES = frozenset(metric.name for metric in (*RATES, *STEADINESS))
"""Metrics of how many I/Os were done in which second, and of nothing else."""
