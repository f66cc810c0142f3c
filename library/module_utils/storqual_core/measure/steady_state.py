# SPDX-License-Identifier: Apache-2.0
"""Whether a drive has settled: SNIA's rule on rounds, a test of equivalence on drift, the cut of a transient.

The series are I/Os (or bytes) per second of the tracking load. Volume comes first (a fill, then writes by volume): no
rule on a window sees a cliff that lies beyond the window. fio's own `steadystate` is not used: it stops at the first
crossing, and from 3.35 on its samples are skewed by an inverted rate correction (fio commit 90e678ba).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

SNIA_WINDOW = 5
SNIA_RANGE = 0.20
SNIA_EXCURSION = 0.10
"""SNIA SSS-PTS: the last five rounds; range at most 20 %, excursion of the fitted line at most 10 %."""
FEWEST_SECONDS = 300
"""The drift is tested on at least so much: in a shorter window the end of a slow decay looks level."""
DRIFT_LIMIT = 0.05
_NORMAL_95 = 1.6448536269514722


@dataclass(frozen=True)
class Snia:
    """SNIA's two numbers over the last window of rounds, as fractions of its mean, and whether both are in limits."""

    range: float
    excursion: float
    steady: bool


@dataclass(frozen=True)
class Drift:
    """The change of the fitted line across a window, as a fraction of its mean, with its 90 % interval."""

    change: float
    low: float
    high: float
    seconds: int

    @property
    def level(self) -> bool:
        """Whether a drift of more than `DRIFT_LIMIT` either way is excluded (two one-sided tests, Schuirmann)."""
        return self.low >= -DRIFT_LIMIT and self.high <= DRIFT_LIMIT


def snia_of(rounds: Sequence[float]) -> Snia | None:
    """SNIA's numbers over the last five `rounds` (one mean each); None for fewer, or a mean that is not above zero.

    The excursion is the least-squares slope times the four intervals between five rounds.
    """
    window = [float(value) for value in rounds[-SNIA_WINDOW:]]
    mean = sum(window) / max(len(window), 1)
    if len(window) < SNIA_WINDOW or not mean > 0:
        return None
    slope = _line(window)[1]
    spread = (max(window) - min(window)) / mean
    excursion = abs(slope) * (SNIA_WINDOW - 1) / mean
    return Snia(spread, excursion, spread <= SNIA_RANGE and excursion <= SNIA_EXCURSION)


def drift_of(seconds: Sequence[float]) -> Drift | None:
    """The drift of a series of seconds; None for fewer than ten, or a mean that is not above zero.

    Neighbouring seconds are alike, so the residuals' lag-1 correlation widens the interval by what an AR(1) series of
    so many seconds is worth.
    """
    count = len(seconds)
    mean = sum(seconds) / max(count, 1)
    if count < 10 or not mean > 0:
        return None
    level, slope = _line(seconds)
    residuals = [value - level - slope * place for place, value in enumerate(seconds)]
    squares = sum(value * value for value in residuals)
    along = sum((place - (count - 1) / 2) ** 2 for place in range(count))
    error = math.sqrt(squares / (count - 2) / along)
    if squares > 0:
        correlation = sum(a * b for a, b in zip(residuals, residuals[1:])) / squares
        correlation = min(max(correlation, 0.0), 0.99)
        error *= math.sqrt((1 + correlation) / (1 - correlation))
    width = (count - 1) / mean
    return Drift(slope * width, (slope - _NORMAL_95 * error) * width, (slope + _NORMAL_95 * error) * width, count)


def is_settled(seconds: Sequence[float]) -> Drift | None:
    """The drift of the last half of all data, of at least `FEWEST_SECONDS`; None before there is as much."""
    window = max(len(seconds) // 2, FEWEST_SECONDS)
    return drift_of(seconds[-window:]) if len(seconds) >= window else None


def settled_from(seconds: Sequence[float], group: int = 5) -> int:
    """How many seconds a launch's start-up transient lasts: MSER-5 (White and Robinson 2010).

    The cut minimises the standard error of what is left, over means of `group` seconds, and takes at most half: a
    series that wants more than that cut has not settled, and nothing is cut.
    """
    means: list[float] = [sum(seconds[at : at + group]) / group for at in range(0, len(seconds) - group + 1, group)]
    best, cut = math.inf, 0
    for start in range(len(means) // 2 + 1):
        rest = means[start:]
        if len(rest) < 2:
            break
        mean = sum(rest) / len(rest)
        error = sum((value - mean) ** 2 for value in rest) / len(rest) ** 2
        if error < best * (1 - 1e-12):
            best, cut = error, start
    return cut * group if cut < max(len(means) // 2, 1) else 0


def _line(values: Sequence[float]) -> tuple[float, float]:
    """Level at the first place and slope per place of the least-squares line."""
    count = len(values)
    middle, mean = (count - 1) / 2, sum(values) / count
    along = sum((place - middle) ** 2 for place in range(count))
    slope = sum((place - middle) * (value - mean) for place, value in enumerate(values)) / along
    return mean - slope * middle, slope
