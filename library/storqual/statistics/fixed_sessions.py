# SPDX-License-Identifier: Apache-2.0
"""The test of many points that are measured in the same sessions, so that they share what they know of noise.

One look at the full level where the number of sessions was fixed before the campaign, else the last of all looks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.comparison import (
    POWER,
    Comparison,
    Limits,
    Looks,
    Outcome,
    further_units,
    loss_probability,
    nothing,
    spend,
)
from storqual.statistics.launches import SessionLevels, session_levels
from storqual.statistics.noise import LAUNCH_FLOOR, session_mean_noise
from storqual.statistics.sessions import DF_PER_SESSION, FEWEST_WITHIN, ONE_SESSION

Floats = NDArray[np.float64]


def analyse_fixed_sessions(
    baseline: Floats, candidate: Floats, limits: Sequence[Limits], *, looks: Looks = "last"
) -> list[Comparison]:
    """Test points of one bench and metric that were measured in the same sessions.

    Axes (point, session, launch, second), NaN where there is none.
    """
    better, sign = limits[0].better, limits[0].sign
    fewest = min(baseline.shape[1], candidate.shape[1])
    levels = session_levels(baseline, candidate, sign)
    before, after = (np.nanmean(arm, axis=2) for arm in levels.used)
    if fewest < 2:
        shifts = sign * (after.mean(axis=1) - before.mean(axis=1))
        return [nothing("session", ONE_SESSION, better, float(shift), fewest, wanted=1) for shift in shifts]
    alone, alone_df = _alone(levels.used)
    variance, df = _noise(before, after)
    # a session mean cannot be steadier than the launches it is made of
    variance = np.maximum(variance, np.where(alone_df >= FEWEST_WITHIN, alone, 0.0))
    return _decide(before, after, np.maximum(variance, LAUNCH_FLOOR**2), df, levels, limits, looks)


def _alone(levels: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """What the spread of launches inside sessions contributes to the variance of a session mean, and its df."""
    ss, df, inverse, sessions = 0.0, 0.0, 0.0, 0
    for arm in levels:
        number = np.sum(~np.isnan(arm), axis=2)
        ss = ss + np.nansum((arm - np.nanmean(arm, axis=2, keepdims=True)) ** 2, axis=(1, 2))
        df = df + (number - 1).sum(axis=1)
        inverse = inverse + (1.0 / number).sum(axis=1)
        sessions += arm.shape[1]
    freedom = np.asarray(df, dtype=np.float64)
    return np.asarray(ss) / np.maximum(freedom, 1.0) * np.asarray(inverse) / sessions, freedom


def _decide(
    before: Floats,
    after: Floats,
    variance: Floats,
    df: Floats,
    levels: SessionLevels,
    limits: Sequence[Limits],
    looks: Looks,
) -> list[Comparison]:
    """The last look at session means, axes (point, session), with what is known of their noise."""
    sign = limits[0].sign
    shift = sign * (after.mean(axis=1) - before.mean(axis=1))
    plain = sign * np.subtract(*(np.nanmean(np.nanmean(arm, axis=2), axis=1) for arm in levels.plain[::-1]))
    sd = np.sqrt(variance)
    error = sd * np.sqrt(1.0 / before.shape[1] + 1.0 / after.shape[1])
    margin, indifference, alpha = (
        np.array([getattr(limit, name) for limit in limits]) for name in ("margin", "indifference", "alpha")
    )
    units = min(before.shape[1], after.shape[1])
    at = np.array([float(units)])
    by_alpha = {level: spend("session", looks, level, at) for level in set(alpha.tolist())}
    spent = [by_alpha[level] for level in alpha.tolist()]
    to_pass, to_fail, aside = (
        -special.stdtrit(df, np.array([getattr(one, name)[0] for one in spent]))
        for name in ("to_pass", "to_fail", "aside")
    )
    bound = shift - to_pass * error
    passed = (bound > margin) & (plain > margin)
    failed = (shift + to_fail * error < indifference) & (plain < indifference)
    level = special.stdtr(df, (shift - indifference) / error)
    power = special.stdtrit(df, POWER)
    made = []
    for i, limit in enumerate(limits):
        outcome: Outcome = "pass" if passed[i] else "fail" if failed[i] else "inconclusive"
        wanted = 0
        if outcome == "inconclusive":
            wanted = further_units(
                units, float(shift[i]), float(sd[i]), float(df[i]), limit, "session", growth=DF_PER_SESSION
            )
        made.append(
            Comparison(
                outcome=outcome,
                better=limit.better,
                unit="session",
                log_shift=float(shift[i]),
                log_low=float(shift[i] - aside[i] * error[i]),
                log_high=float(shift[i] + aside[i] * error[i]),
                log_bound=float(bound[i]),
                lost=bool(failed[i]),
                log_detectable=float(limit.indifference - (to_fail[i] + power[i]) * error[i]),
                wanted=wanted,
                loss_p=loss_probability("session", looks, float(level[i]), float(units)),
                units=units,
                sd=float(sd[i]),
                df=float(df[i]),
                robust=bool(levels.robust[i]),
            )
        )
    return made


def _noise(before: Floats, after: Floats) -> tuple[Floats, Floats]:
    """Variance of a session mean and its degrees of freedom, of each point."""
    shared = session_mean_noise(before, after)
    if shared is not None:
        return np.array([one.variance for one in shared]), np.array([one.df for one in shared])
    freedom = before.shape[1] + after.shape[1] - 2
    ss = ((before - before.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    ss = ss + ((after - after.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return ss / freedom, np.full(len(ss), float(freedom))
