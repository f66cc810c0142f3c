# SPDX-License-Identifier: Apache-2.0
"""Exact statements about how often something fails: bounds on one rate, and whether one rate is above another.

Counts are small and nothing may be approximated: a bound is the inversion of the binomial law (Clopper and Pearson,
Biometrika 26, 1934), the comparison conditions on the number of failures in both arms (Fisher). Looking again after
each trial would make chance findings of nothing, so looks are planned and share the error between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Literal

from storqual.statistics.counts import least_share, most_share

CONFIDENCE = 0.95
ALPHA = 0.05


def upper_bound(failures: int, trials: int) -> float:
    """The largest rate of failure that `failures` of `trials` do not contradict; 1 without any trial.

    Raises ValueError for counts that cannot be.
    """
    _check(failures, trials)
    return most_share(failures, trials, 1.0 - CONFIDENCE)


def lower_bound(failures: int, trials: int) -> float:
    """The smallest rate of failure that the counts do not contradict."""
    _check(failures, trials)
    return least_share(failures, trials, 1.0 - CONFIDENCE)


def _check(failures: int, trials: int) -> None:
    if not 0 <= failures <= trials:
        raise ValueError(f"{failures} failures of {trials} trials cannot be")


def told(failures: int, trials: int) -> str:
    """`0 of 60 failed: less than 5 % at 95 %`; the bound is rounded up, so the sentence is never too good."""
    percent = upper_bound(failures, trials) * 100
    step = 0.1 if percent < 10 else 1.0
    shown = min(100.0, -(-percent // step) * step)
    return f"{failures} of {trials} failed: less than {shown:.{1 if step < 1 else 0}f} % at 95 %"


def more_often(candidate: tuple[int, int], baseline: tuple[int, int]) -> Fraction:
    """How probable so many failures of the candidate, or more, are when both arms fail equally often: exact.

    Each arm is `(failures, trials)`. One-sided, because a candidate that fails less often is no regression.
    """
    (failed, trials), (others, among) = candidate, baseline
    _check(failed, trials)
    _check(others, among)
    both = failed + others
    worst = min(both, trials)
    least = max(failed, both - among)
    cases = sum(comb(trials, count) * comb(among, both - count) for count in range(least, worst + 1))
    return Fraction(cases, comb(trials + among, both))


Answer = Literal["none", "regression", "known", "undecided"]


@dataclass(frozen=True)
class Comparison:
    """What the trials of both arms say.

    `none` failed in the candidate; `regression`; `known`: the baseline fails as well; `undecided`: the candidate
    alone failed, too seldom to tell. `p` is of the look that decided, or of the last.
    """

    answer: Answer
    p: float
    looks: int


def compare(pairs: Sequence[tuple[bool, bool]], *, looks: int = 4, alpha: float = ALPHA) -> Comparison:
    """Candidate against baseline over trials in the order they were made: `(candidate failed, baseline failed)`.

    The comparison looks at `looks` moments, evenly spaced, and each may spend `alpha / looks`: whoever stops at the
    first finding is wrong at most `alpha` of the time (Bonferroni; exact tests are conservative anyway).
    """
    if not any(candidate for candidate, _ in pairs):
        return Comparison("none", 1.0, 0)
    p = 1.0
    moments = sorted({max(1, round(len(pairs) * look / looks)) for look in range(1, looks + 1)})
    for number, moment in enumerate(moments, start=1):
        seen = pairs[:moment]
        failed, others = (sum(pair[arm] for pair in seen) for arm in (0, 1))
        p = float(more_often((failed, moment), (others, moment)))
        if p <= alpha / looks:
            return Comparison("regression", p, number)
    known = any(baseline for _, baseline in pairs)
    return Comparison("known" if known else "undecided", p, len(moments))
