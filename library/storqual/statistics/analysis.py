# SPDX-License-Identifier: Apache-2.0
"""What a test of two arms says: the decision, the estimate, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.levels import LARGEST_LEVEL, Rule, alpha_of, nominal_levels
from storqual.statistics.odd import Odd

Outcome = Literal["pass", "fail", "inconclusive"]
Unit = Literal["pair", "session"]
Looks = Literal["every", "last"]
Floats = NDArray[np.float64]

CI_SIDE = 0.025
FAIL_SHARE = 0.8
"""The share of alpha that the fail rule spends: a fail is measured again, so a false one costs twice its launches."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Logarithms of what the gate tests: `margin` and `indifference` are <= 0, losses are negative."""

    margin: float
    indifference: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """One point's test at its last look. Log-ratios, negative = worse; `low` and `high` hold over all looks (95 %).

    `bound` is the one-sided lower bound at the pass level, the one that a pass rests on. `lost` says that a loss of
    more than the indifference is shown, also where the outcome is a pass. `loss_p` is the smallest alpha at which
    these data would have failed: what corrections for many points work on. `units` is how many pairs (or sessions
    per arm) the estimate uses, `sd` the standard deviation of one unit (a pair's log-ratio, a session's mean), `df`
    its degrees of freedom. `missing` says in words what keeps the test from deciding, `odd` which launch was left out
    with its partner.
    """

    outcome: Outcome
    unit: Unit
    shift: float
    low: float
    high: float
    bound: float
    detectable: float
    wanted: int
    loss_p: float
    units: int
    sd: float
    df: float
    robust: bool
    lost: bool = False
    missing: str = ""
    odd: Odd | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """One-sided levels of each look: of the pass rule, the fail rule, and one side of the interval."""

    to_pass: Floats
    to_fail: Floats
    aside: Floats

    def quantiles(self, df: Floats) -> tuple[Floats, Floats, Floats]:
        """How many standard errors each bound lies from the estimate; infinite where nothing is known."""
        return _quantile(self.to_pass, df), _quantile(self.to_fail, df), _quantile(self.aside, df)


def spend(unit: Unit, looks: Looks, alpha: float, at: Floats, share: float = 1.0) -> Spent:
    """The levels of looks made after `at` pairs or sessions; a single look at the end gets all of it.

    `share` is the part of all errors that these looks may spend.
    """
    wanted = (alpha * share, FAIL_SHARE * alpha * share, CI_SIDE * share)
    if looks == "last":
        levels = [np.full(at.shape, min(level, LARGEST_LEVEL)) for level in wanted]
        return Spent(*levels)
    passing: Rule = "pass" if unit == "pair" else "session_pass"
    failing: Rule = "fail" if unit == "pair" else "session_fail"
    rules = (passing, failing, passing)
    return Spent(*(nominal_levels(rule, level, at) for rule, level in zip(rules, wanted, strict=True)))


def loss_probability(unit: Unit, looks: Looks, level: float, at: float) -> float:
    """The smallest alpha at which the fail rule is crossed by a look after `at` units that reaches `level`."""
    if looks == "last":
        return min(1.0, level / FAIL_SHARE)
    failing: Rule = "fail" if unit == "pair" else "session_fail"
    return min(1.0, alpha_of(failing, level, at) / FAIL_SHARE)


def _quantile(level: Floats, df: Floats) -> Floats:
    level = np.broadcast_to(level, df.shape)
    known = (df > 0) & (level > 0)
    # stdtrit is the quantile of Student's t
    quantile = -special.stdtrit(np.where(known, df, 1.0), np.where(known, level, 0.25))
    found: Floats = np.where(known, quantile, np.inf)
    return found


def nothing(unit: Unit, reason: str, shift: float = np.nan, units: int = 0, wanted: int = 3) -> Analysis:
    """A test that cannot decide because there is no measure of noise; `shift` is the estimate if there is one."""
    return Analysis(
        outcome="inconclusive",
        unit=unit,
        shift=shift,
        low=-np.inf,
        high=np.inf,
        bound=-np.inf,
        detectable=-np.inf,
        wanted=wanted,
        loss_p=1.0,
        units=units,
        sd=np.nan,
        df=0.0,
        robust=False,
        missing=reason,
    )
