# SPDX-License-Identifier: Apache-2.0
"""The rule for pairs that the gate had before, frozen as the reference of `make benchmark`: nothing here is current.

Each point stood alone, dips were bounded (Huber), and the first look that crossed a limit was the verdict: outcome,
shift and interval stayed those of that look. Levels are those of margin 3 %, indifference 1 % and alpha 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

__all__ = ["Before", "first_look"]

MARGIN, INDIFFERENCE = np.log1p(-0.03), np.log1p(-0.01)
PASS, FAIL, ASIDE = 0.0122, 0.0048347, 0.00509
"""Scales of the levels of looks: of a pass, of a fail, of one side of the interval."""
FLOOR = 2 * 0.0005**2


@dataclass(frozen=True)
class Before:
    """What the look after so many pairs said; axis trial. `low` is the interval's end, a log-ratio."""

    passed: np.ndarray
    failed: np.ndarray
    low: np.ndarray


def first_look(baseline: np.ndarray, candidate: np.ndarray) -> Before:
    """The look at these launches, axes (trial, launch, second), of points that no earlier look decided."""
    n = baseline.shape[1]
    plain = [np.log(arm.mean(axis=2)) for arm in (baseline, candidate)]
    levels = _bounded(baseline, candidate, plain)
    d, p = levels[1] - levels[0], levels[1] + levels[0]
    shift = d.mean(axis=1)
    variance, df = _variance(((d - shift[:, None]) ** 2).sum(axis=1), (np.diff(p, axis=1) ** 2).sum(axis=1) / 2, n)
    error = np.sqrt(np.maximum(variance, FLOOR) / n)
    late = (48 / n) ** 1.5 if n > 48 else 1.0
    to_pass, aside = (min(1.0, (n / 8) ** 1.5) * min(n, 48) ** -0.3 * late * scale for scale in (PASS, ASIDE))
    to_fail = FAIL * min(1.0, (n / 6) ** 1.5) * (min(n, 48) / 48) ** 0.3 * late
    reach = [-special.stdtrit(df, level) * error for level in (to_pass, to_fail, aside)]
    whole = (plain[1] - plain[0]).mean(axis=1)
    passed = (shift - reach[0] > MARGIN) & (whole > MARGIN)
    failed = ~passed & (shift + reach[1] < INDIFFERENCE) & (whole < INDIFFERENCE)
    return Before(passed, failed, shift - reach[2])


def _variance(squares: np.ndarray, steps: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The variance of a pair's log-ratio and its degrees of freedom, from ratios and from steps of their sums."""
    k = n - 1.0
    nv = 2 * k * k / (3 * k - 1)
    own, common = (np.maximum(one / k, FLOOR) for one in (squares, steps))
    low, high = special.fdtri(k, max(nv, 1.0), 0.01), special.fdtri(k, max(nv, 1.0), 0.99)
    agree = (own / common >= low) & (own / common <= high)
    return np.where(agree, (k * own + nv * common) / (k + nv), own), np.where(agree, k + nv, k)


def _bounded(baseline: np.ndarray, candidate: np.ndarray, plain: list[np.ndarray]) -> list[np.ndarray]:
    """Launch levels with dips bounded at 2.5 robust standard deviations; the plain ones where that may not be."""
    trials, count, seconds = baseline.shape
    if seconds == 1 or 2 * count * seconds < 20:
        return plain
    centres = [np.median(arm.reshape(trials, -1), axis=1)[:, None, None] for arm in (baseline, candidate)]
    relative = [arm / centre - 1.0 for arm, centre in zip((baseline, candidate), centres, strict=True)]
    spread = 1.482602218505602 * np.median(np.abs(np.concatenate(relative, axis=1).reshape(trials, -1)), axis=1)
    usable = (spread > 0) & (spread < 0.3)
    limit = 2.5 * np.where(usable, spread, 1.0)[:, None, None]
    levels, lost = [], []
    for r, centre in zip(relative, centres, strict=True):
        clipped = np.clip(r, -limit, limit)
        outside = (np.abs(r) > limit).sum(axis=(1, 2))
        usable &= outside <= seconds + 0.1 * count * seconds
        step = clipped.mean(axis=2) / (1.0 - np.minimum(outside / (count * seconds), 0.5))[:, None]
        levels.append(np.log(centre[:, :, 0] * np.maximum(1.0 + step, 1e-9)))
        lost.append(((r - clipped).sum(axis=2) / (limit[:, :, 0] / 2.5) < -1.0).sum(axis=1))
    chance = special.bdtrc(lost[1] - 1.0, lost[0] + lost[1], 0.5)
    usable &= ~((lost[1] > lost[0]) & (chance < 0.05))
    return [np.where(usable[:, None], r, p) for r, p in zip(levels, plain, strict=True)]
