# SPDX-License-Identifier: Apache-2.0
"""How much more must be measured until a decision, if shift and noise are what they seem."""

from __future__ import annotations

import numpy as np
from scipy import special

from storqual.statistics.comparison import FAIL_SHARE, Limits, Unit
from storqual.statistics.levels import Rule, nominal_levels

POWER = 0.8
MOST_WANTED = 100_000
FEWEST_WANTED = 3
NEAREST = 0.25
"""Standard errors that a limit is held to be away at least: a shift right on a limit would never be decided."""


def further_units(n: int, shift: float, sd: float, df: float, limits: Limits, unit: Unit, *, growth: float) -> int:
    """How many more pairs (sessions per arm) until `shift` is decided at noise `sd`; at least 1.

    Each unit brings `growth` degrees of freedom.
    """
    if df <= 0:
        return FEWEST_WANTED
    per_unit = 1.0 if unit == "pair" else 2.0
    error = sd * np.sqrt(per_unit / n)
    far = np.ceil(n + 20.0 * np.geomspace(1.0, MOST_WANTED / 20, 60))
    ahead = np.concatenate((n + np.arange(1.0, 20.0), far))
    later_df = df + growth * (ahead - n)
    later_error = sd * np.sqrt(per_unit / ahead)
    rules: tuple[Rule, Rule] = ("pass", "fail") if unit == "pair" else ("session_pass", "session_fail")
    best = MOST_WANTED
    for rule, alpha, distance in (
        (rules[0], limits.alpha, shift - limits.margin),
        (rules[1], FAIL_SHARE * limits.alpha, limits.indifference - shift),
    ):
        reach = -special.stdtrit(later_df, nominal_levels(rule, alpha, ahead)) * later_error
        reached = np.flatnonzero(reach < max(distance, NEAREST * error))
        if reached.size:
            best = min(best, int(ahead[reached[0]]) - n)
    return max(best, 1)
