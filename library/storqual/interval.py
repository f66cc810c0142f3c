# SPDX-License-Identifier: Apache-2.0
"""Exact interval arithmetic: what a printed figure can have been before it was rounded."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Interval"]

Plain = int | Fraction


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
        """The one number `value`."""
        return cls(Fraction(value), Fraction(value))

    @classmethod
    def around(cls, value: Plain, half_width: Plain) -> Interval:
        """`value` plus or minus `half_width`."""
        return cls(Fraction(value) - half_width, Fraction(value) + half_width)

    def meets(self, other: Interval) -> bool:
        """Whether one number lies in both."""
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
