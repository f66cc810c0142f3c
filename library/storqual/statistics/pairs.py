# SPDX-License-Identifier: Apache-2.0
"""The test on interleaved pairs of launches: each pair's log-ratio is one observation.

A campaign may look after each complete pair and stop when it likes: the error is spent over all looks (`levels`), so
what the last look says of all launches is valid wherever that was. The candidate passes when the one-sided bound lies
above the margin, and fails when the other one lies below the indifference. A pass by bounded means also needs the
plain means to lie inside the margin, a fail needs them outside the indifference: what is bounded away must not turn a
verdict. A campaign whose size was fixed before it began may ask for the last look alone, made at the full level.

Points that are judged together lend each other their noise (noise.py), and history lends its own, so that three or
four quiet pairs have an interval as wide as their bench makes it, not as few pairs alone would.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.comparison import (
    ArmComparison,
    Limits,
    Looks,
    last_look,
    loss_probability,
    nothing,
    spend,
)
from storqual.statistics.launches import Odd, launch_levels, odd_pair, odd_pairs
from storqual.statistics.noise import NOTHING_KNOWN, PAIR_FLOOR, Prior, common_spread, pair_variance, with_priors

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LARGEST_BLOCK = 4_000_000
DF_PER_PAIR = 5 / 3


@dataclass(frozen=True, slots=True)
class PairLevels:
    """Logarithms of launch levels at points with equally many pairs, axes (point, pair); `sign` +1: higher is better.

    `plain` is the shift by plain means, `robust` whether seconds were bounded; axis point.
    """

    before: Floats
    after: Floats
    plain: Floats
    robust: Flags
    sign: float

    @property
    def ratios(self) -> Floats:
        return self.sign * (self.after - self.before)


@dataclass(frozen=True, slots=True)
class Estimates:
    """What is known of each point; axis point. `pairs` counts those that the shift rests on."""

    pairs: Floats
    shift: Floats
    plain: Floats
    sd: Floats
    df: Floats
    robust: Flags
    odd: tuple[Odd | None, ...]

    @property
    def error(self) -> Floats:
        return self.sd / np.sqrt(self.pairs)


def pair_levels(baseline: Floats, candidate: Floats, sign: float = 1.0) -> PairLevels:
    """Levels of points that have the same number of launches; axes (point, launch, second), NaN beyond their ends."""
    points, count, seconds = baseline.shape
    step = max(1, LARGEST_BLOCK // max(1, count * seconds))
    parts = [
        launch_levels(baseline[start : start + step], candidate[start : start + step], sign)
        for start in range(0, points, step)
    ]
    before, after, plain_before, plain_after, robust = (
        np.concatenate(arrays)
        for arrays in zip(*((b.used, a.used, b.plain, a.plain, b.bounded) for b, a in parts), strict=True)
    )
    return PairLevels(before, after, sign * (plain_after - plain_before).mean(axis=1), robust, sign)


def estimate(levels: Sequence[PairLevels], priors: Sequence[Prior | None]) -> Estimates:
    """The points of one campaign and metric, which lend each other their noise; one prior for each point.

    An odd launch is left out with its partner.
    """
    counts = np.concatenate([np.full(len(group.plain), group.before.shape[1]) for group in levels])
    parts_by_group = [_shift_and_noise(group.ratios, group.before + group.after) for group in levels]
    shift, variance, df = (np.concatenate(parts) for parts in zip(*parts_by_group, strict=True))
    history = [prior or NOTHING_KNOWN for prior in priors]
    before, before_df = (np.array([getattr(prior, name) for prior in history]) for name in ("variance", "df"))
    plain, robust = (np.concatenate([getattr(group, name) for group in levels]) for name in ("plain", "robust"))
    common = common_spread(*with_priors(variance, df, before, before_df), PAIR_FLOOR) or NOTHING_KNOWN
    lent, lent_df = np.full(shift.shape, common.variance), np.full(shift.shape, common.df)
    prior_df = before_df + lent_df
    prior_variance = (before_df * before + lent_df * lent) / np.maximum(prior_df, 1e-9)
    pairs = counts.astype(np.float64)
    odd: list[Odd | None] = [None] * len(counts)
    start = 0
    for group in levels:
        part = slice(start, start + len(group.plain))
        odd_indices = odd_pairs(group.ratios, prior_variance[part], prior_df[part], PAIR_FLOOR)
        for index in np.flatnonzero(odd_indices >= 0).tolist():
            pair, where = int(odd_indices[index]), start + index
            rest = [np.delete(arm[index], pair)[None] for arm in (group.before, group.after)]
            without = _shift_and_noise(group.sign * (rest[1] - rest[0]), rest[0] + rest[1])
            shift[where], variance[where], df[where] = (float(value[0]) for value in without)
            pairs[where] -= 1
            odd[where] = odd_pair(group.before[index], group.after[index], pair)
        start = part.stop
    variance, df = with_priors(variance, df, before, before_df)
    variance, df = with_priors(variance, df, lent, lent_df)
    return Estimates(pairs, shift, plain, np.sqrt(np.maximum(variance, PAIR_FLOOR)), df, robust, tuple(odd))


def _shift_and_noise(ratios: Floats, sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Shift, variance of a pair's log-ratio and its degrees of freedom, from a point's own launches."""
    shift = ratios.mean(axis=1)
    squares = ((ratios - shift[:, None]) ** 2).sum(axis=1)
    steps = (np.diff(sums, axis=1) ** 2).sum(axis=1) / 2
    variance, df = pair_variance(squares[:, None], steps[:, None], (ratios.shape[1],))
    return shift, variance[:, 0], df[:, 0]


