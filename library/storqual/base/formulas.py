# SPDX-License-Identifier: Apache-2.0
"""The field's formulas, once: the judge uses them on live runs, the audit on published figures.

Each works on floats, exact fractions and intervals alike and uses each argument once, so that an interval is as
narrow as the printed digits allow. Each raises ZeroDivisionError where a divisor is (or may be) zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

Plain = int | Fraction

Better = Literal["higher", "lower"]
"""Which way a metric gets better."""


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`, ends included. Ends are fractions, so nothing is lost by computing."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"an interval from {self.low} down to {self.high}")

    @classmethod
    def exactly(cls, value: Plain) -> Interval:
        return cls(Fraction(value), Fraction(value))

    @classmethod
    def around(cls, value: Plain, half_width: Plain) -> Interval:
        """`value` plus or minus `half_width`."""
        return cls(Fraction(value) - half_width, Fraction(value) + half_width)

    def meets(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high

    def __contains__(self, value: Plain) -> bool:
        return self.low <= value <= self.high

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval | Plain) -> Interval:
        right = _interval(other)
        return Interval(self.low + right.low, self.high + right.high)

    def __sub__(self, other: Interval | Plain) -> Interval:
        return self + -_interval(other)

    def __mul__(self, other: Interval | Plain) -> Interval:
        right = _interval(other)
        corners = [a * b for a in (self.low, self.high) for b in (right.low, right.high)]
        return Interval(min(corners), max(corners))

    def __truediv__(self, other: Interval | Plain) -> Interval:
        right = _interval(other)
        if 0 in right:
            raise ZeroDivisionError("division by a figure that may be zero")
        return self * Interval(1 / right.high, 1 / right.low)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Plain) -> Interval:
        return _interval(other) - self

    def __rtruediv__(self, other: Plain) -> Interval:
        return _interval(other) / self


def _interval(value: Interval | Plain) -> Interval:
    return value if isinstance(value, Interval) else Interval.exactly(value)


N = TypeVar("N", float, Fraction, Interval)

KIB = 1024
"""Bytes in a KiB, and in the KB of both HP papers."""
MIB = 1024 * 1024
"""Bytes in a MiB, and in the MB of the HP A7173A paper (p. 2, note 2)."""
MB = 1_000_000
"""Bytes in a decimal MB, and in the MB of the HP A6826A paper."""


def service_demand_us_per_kb(cpu_percent: N, throughput_mb: N, mb: int = MB, kb: int = KIB) -> N:
    """CPU microseconds per KB, from utilisation in percent and throughput in MB/s.

    Source: HP A6826A paper, p. 3, note 3: (% CPU utilisation / 100) / throughput in KB/s. As printed that is seconds;
    the paper's table is in microseconds, with MB = 10^6 and KB = 1024 bytes (the one reading that fits all of it).
    """
    return cpu_percent * 10_000 * kb / (throughput_mb * mb)


def service_demand_percent_thousandths(cpu_percent: N, throughput_mb: N, mb: int = MIB, kb: int = KIB) -> N:
    """CPU percent per thousand KB/s, from utilisation in percent and throughput in MB/s.

    Source: HP A7173A paper, p. 4, note 3: (% CPU utilisation / throughput in KB/s) x 1,000, MB = 2^20, KB = 1024.
    """
    return cpu_percent * 1000 * kb / (throughput_mb * mb)


def percent_of(part: N, whole: N) -> N:
    """`part` in percent of `whole`: "% of theoretical maximum" of both HP papers."""
    return part / whole * 100


def increase_percent(new: N, old: N) -> N:
    return new / old * 100 - 100


def efficiency(total: N, single: N, units: int) -> N:
    """What `units` give together, as a fraction of `units` times what one gives alone; 1 is linear scaling.

    Source: HP A6826A paper, p. 5-6: "linear scaling" over ports and cards.
    """
    return total / (single * units)


def throughput(iops: N, block: N) -> N:
    """Bytes per second. Source: QLA1040 report, p. 10: "multiplying the IOPS by the block size"."""
    return iops * block


def outstanding(iops: N, response_s: N) -> N:
    """Mean number of I/Os in flight: Little's law (J. D. C. Little, Operations Research 9, 1961)."""
    return iops * response_s


def stripes_per_second(channel: N, stripe: N) -> N:
    """Stripes that a channel of `channel` bytes per second carries. Source: Dell PERC 3/QC, "Disk scaling"."""
    return channel / stripe


def drives_without_queueing(service_s: Fraction | float, stripes_per_s: Fraction | float) -> int:
    """Drives over which one channel can go round before the first is free again.

    Source: Dell PERC 3/QC article, "Disk scaling": 4.5 ms x 2.5 stripes/ms = 11.25, so twelve drives.
    """
    return math.ceil(service_s * stripes_per_s)


def read_ahead_threshold(stripe: int, drives: int) -> int:
    """The smallest random read, in bytes, for which a RAID 0 member drive's own read-ahead can help.

    Source: Dell PERC 3/QC article, "Disk caching": I/O size >= stripe size x (number of disks + 1).
    """
    return stripe * (drives + 1)
