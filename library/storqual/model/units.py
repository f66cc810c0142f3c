# SPDX-License-Identifier: Apache-2.0
"""Limits with units: `min: 100 MB/s` for a metric in MiB/s is converted, `min: 5 ms` for IOPS is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from storqual.model.metric_names import metric_facts

__all__ = ["convert", "fitting_units", "limit_value"]

_NUMBER = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*)?\Z")

_FAMILIES: tuple[Mapping[str, float], ...] = (
    {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
    {
        "B/s": 1.0,
        "kB/s": 1e3,
        "KB/s": 1e3,
        "MB/s": 1e6,
        "GB/s": 1e9,
        "KiB/s": 1024.0,
        "MiB/s": 1024.0**2,
        "GiB/s": 1024.0**3,
    },
    {"IOPS": 1.0, "1/s": 1.0, "I/O/s": 1.0, "kIOPS": 1e3},
    {"%": 1.0},
    {"ns/IO": 1.0, "us/IO": 1e3, "µs/IO": 1e3},
    {"ns/KiB": 1.0, "us/KiB": 1e3, "µs/KiB": 1e3},
)


def convert(value: float, unit: str, to: str) -> float:
    """`value` in another unit of the same kind. Raises ValueError when they are not of one kind."""
    for family in _FAMILIES:
        if unit in family and to in family:
            return value * family[unit] / family[to]
    if unit == to:
        return value
    raise ValueError(f"a limit in {' or '.join(fitting_units(to)) or 'plain numbers'}")


def fitting_units(unit: str) -> list[str]:
    """The units that a limit of a metric in `unit` may be written in."""
    for family in _FAMILIES:
        if unit in family:
            return list(family)
    return [unit] if unit else []


def limit_value(text: str, metric: str, unit: str | None = None) -> float:
    """A limit as a number in the metric's unit. Raises ValueError that says what was expected."""
    facts = metric_facts(metric)
    own = facts.unit if facts is not None else (unit or "")
    match = _NUMBER.match(text)
    number = float(match.group(1)) if match is not None else math.nan
    if match is None or not math.isfinite(number):
        raise ValueError(f"a number in {own}" if own else "a number")
    written = (match.group(2) or unit or own).strip()
    return convert(number, written, own)
