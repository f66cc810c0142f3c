# SPDX-License-Identifier: Apache-2.0
"""How evenly a launch ran: dips below its own level, and the longest stall, from the per-second series."""

from __future__ import annotations

import statistics

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value

DIP_SHARE = 0.10
"""A second is a dip when it lies this far below the launch's median, and three robust standard deviations."""
DIP_SPREADS = 3.0
STALL_SHARE = 0.10
"""A second is part of a stall when less than this share of the launch's median was done in it."""
FEWEST_SECONDS = 2
_MAD = 1.4826


def _seconds(measured: Measured) -> list[float]:
    seconds = [float(value) for value in measured.series.get("iops") or ()]
    if len(seconds) < FEWEST_SECONDS:
        raise UnavailableError(f"{len(seconds)} seconds of I/O were recorded, {FEWEST_SECONDS} are needed")
    return seconds


def dip_count(seconds: list[float]) -> int:
    """How many dips: successive seconds below the level count once."""
    level = statistics.median(seconds)
    spread = _MAD * statistics.median([abs(value - level) for value in seconds])
    below = level - max(DIP_SPREADS * spread, DIP_SHARE * level)
    dips = 0
    inside = False
    for value in seconds:
        dips += value < below and not inside
        inside = value < below
    return dips


def longest_stall(seconds: list[float]) -> int:
    """The longest run of seconds in which next to nothing was done."""
    limit = STALL_SHARE * statistics.median(seconds)
    longest = run = 0
    for value in seconds:
        run = run + 1 if value <= limit else 0
        longest = max(longest, run)
    return longest


def _dips(measured: Measured) -> Value:
    seconds = _seconds(measured)
    return Value(dip_count(seconds) / (len(seconds) / 60.0))


def _stall(measured: Measured) -> Value:
    seconds = _seconds(measured)
    if statistics.median(seconds) <= 0:
        raise UnavailableError("no I/O completed during most of the launch")
    return Value(float(longest_stall(seconds)))


STEADINESS: tuple[Metric, ...] = (
    Metric("dips_per_min", "Dips per minute", "1/min", "lower", ("iops",), "count", _dips),
    Metric("longest_stall_s", "Longest stall", "s", "lower", ("iops",), "count", _stall),
)
