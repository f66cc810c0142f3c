# SPDX-License-Identifier: Apache-2.0
"""What a sequential test says after its data: the decision, the estimate, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Analysis", "Limits", "Outcome", "Unit"]

Outcome = Literal["pass", "fail", "inconclusive"]
Unit = Literal["pair", "session", "launch"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Logarithms of what the gate tests: `margin` and `indifference` are <= 0, losses are negative."""

    margin: float
    indifference: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """One point's test. Log-ratios, negative = worse; `low` and `high` hold over all looks together (95 %).

    `bound` is the one-sided lower bound at the pass level, the one that a pass rests on. `looks` is the number of
    looks made, `units` how many pairs (or sessions per arm) the estimate uses, `sd` the standard deviation of one
    unit's log-ratio, `df` its degrees of freedom. `missing` says in words what keeps the test from deciding.
    """

    outcome: Outcome
    unit: Unit
    shift: float
    low: float
    high: float
    bound: float
    detectable: float
    wanted: int
    units: int
    sd: float
    df: float
    robust: bool
    missing: str = ""
