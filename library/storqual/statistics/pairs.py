# SPDX-License-Identifier: Apache-2.0
"""The sequential test on interleaved pairs of launches: each pair's log-ratio is one observation.

After each complete pair there is a look. The candidate passes at the first look whose one-sided bound lies above the
margin, and fails at the first look whose one-sided bound lies below the indifference; levels per look come from
`levels`. A pass by bounded means also needs the plain means to lie inside the margin, a fail needs them outside the
indifference: what is bounded away must not turn a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.analysis import Analysis, Limits, Outcome
from storqual.statistics.launches import launch_levels
from storqual.statistics.levels import Rule, nominal_levels
from storqual.statistics.noise import LAUNCH_FLOOR, Prior, pair_variance, with_prior

__all__ = ["CI_SIDE", "FAIL_SHARE", "POWER", "analyse_pairs", "further_units"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

POWER = 0.8
CI_SIDE = 0.025
FAIL_SHARE = 0.8
"""The share of alpha that the fail rule spends: a fail is measured again, so a false one costs twice its launches."""

MOST_WANTED = 100_000
FEWEST_WANTED = 3
LARGEST_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class _Looks:
    """Estimates at every look; axes (point, look)."""

    shift: Floats
    plain: Floats
    error: Floats
    sd: Floats
    df: Floats
    robust: Flags


def analyse_pairs(
    baseline: Floats, candidate: Floats, limits: Limits, *, sign: float = 1.0, prior: Prior | None = None
) -> list[Analysis]:
    """Test points that have the same number of launches; axes (point, launch, second), NaN beyond a launch's end.

    `sign` is +1 where higher is better, -1 where lower is.
    """
    points, count, seconds = baseline.shape
    step = max(1, LARGEST_BLOCK // max(1, count * count * seconds))
    found: list[Analysis] = []
    for start in range(0, points, step):
        part = slice(start, start + step)
        looks = _estimates(baseline[part], candidate[part], sign, prior)
        found += _decide(looks, limits)
    return found


def _estimates(baseline: Floats, candidate: Floats, sign: float, prior: Prior | None) -> _Looks:
    """Shift, standard error and degrees of freedom after 1, 2, ... pairs."""
    before, after = launch_levels(baseline, candidate, sign)
    d = sign * (after.used - before.used)
    p = after.used + before.used
    looks = d.shape[1]
    n = np.arange(1, looks + 1, dtype=np.float64)
    shift = np.nansum(d, axis=2) / n
    ss = np.nansum((d - shift[:, :, None]) ** 2, axis=2)
    steps = np.nansum(np.diff(p, axis=2) ** 2, axis=2) / 2
    variance, df = pair_variance(ss, steps)
    variance, df = with_prior(variance, df, prior)
    sd = np.sqrt(np.maximum(variance, 2 * LAUNCH_FLOOR**2))
    plain = sign * np.nansum(after.plain - before.plain, axis=2) / n
    return _Looks(shift, plain, sd / np.sqrt(n), sd, df, before.bounded)


def _quantiles(rule: Rule, alpha: float, df: Floats) -> Floats:
    """How many standard errors the bound of each look lies from the estimate; infinite where nothing is known."""
    n = np.arange(1, df.shape[1] + 1, dtype=np.float64)
    level = np.broadcast_to(nominal_levels(rule, alpha, n), df.shape)
    known = (df > 0) & (level > 0)
    # stdtrit gives the quantile of Student's t
    with np.errstate(invalid="ignore"):
        quantile = -special.stdtrit(np.where(known, df, 1.0), np.where(known, level, 0.25))
    return np.where(known, quantile, np.inf)


def _decide(looks: _Looks, limits: Limits) -> list[Analysis]:
    """The first look that crossed decides; without one the last look is reported."""
    to_pass = _quantiles("pass", limits.alpha, looks.df)
    to_fail = _quantiles("fail", FAIL_SHARE * limits.alpha, looks.df)
    aside = _quantiles("pass", CI_SIDE, looks.df)
    bound = looks.shift - to_pass * looks.error
    passed = (bound > limits.margin) & (looks.plain > limits.margin)
    failed = (looks.shift + to_fail * looks.error < limits.indifference) & (looks.plain < limits.indifference)
    count = looks.shift.shape[1]
    decided = passed | failed
    at = np.where(decided.any(axis=1), decided.argmax(axis=1), count - 1)
    found = []
    for i, look in enumerate(at.tolist()):
        outcome: Outcome = "pass" if passed[i, look] else "fail" if failed[i, look] else "inconclusive"
        shift, error, df = float(looks.shift[i, look]), float(looks.error[i, look]), float(looks.df[i, look])
        reach = float(aside[i, look]) * error
        power = special.stdtrit(df, POWER) if df > 0 else np.inf
        found.append(
            Analysis(
                outcome=outcome,
                unit="pair",
                shift=shift,
                low=shift - reach,
                high=shift + reach,
                bound=float(bound[i, look]),
                detectable=float(limits.indifference - (to_fail[i, look] + power) * error),
                wanted=0 if outcome != "inconclusive" else _wanted(looks, i, look, limits),
                units=look + 1,
                sd=float(looks.sd[i, look]),
                df=df,
                robust=bool(looks.robust[i, look]),
            )
        )
    return found


def _wanted(looks: _Looks, i: int, look: int, limits: Limits) -> int:
    """Further pairs until a bound is crossed, if the shift is what it seems and the noise stays."""
    n = look + 1
    sd, df = float(looks.sd[i, look]), float(looks.df[i, look])
    return further_units(n, float(looks.shift[i, look]), sd, df, limits, ("pass", "fail"), growth=5 / 3)


def further_units(
    n: int,
    shift: float,
    sd: float,
    df: float,
    limits: Limits,
    rules: tuple[Rule, Rule],
    *,
    growth: float,
) -> int:
    """How many more units until `shift` is decided with noise `sd`; `growth` degrees of freedom come with each."""
    if df <= 0:
        return FEWEST_WANTED
    # a shift halfway between the limits is never decided: plan for one that is a standard error off
    error = sd / np.sqrt(n)
    to_pass = max(shift - limits.margin, 0.0)
    to_fail = max(limits.indifference - shift, 0.0)
    far = np.ceil(n + 20.0 * np.geomspace(1.0, MOST_WANTED / 20, 60))
    ahead = np.concatenate((n + np.arange(1.0, 20.0), far))
    later_df = df + growth * (ahead - n)
    later_error = sd / np.sqrt(ahead)
    best = MOST_WANTED
    for rule, alpha, distance in (
        (rules[0], limits.alpha, to_pass),
        (rules[1], FAIL_SHARE * limits.alpha, to_fail),
    ):
        reach = -special.stdtrit(later_df, nominal_levels(rule, alpha, ahead)) * later_error
        reached = np.flatnonzero(reach < max(distance, 0.25 * error))
        if reached.size:
            best = min(best, int(ahead[reached[0]]) - n)
    return max(best, 1)
