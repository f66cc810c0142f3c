# SPDX-License-Identifier: Apache-2.0
"""Launches of two arms in which something rare was seen: dips, stalls, errors. None has no logarithm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

MOST_LAUNCHES = 1000
"""How far ahead is looked for the number of launches that would decide."""


@dataclass(frozen=True, slots=True)
class CountTest:
    """`p` is that of the candidate showing it no more often than the baseline.

    `most` is the share of launches by which the candidate exceeds the baseline at most, one-sided at the level of the
    pass; `wanted` how many more launches of each arm would pass if they showed it no more; 0 when decided.
    """

    outcome: Literal["pass", "fail", "inconclusive"]
    p: float
    most: float
    wanted: int


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

    The lower end of Clopper and Pearson's interval.
    """
    return 0.0 if count == 0 else float(special.betaincinv(count, total - count + 1, level))


def most_events(count: int, level: float) -> float:
    """The largest number to be expected of which `count`, or fewer, still come with a probability of `level`.

    The exact upper end for events that come one by one: 3.0 for none at 5 %.
    """
    return float(special.gammaincinv(count + 1, 1.0 - level))
