# SPDX-License-Identifier: Apache-2.0
"""From values to places on a picture, and ticks at numbers that people like: 1, 2 and 5 times a power of ten."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Linear", "Log", "decade_ticks", "nice_ceiling", "nice_step", "nice_ticks", "power_ticks"]

_NICE = (1.0, 2.0, 5.0, 10.0)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Linear:
    """Values from `low` to `high` at places from `start` to `end`; outside values lie outside."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of `value`; the middle when the scale has no length."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Log:
    """Positive values from `low` to `high` at places from `start` to `end`, equal ratios at equal distances."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of `value`. Raises ValueError for zero and less."""
        return Linear(math.log(self.low), math.log(self.high), self.start, self.end)(math.log(value))


def nice_step(span: float, count: int) -> float:
    """The step of 1, 2 or 5 times a power of ten that cuts `span` into at most `count` parts. Raises ValueError."""
    if not span > 0 or count < 1 or not math.isfinite(span):
        raise ValueError(f"no steps over a span of {span} in {count} parts")
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    return next((nice * power for nice in _NICE if nice * power >= raw * (1 - _ROUNDING)), 10.0 * power)


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Multiples of a nice step within [low, high], at most `count` + 1; one tick when the two are equal."""
    if high == low:
        return (low,)
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    # the product is rounded again, or 3 x 0.1 would be labelled 0.30000000000000004
    digits = max(0, 1 - math.floor(math.log10(step)))
    return tuple(round(number * step, digits) + 0.0 for number in range(first, last + 1))


def nice_ceiling(value: float, count: int = 4) -> float:
    """The smallest multiple of a nice step that is not below `value`: the top of an axis that starts at zero."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    step = nice_step(value, count)
    return math.ceil(value / step - _ROUNDING) * step


def decade_ticks(low: float, high: float, count: int = 6) -> tuple[float, ...]:
    """Ticks for a logarithmic axis: 1, 2, 5 of each decade where there is room, else decades, or every nth."""
    bottom, top = math.floor(math.log10(low) + _ROUNDING), math.ceil(math.log10(high) - _ROUNDING)
    for marks in ((1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [mark * 10.0**power for power in range(bottom, top + 1) for mark in marks]
        inside = tuple(tick for tick in ticks if low * (1 - _ROUNDING) <= tick <= high * (1 + _ROUNDING))
        if len(inside) <= count:
            return inside
    stride = math.ceil(len(inside) / count)
    return inside[::stride]


def power_ticks(low: float, high: float, count: int = 7) -> tuple[float, ...]:
    """Powers of two within [low, high], every nth where all would be too many: block sizes and queue depths."""
    first, last = math.ceil(math.log2(low) - _ROUNDING), math.floor(math.log2(high) + _ROUNDING)
    powers = tuple(2.0**power for power in range(first, last + 1))
    return powers[:: max(1, math.ceil(len(powers) / count))] or (low,)
