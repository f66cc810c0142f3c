# SPDX-License-Identifier: Apache-2.0
"""The metrics that a report shows: values of a sample by the product's own definitions, and names for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CURVES", "Measure", "measure", "measured"]


@dataclass(frozen=True)
class Measure:
    name: str
    label: str
    unit: str
    better: str
    value: Callable[[Mapping[str, Any]], float]


def _ios(p: Mapping[str, Any]) -> float:
    return float(p.get("read_ios", 0) + p.get("write_ios", 0))


def _bytes(p: Mapping[str, Any]) -> float:
    return float(p.get("read_bytes", 0) + p.get("write_bytes", 0))


def _cpu(p: Mapping[str, Any]) -> float:
    return (p["wall_ns"] * p["cpu_count"] - p["cpuidle_ns"]) / 1e3 / _ios(p)


_ALL = {
    m.name: m
    for m in (
        Measure("iops", "IOPS", "IOPS", "higher", lambda p: _ios(p) / (p["runtime_ns"] / 1e9)),
        Measure(
            "throughput_mb_s", "Throughput", "MB/s", "higher", lambda p: _bytes(p) / 1e6 / (p["runtime_ns"] / 1e9)
        ),
        Measure("cpu_us_per_io", "CPU time per I/O", "us", "lower", _cpu),
    )
}
CURVES = tuple(_ALL.values())


def measure(name: str, unit: str = "", better: str = "higher") -> Measure:
    return _ALL.get(name) or Measure(name, name, unit, better, lambda _: math.nan)


def measured(sample: Any) -> dict[str, float]:
    found = {}
    for name, one in _ALL.items():
        try:
            value = one.value(sample.primitives)
        except (KeyError, ZeroDivisionError):
            continue
        if math.isfinite(value):
            found[name] = value
    return found
