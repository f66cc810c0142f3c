# SPDX-License-Identifier: Apache-2.0
"""The test on interleaved pairs of launches: each pair's log-ratio is one observation.

After each complete pair there is a look. The candidate passes at the first look whose one-sided bound lies above the
margin, and fails at the first look whose one-sided bound lies below the indifference; levels per look come from
`levels`. A pass by bounded means also needs the plain means to lie inside the margin, a fail needs them outside the
indifference: what is bounded away must not turn a verdict. A campaign whose size was fixed before it began may ask
for the last look alone, which then is made at the full level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.analysis import Analysis, Limits, Looks, Outcome, Spent, spend
from storqual.statistics.launches import launch_levels
from storqual.statistics.noise import LAUNCH_FLOOR, Prior, pair_variance, with_prior
from storqual.statistics.wanted import POWER, further_units

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LARGEST_BLOCK = 4_000_000
DF_PER_PAIR = 5 / 3


@dataclass(frozen=True, slots=True)
class _Looks:
    """Estimates at every look; axes (point, look). `pairs` is how many pairs each look has."""

    pairs: Floats
    shift: Floats
    plain: Floats
    error: Floats
    sd: Floats
    df: Floats
    robust: Flags


def analyse_pairs(
    baseline: Floats,
    candidate: Floats,
    limits: Limits,
    *,
    sign: float = 1.0,
    prior: Prior | None = None,
    looks: Looks = "every",
) -> list[Analysis]:
    """Test points that have the same number of launches; axes (point, launch, second), NaN beyond a launch's end.

    `sign` is +1 where higher is better, -1 where lower is.
    """
    points, count, seconds = baseline.shape
    at = range(1, count + 1) if looks == "every" else range(count, count + 1)
    step = max(1, LARGEST_BLOCK // max(1, len(at) * count * seconds))
    spent = spend("pair", looks, limits.alpha, np.array(at, dtype=np.float64))
    found: list[Analysis] = []
    for start in range(0, points, step):
        part = slice(start, start + step)
        made = _estimates(baseline[part], candidate[part], tuple(at), sign, prior)
        found += _decide(made, limits, spent)
    return found


def _estimates(baseline: Floats, candidate: Floats, at: tuple[int, ...], sign: float, prior: Prior | None) -> _Looks:
    """Shift, standard error and degrees of freedom after `at` pairs."""
    before, after = launch_levels(baseline, candidate, at, sign)
    d = sign * (after.used - before.used)
    p = after.used + before.used
    n = np.array(at, dtype=np.float64)
    shift = np.nansum(d, axis=2) / n
    ss = np.nansum((d - shift[:, :, None]) ** 2, axis=2)
    steps = np.nansum(np.diff(p, axis=2) ** 2, axis=2) / 2
    variance, df = pair_variance(ss, steps, at)
    variance, df = with_prior(variance, df, prior)
    sd = np.sqrt(np.maximum(variance, 2 * LAUNCH_FLOOR**2))
    plain = sign * np.nansum(after.plain - before.plain, axis=2) / n
    return _Looks(n, shift, plain, sd / np.sqrt(n), sd, df, before.bounded)


def _decide(looks: _Looks, limits: Limits, spent: Spent) -> list[Analysis]:
    """The first look that crossed decides; without one the last look is reported."""
    to_pass, to_fail, aside = spent.quantiles(looks.df)
    bound = looks.shift - to_pass * looks.error
    passed = (bound > limits.margin) & (looks.plain > limits.margin)
    failed = (looks.shift + to_fail * looks.error < limits.indifference) & (looks.plain < limits.indifference)
    decided = passed | failed
    last = looks.shift.shape[1] - 1
    at = np.where(decided.any(axis=1), decided.argmax(axis=1), last)
    # the level at which each look would have failed
    t = (looks.shift - limits.indifference) / looks.error
    level = np.where(looks.df > 0, special.stdtr(np.maximum(looks.df, 1e-9), t), 1.0)
    found = []
    for i, look in enumerate(at.tolist()):
        outcome: Outcome = "pass" if passed[i, look] else "fail" if failed[i, look] else "inconclusive"
        shift, error, df = float(looks.shift[i, look]), float(looks.error[i, look]), float(looks.df[i, look])
        sd = float(looks.sd[i, look])
        units = int(looks.pairs[look])
        reach = float(aside[i, look]) * error
        power = special.stdtrit(df, POWER) if df > 0 else np.inf
        wanted = 0
        if outcome == "inconclusive":
            wanted = further_units(units, shift, sd, df, limits, "pair", growth=DF_PER_PAIR)
        found.append(
            Analysis(
                outcome=outcome,
                unit="pair",
                shift=shift,
                low=shift - reach,
                high=shift + reach,
                bound=float(bound[i, look]),
                detectable=float(limits.indifference - (to_fail[i, look] + power) * error),
                wanted=wanted,
                loss_p=spent.loss_p(level[i, : look + 1], looks.pairs[: look + 1]),
                units=units,
                sd=sd,
                df=df,
                robust=bool(looks.robust[i, look]),
            )
        )
    return found
