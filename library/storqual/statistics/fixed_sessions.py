# SPDX-License-Identifier: Apache-2.0
"""The test of many points whose number of sessions was fixed before the campaign: one look, at the full level.

The points are measured in the same sessions, so they share what they know of noise (`shared_noise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.analysis import Analysis, Limits, Outcome, nothing, spend
from storqual.statistics.noise import LAUNCH_FLOOR, Prior
from storqual.statistics.sessions import DF_PER_SESSION, FEWEST_WITHIN
from storqual.statistics.shared_noise import session_mean_noise
from storqual.statistics.wanted import POWER, further_units

__all__ = ["PointMeans", "analyse_fixed_sessions"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PointMeans:
    """One point: logarithms of session means by session id, per arm, and what launches inside sessions say of noise.

    `alone` is the part of a session mean's variance that comes from its launches, with its degrees of freedom.
    """

    baseline: dict[str, float]
    candidate: dict[str, float]
    alone: float
    alone_df: float


def analyse_fixed_sessions(
    points: Sequence[PointMeans], limits: Sequence[Limits], *, sign: float = 1.0
) -> list[Analysis]:
    """Test points of one bench and one metric; `sign` is +1 where higher is better."""
    layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for index, point in enumerate(points):
        layouts.setdefault((tuple(point.baseline), tuple(point.candidate)), []).append(index)
    found: dict[int, Analysis] = {}
    for (before, after), members in layouts.items():
        fewest = min(len(before), len(after))
        if fewest < 2:
            for index in members:
                found[index] = _one_session(points[index], sign, fewest)
            continue
        arms = [
            np.array([[points[i].baseline[session] for session in before] for i in members]),
            np.array([[points[i].candidate[session] for session in after] for i in members]),
        ]
        made = _decide(arms[0], arms[1], [points[i] for i in members], [limits[i] for i in members], sign)
        found.update(zip(members, made, strict=True))
    return [found[index] for index in range(len(points))]


def _one_session(point: PointMeans, sign: float, fewest: int) -> Analysis:
    if fewest == 0:
        return nothing("session", "an arm has no session")
    shift = sign * (float(np.mean(list(point.candidate.values()))) - float(np.mean(list(point.baseline.values()))))
    reason = "one session per arm: the effect of a boot cannot be told from the effect of the drop"
    return nothing("session", reason, shift=shift, units=fewest, wanted=1)


def _decide(
    before: Floats, after: Floats, points: Sequence[PointMeans], limits: Sequence[Limits], sign: float
) -> list[Analysis]:
    """One look at points of one layout; axes (point, session)."""
    variance, df = _noise(before, after, points)
    shift = sign * (after.mean(axis=1) - before.mean(axis=1))
    sd = np.sqrt(variance)
    error = sd * np.sqrt(1.0 / before.shape[1] + 1.0 / after.shape[1])
    margin, indifference, alpha = (
        np.array([getattr(limit, name) for limit in limits]) for name in ("margin", "indifference", "alpha")
    )
    spent = [spend("session", "last", level, np.ones(1)) for level in alpha.tolist()]
    to_pass, to_fail, aside = (
        -special.stdtrit(df, np.array([getattr(one, name)[0] for one in spent]))
        for name in ("to_pass", "to_fail", "aside")
    )
    bound = shift - to_pass * error
    passed = bound > margin
    failed = shift + to_fail * error < indifference
    level = special.stdtr(df, (shift - indifference) / error)
    power = special.stdtrit(df, POWER)
    units = min(before.shape[1], after.shape[1])
    made = []
    for i, limit in enumerate(limits):
        outcome: Outcome = "pass" if passed[i] else "fail" if failed[i] else "inconclusive"
        wanted = 0
        if outcome == "inconclusive":
            wanted = further_units(
                units, float(shift[i]), float(sd[i]), float(df[i]), limit, "session", growth=DF_PER_SESSION
            )
        made.append(
            Analysis(
                outcome=outcome,
                unit="session",
                shift=float(shift[i]),
                low=float(shift[i] - aside[i] * error[i]),
                high=float(shift[i] + aside[i] * error[i]),
                bound=float(bound[i]),
                detectable=float(limit.indifference - (to_fail[i] + power[i]) * error[i]),
                wanted=wanted,
                loss_p=spent[i].loss_p(level[i : i + 1], np.ones(1)),
                units=units,
                sd=float(sd[i]),
                df=float(df[i]),
                robust=False,
            )
        )
    return made


def _noise(before: Floats, after: Floats, points: Sequence[PointMeans]) -> tuple[Floats, Floats]:
    """Variance of a session mean and its degrees of freedom, of each point."""
    shared = session_mean_noise(before, after)
    if shared is None:
        freedom = before.shape[1] + after.shape[1] - 2
        ss = sum(((arm - arm.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for arm in (before, after))
        shared = [Prior(one, float(freedom)) for one in (np.asarray(ss) / freedom).tolist()]
    # a session mean cannot be steadier than the launches it is made of
    lowest = [max(point.alone if point.alone_df >= FEWEST_WITHIN else 0.0, LAUNCH_FLOOR**2) for point in points]
    variance = np.maximum(np.array([one.variance for one in shared]), lowest)
    return variance, np.array([one.df for one in shared])
