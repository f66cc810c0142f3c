# SPDX-License-Identifier: Apache-2.0
"""Many points at once: what of many small probabilities still means something, and what all points say together.

The shift of many points together is a finding beside their verdicts, never instead of them. A loss of 1 % everywhere
is seen by no single point, and the mean of all hides the one point that lost 20 %. So it is shown with its interval
and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special


def holm(probabilities: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses to reject so that any false rejection at all has a probability of at most `alpha`."""
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = p[order] <= alpha / np.arange(len(p), 0, -1)
    # the first that is not below ends the list
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.cumprod(below).astype(bool)
    return [bool(one) for one in rejected]


def benjamini_hochberg(probabilities: Sequence[float], share: float) -> list[bool]:
    """Which hypotheses to reject so that at most `share` of the rejected are expected to be false."""
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = np.flatnonzero(p[order] <= share * np.arange(1, len(p) + 1) / max(len(p), 1))
    rejected = np.zeros(len(p), dtype=bool)
    if below.size:
        rejected[order[: below[-1] + 1]] = True
    return [bool(one) for one in rejected]


@dataclass(frozen=True, slots=True)
class Overall:
    """Mean log-ratio over points, negative = worse, with its 95 % interval, and how much points differ truly."""

    shift: float
    low: float
    high: float
    spread: float
    points: int


def overall_shift(shifts: Sequence[float], errors: Sequence[float]) -> Overall | None:
    """The random-effects mean (DerSimonian, Laird) with Hartung and Knapp's interval; None for fewer than 3 points.

    `errors` are the standard errors of `shifts`.
    """
    y, se = np.asarray(shifts, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    known = np.isfinite(y) & np.isfinite(se) & (se > 0)
    y, se = y[known], se[known]
    if len(y) < 3:
        return None
    w = 1.0 / se**2
    middle = float((w * y).sum() / w.sum())
    q = float((w * (y - middle) ** 2).sum())
    between = max(0.0, (q - (len(y) - 1)) / float(w.sum() - (w**2).sum() / w.sum()))
    w = 1.0 / (se**2 + between)
    mean = float((w * y).sum() / w.sum())
    # never narrower than the points' own errors allow
    factor = max(1.0, float((w * (y - mean) ** 2).sum()) / (len(y) - 1))
    reach = float(special.stdtrit(len(y) - 1, 0.975)) * float(np.sqrt(factor / w.sum()))
    return Overall(mean, mean - reach, mean + reach, float(np.sqrt(between)), len(y))