def analyse_pairs(
    levels: Sequence[PairLevels],
    limits: Sequence[Limits],
    *,
    priors: Sequence[Prior | None] | None = None,
    looks: Looks = "every",
) -> list[ArmComparison]:
    """The last look at the points of one campaign and metric; `limits` and `priors` are of each point, in order."""
    estimates = estimate(levels, priors or [None] * len(limits))
    crossed = crossings(estimates, limits, looks)
    return [_comparison(estimates, crossed, index, limit, looks) for index, limit in enumerate(limits)]


@dataclass(frozen=True, slots=True)
class Crossings:
    """Which bounds of which points lie beyond their limits, and how far from the shift each lies; axis point."""

    passed: Flags
    failed: Flags
    to_pass: Floats
    to_fail: Floats
    aside: Floats


def crossings(estimates: Estimates, limits: Sequence[Limits], looks: Looks = "every") -> Crossings:
    margin, indifference, alpha = (
        np.array([getattr(limit, name) for limit in limits]) for name in ("margin", "indifference", "alpha")
    )
    reach = np.empty((3, len(limits)))
    for level in np.unique(alpha):
        of = alpha == level
        reach[:, of] = spend("pair", looks, float(level), estimates.pairs[of]).quantiles(estimates.df[of])
    # a single pair has a shift and no interval, whatever others say of noise: its launches may be both odd
    reach[:, estimates.pairs < 2] = np.inf
    to_pass, to_fail, aside = reach * estimates.error
    return Crossings(
        passed=(estimates.shift - to_pass > margin) & (estimates.plain > margin),
        failed=(estimates.shift + to_fail < indifference) & (estimates.plain < indifference),
        to_pass=to_pass,
        to_fail=to_fail,
        aside=aside,
    )


def _comparison(points: Estimates, crossed: Crossings, index: int, limits: Limits, looks: Looks) -> ArmComparison:
    shift, sd, df, error = (float(values[index]) for values in (points.shift, points.sd, points.df, points.error))
    units = int(points.pairs[index])
    if units < 2:
        return nothing("pair", "a single pair has no interval", limits.better, shift=shift, units=units)
    # the level at which this look would have failed
    level = float(special.stdtr(df, (shift - limits.indifference) / error))
    return last_look(
        "pair",
        limits,
        shift=shift,
        sd=sd,
        df=df,
        error=error,
        reach=(float(crossed.to_pass[index]), float(crossed.to_fail[index]), float(crossed.aside[index])),
        crossed=(bool(crossed.passed[index]), bool(crossed.failed[index])),
        units=units,
        growth=DF_PER_PAIR,
        loss_p=loss_probability("pair", looks, level, float(units)),
        robust=bool(points.robust[index]),
        odd=points.odd[index],
    )
