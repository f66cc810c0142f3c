# SPDX-License-Identifier: Apache-2.0
"""Numbers as they stand in a reason: digits that a reader needs, and the metric's unit."""

from __future__ import annotations

import math

from storqual.metrics import Metric

__all__ = ["amount", "percent", "plural"]

_FAR = 10_000.0
"""An interval of next to no data may reach to any power of ten, in percent."""


def amount(value: float, metric: Metric) -> str:
    """`1234 IOPS`, `0 per TB`: four significant digits, no exponent for what people read."""
    unit = f"per {metric.unit[2:]}" if metric.unit.startswith("1/") else metric.unit
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f} {unit}"


def percent(fraction: float, *, signed: bool = False) -> str:
    """`3 %`, `2.4 %`, `0.35 %`: enough digits to tell from nothing; `beyond -10000 %` where digits tell nothing."""
    value = 100.0 * fraction
    if not math.isfinite(value):
        return "any %"
    if abs(value) > _FAR:
        return f"beyond {'-' if value < 0 else '+' if signed else ''}{_FAR:.0f} %"
    digits = 1 if abs(value) >= 1 or value == 0 else 2
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{'0' if text in ('-0', '+0') else text} %"


def plural(number: int, word: str) -> str:
    """`1 pair`, `3 pairs`, `2 launches`."""
    several = "es" if word.endswith("ch") else "s"
    return f"{number} {word}{'' if number == 1 else several}"
