# SPDX-License-Identifier: Apache-2.0
"""Ratios with intervals from a few launches per level: logarithms, and one noise that all levels share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from storqual.statistics.noise import TELLS_NOTHING

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the ends of its 95 % interval: None without repeated launches, and where they are too unlike."""

    value: float
    low: float | None
    high: float | None

    def at_least(self, limit: float) -> bool | None:
        """Whether the true value is shown to be `limit` or more (True), less (False), or neither (None).

        Without an interval the value itself answers: it is all that is known.
        """
        if self.low is None or self.high is None:
            return self.value >= limit
        if self.low >= limit:
            return True
        return False if self.high < limit else None

    def exp(self) -> Estimate:
        """From a logarithm to the thing itself."""
        low, high = (None if end is None else math.exp(end) for end in (self.low, self.high))
        return Estimate(math.exp(self.value), low, high)


@dataclass(frozen=True)
class LogLevels:
    """Mean logarithm of each level, in ascending order of the levels, and the noise of one launch about it.

    `variance` is that of the logarithm of one launch, pooled over the levels, None where no level was repeated;
    `df` its degrees of freedom.
    """

    at: tuple[float, ...]
    mean: tuple[float, ...]
    count: tuple[int, ...]
    variance: float | None
    df: int

    def quantile(self, comparisons: int = 1) -> float:
        """Student's t for a 95 % interval; with `comparisons`, for so many that hold together (Bonferroni)."""
        return float(special.stdtrit(self.df, 1 - (1 - CONFIDENCE) / 2 / comparisons))

    def estimate(self, value: float, share: float, comparisons: int = 1) -> Estimate:
        """`value` with an interval; `share` is its variance in units of that of one launch."""
        if self.variance is None:
            return Estimate(value, None, None)
        half = self.quantile(comparisons) * math.sqrt(self.variance * share)
        return log_estimate(value, half)


def log_estimate(value: float, half: float) -> Estimate:
    """A logarithm with an interval of so much to either side; none where that says nothing."""
    return Estimate(value, value - half, value + half) if half <= TELLS_NOTHING else Estimate(value, None, None)


def log_levels(launches: Mapping[float, Sequence[float]]) -> LogLevels:
    """Means and pooled noise of `launches` (level -> one value per launch).

    Raises ValueError without levels, for a level without launches, and for values that are not finite and above zero:
    missing is never zero.
    """
    if not launches:
        raise ValueError("no level was measured")
    at, mean, count, squares, df = [], [], [], 0.0, 0
    for level in sorted(launches):
        values = np.asarray(launches[level], dtype=np.float64)
        if values.size == 0 or not np.all(np.isfinite(values)) or not np.all(values > 0):
            raise ValueError(f"level {level:g} has no launch, or one that is not a number above zero")
        logs = np.log(values)
        at.append(float(level))
        mean.append(float(logs.mean()))
        count.append(int(values.size))
        squares += float(((logs - logs.mean()) ** 2).sum())
        df += int(values.size) - 1
    return LogLevels(tuple(at), tuple(mean), tuple(count), squares / df if df else None, df)
