# SPDX-License-Identifier: Apache-2.0
"""Counts and many points: launches in which something rare was seen, many small probabilities, overall shifts.

The shift of many points together is a finding beside their verdicts, never instead of them. A loss of 1 % everywhere
is seen by no single point, and the mean of all hides the one point that lost 20 %. So it is shown with its interval
and decides nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Literal

import numpy as np
from scipy import special

MOST_LAUNCHES = 1000
"""How far ahead is looked for the number of launches that would decide."""


@dataclass(frozen=True, slots=True)
class CountTest:
    """`p` is that of the candidate showing it no more often than the baseline.

    `most` is the share of launches by which the candidate exceeds the baseline at most, one-sided at the level of the
    pass; `further_launches` how many more launches of each arm would pass if they showed it no more; 0 when decided.
    """

    outcome: Literal["pass", "fail", "inconclusive"]
    p: float
    most: float
    further_launches: int


def compare_counts(
    seen: tuple[int, int], launches: tuple[int, int], *, margin: float, pass_level: float, fail_level: float
) -> CountTest:
    """Compare in how many of its launches each arm (baseline, candidate) showed it.

    Passes when the candidate never did, or when at most `margin` of all launches more than with the baseline did at
    `pass_level`; fails when the candidate is shown to do it more often at `fail_level`. Both are one-sided.
    """
    before, after = seen
    total = before + after
    share = launches[1] / (launches[0] + launches[1])
    # given the total, the candidate's part is binomial
    p = float(special.bdtrc(after - 1, total, share)) if after > 0 else 1.0
    most = most_excess(seen, launches, pass_level)
    if p <= fail_level:
        return CountTest("fail", p, most, 0)
    if after == 0 or most <= margin:
        return CountTest("pass", p, most, 0)
    further = range(1, MOST_LAUNCHES)
    enough = (n for n in further if most_excess(seen, (launches[0] + n, launches[1] + n), pass_level) <= margin)
    return CountTest("inconclusive", p, most, next(enough, MOST_LAUNCHES))


def most_excess(seen: tuple[int, int], launches: tuple[int, int], level: float) -> float:
    """The upper end of the difference of the two shares, candidate less baseline, one-sided at `level`.

    Newcombe's interval of a difference, made of Wilson's of each share.
    """
    (before_low, _), (_, after_high) = (_wilson(seen[arm], launches[arm], level) for arm in (0, 1))
    before, after = (seen[arm] / launches[arm] for arm in (0, 1))
    return after - before + math.hypot(after_high - after, before - before_low)


def _wilson(count: int, total: int, level: float) -> tuple[float, float]:
    z = float(special.ndtri(1.0 - level))
    middle = (count + z * z / 2) / (total + z * z)
    reach = z / (total + z * z) * math.sqrt(count * (total - count) / total + z * z / 4)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def most_share(count: int, total: int, level: float) -> float:
    """The largest share of which `count` of `total`, or fewer, still come with a probability of `level`."""
    return 1.0 - least_share(total - count, total, level)


def least_share(count: int, total: int, level: float) -> float:
    """The smallest share of which `count` of `total`, or more, still come with a probability of `level`.

    The lower end of Clopper and Pearson's interval. Raises ValueError for counts that cannot be.
    """
    _check(count, total)
    return 0.0 if count == 0 else float(special.betaincinv(count, total - count + 1, level))


def _check(count: int, total: int) -> None:
    if not 0 <= count <= total:
        raise ValueError(f"{count} of {total} cannot be")


def more_often(candidate: tuple[int, int], baseline: tuple[int, int]) -> Fraction:
    """How probable so many of the candidate, or more, are when both arms show it equally often: exact.

    Each arm is `(count, total)`. One-sided, because a candidate that fails less often is no regression.
    """
    (after, total), (before, among) = candidate, baseline
    _check(after, total)
    _check(before, among)
    seen = before + after
    cases = sum(comb(total, n) * comb(among, seen - n) for n in range(max(after, seen - among), min(seen, total) + 1))
    return Fraction(cases, comb(total + among, seen))


def most_events(count: int, level: float) -> float:
    """The largest number to be expected of which `count`, or fewer, still come with a probability of `level`.

    The exact upper end for events that come one by one: 3.0 for none at 5 %.
    """
    return float(special.gammaincinv(count + 1, 1.0 - level))


def holm(probabilities: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses to reject so that any false rejection at all has a probability of at most `alpha`."""
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = p[order] <= alpha / np.arange(len(p), 0, -1)
    # the first that is not below ends the list
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.cumprod(below).astype(bool)
    return [bool(reject) for reject in rejected]


def benjamini_hochberg(probabilities: Sequence[float], share: float) -> list[bool]:
    """Which hypotheses to reject so that at most `share` of the rejected are expected to be false."""
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = np.flatnonzero(p[order] <= share * np.arange(1, len(p) + 1) / max(len(p), 1))
    rejected = np.zeros(len(p), dtype=bool)
    if below.size:
        rejected[order[: below[-1] + 1]] = True
    return [bool(reject) for reject in rejected]


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
    usable = np.isfinite(y) & np.isfinite(se) & (se > 0)
    y, se = y[usable], se[usable]
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
