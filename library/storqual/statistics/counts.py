# SPDX-License-Identifier: Apache-2.0
"""Counts of rare events in two arms: dips, errors. Their ratio has no logarithm when one of them is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special


@dataclass(frozen=True, slots=True)
class CountTest:
    """`ratio` of the candidate's rate to the baseline's with an exact 95 % interval; `p` of it not being higher."""

    outcome: Literal["pass", "fail", "inconclusive"]
    ratio: float
    low: float
    high: float
    p: float


def compare_counts(
    baseline: float, candidate: float, exposure: tuple[float, float], *, margin: float, alpha: float
) -> CountTest:
    """Compare counts seen over `exposure` (baseline, candidate), by the conditional binomial test.

    Fails when the candidate's rate is shown to be higher, passes when it is shown to be at most `margin` (a fraction)
    higher, or when the candidate had none at all.
    """
    before, after = round(baseline), round(candidate)
    total = before + after
    share = exposure[1] / (exposure[0] + exposure[1])
    if total == 0:
        return CountTest("pass", np.nan, 0.0, np.inf, 1.0)
    # given the total, the candidate's part is binomial; Clopper and Pearson's interval of that part
    p = float(special.bdtrc(after - 1, total, share)) if after > 0 else 1.0
    low, high = least_share(after, total, 0.025), 1.0 - least_share(before, total, 0.025)
    upper = 1.0 - least_share(before, total, alpha)
    odds = exposure[0] / exposure[1]
    outcome: Literal["pass", "fail", "inconclusive"] = "inconclusive"
    if p <= alpha:
        outcome = "fail"
    elif after == 0 or _ratio(upper) * odds <= 1.0 + margin:
        outcome = "pass"
    ratio = np.inf if before == 0 else after / before * odds
    return CountTest(outcome, float(ratio), _ratio(low) * odds, _ratio(high) * odds, p)


def least_share(count: int, total: int, level: float) -> float:
    """The smallest share of which `count` of `total`, or more, still come with a probability of `level`.

    The lower end of Clopper and Pearson's interval; the upper end is 1 less that of the others.
    """
    return 0.0 if count == 0 else float(special.betaincinv(count, total - count + 1, level))


def _ratio(part: float) -> float:
    return np.inf if part >= 1.0 else part / (1.0 - part)
