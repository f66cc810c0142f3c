# SPDX-License-Identifier: Apache-2.0
"""How noisy are pairs, or sessions: a variance with degrees of freedom, with or without earlier knowledge.

What the points of a campaign say about each other's noise lets a few pairs or sessions decide. Two sessions per arm
leave two degrees of freedom for a point's noise, and a Student's t of two degrees needs 2.9 to 6.1 standard errors.
But a campaign has many points, measured in the same sessions. Their variances are drawn from a common distribution
that is fitted here (the scaled F of Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004:
moderated t), and each point's own variance is shrunk to it as far as the points are alike.

A boot may shift all points at once. Then all variances are wrong together, and more points do not help: so the part
that the points of a session share is taken apart, keeps the degrees of freedom that sessions alone give, and is
added again (Satterthwaite's degrees of freedom for the sum).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

LAUNCH_FLOOR = 0.0005
"""Standard deviation below which no launch is believed to repeat, as a share of its mean.

A throttled or emulated drive gives equal figures to the last digit, and a variance of nothing would make every
difference significant. But a launch starts and ends between two I/Os, and fio's seconds are a millisecond wide, so
that two launches of a few seconds that agree better than this agree by rounding."""
PAIR_FLOOR = 2 * LAUNCH_FLOOR**2

TELLS_NOTHING = math.log(100.0)
"""The interval of a logarithm that reaches a hundredfold to either side is none: few launches and much noise."""

_DISAGREE = 0.01
"""One-sided level of the tests by which the two sources of a pair's variance are held to disagree."""
_NOISIER = 0.05
"""One-sided level of the test by which new data are noisier than earlier knowledge, which is then dropped."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A variance known from elsewhere, with its degrees of freedom."""

    variance: float
    df: float


NOTHING_KNOWN = Prior(1.0, 0.0)
"""Stands for a point of which nothing is known from elsewhere."""


@lru_cache(maxsize=512)
def _ratio_limits(pairs: tuple[int, ...]) -> tuple[Floats, Floats, Floats, Floats]:
    """For so many pairs: degrees of freedom of both sources, and the limits of their ratio."""
    k = np.array(pairs, dtype=np.float64) - 1.0
    # successive differences of k + 1 normal values have the variance of an estimate with these degrees of freedom
    nv = 2 * k * k / np.maximum(3 * k - 1, 1)
    some = np.maximum(k, 1.0), np.maximum(nv, 1.0)
    return k, nv, special.fdtri(*some, _DISAGREE), special.fdtri(*some, 1 - _DISAGREE)


def pair_variance(difference_ss: Floats, common_ss: Floats, pairs: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The variance of one pair's log-ratio after so many `pairs`, and its degrees of freedom (last axis: looks).

    `difference_ss` is the sum of squares of the log-ratios about their mean. `common_ss` is the sum of squared
    successive differences, halved, of (log candidate + log baseline): when launches are independent it has the same
    expectation per term and is independent of the log-ratios, so it adds two thirds to the degrees of freedom at no
    cost in bench time. Slow drift hardly touches it. Where the two disagree (neighbours share slow noise that
    cancels in the pair, or disturb each other) the log-ratios alone are believed.
    """
    k, nv, low, high = _ratio_limits(pairs)
    terms = np.maximum(k, 1.0)
    of_ratios = np.maximum(difference_ss / terms, PAIR_FLOOR)
    common = np.maximum(common_ss / terms, PAIR_FLOOR)
    ratio = of_ratios / common
    agree = (ratio >= low) & (ratio <= high)
    pooled = (k * of_ratios + nv * common) / np.maximum(k + nv, 1.0)
    return np.where(agree, pooled, of_ratios), np.where(agree, k + nv, k)


def with_prior(variance: Floats, df: Floats, prior: Prior | None) -> tuple[Floats, Floats]:
    """Variance and degrees of freedom with earlier knowledge added, unless the new data are clearly noisier."""
    if prior is None or prior.df <= 0:
        return variance, df
    return with_priors(variance, df, np.asarray(prior.variance), np.asarray(prior.df))


def pooled_sd(parts: Iterable[tuple[float | None, float]]) -> tuple[float | None, float]:
    """The standard deviation of samples together, each with its degrees of freedom; None and 0 where none has any."""
    measured = [(sd, df) for sd, df in parts if sd is not None and df > 0]
    if not measured:
        return None, 0.0
    total = sum(df for _, df in measured)
    return math.sqrt(sum(df * sd * sd for sd, df in measured) / total), total


def with_priors(variance: Floats, df: Floats, prior_variance: Floats, prior_df: Floats) -> tuple[Floats, Floats]:
    """The same where each point has its own earlier knowledge; none where `prior_df` is 0."""
    weight = np.maximum(prior_df, 1e-9)
    limit = special.fdtri(np.maximum(df, 1.0), weight, 1 - _NOISIER)
    alone = (prior_df <= 0) | ((df >= 1) & (variance > limit * prior_variance))
    added = (df * variance + weight * prior_variance) / (df + weight)
    return np.where(alone, variance, added), np.where(alone, df, df + weight)


FEWEST_POINTS = 5
"""Points from which their variances say something about each other."""
_OUTLYING = 0.01
_MOST_OUTLYING = 1 / 3


def common_spread(variances: Floats, df: Floats | float, floor: float = LAUNCH_FLOOR**2) -> Prior | None:
    """The distribution that variances of `df` degrees of freedom (one number, or each its own) are drawn from.

    A scale and a weight.

    Points far noisier than the others can explain are left out: a stall in one session must not cost all points
    their decision. They are looked for from the largest number down, because two of them hide each other: with one
    left in, the spread seems wide enough for both (Phipson et al., Annals of Applied Statistics 10, 2016, on the same
    trouble). None for too few points. The weight is at most that of all points together.
    """
    freedom = np.broadcast_to(np.asarray(df, dtype=np.float64), np.shape(variances))
    some = freedom > 0
    s2, freedom = np.maximum(np.asarray(variances, dtype=np.float64)[some], floor), freedom[some]
    if len(s2) < FEWEST_POINTS:
        return None
    order = np.argsort(s2, kind="stable")
    s2, freedom = s2[order], freedom[order]
    for outlying in range(min(int(_MOST_OUTLYING * len(s2)), len(s2) - FEWEST_POINTS), 0, -1):
        rest = _fit(s2[:-outlying], freedom[:-outlying])
        # of equal points, one set in a hundred has one by chance
        if s2[-outlying] > special.fdtri(freedom[-outlying], rest.df, 1 - _OUTLYING / len(s2)) * rest.variance:
            return rest
    return _fit(s2, freedom)


def _fit(s2: Floats, df: Floats) -> Prior:
    """Scale and weight of a scaled F from the mean and the variance of the logarithms (Smyth 2004, section 6.2)."""
    logs = np.log(s2) - special.digamma(df / 2) + np.log(df / 2)
    middle = float(logs.mean())
    excess = float(logs.var(ddof=1)) - float(special.polygamma(1, df / 2).mean())
    most = float(df.sum() - df.mean())
    # no more spread than equal variances have by themselves: they are taken as equal
    weight = most if excess <= 0 else min(2.0 * _trigamma_inverse(excess), most)
    scale = float(np.exp(middle + special.digamma(weight / 2) - np.log(weight / 2)))
    return Prior(scale, weight)


def session_mean_noise(baseline: Floats, candidate: Floats) -> list[Prior] | None:
    """The variance of a session mean of each point, with degrees of freedom; None for too few points or sessions.

    Arguments are logarithms of session means, axes (point, session); a session has the same column in all points.
    """
    points = baseline.shape[0]
    df = baseline.shape[1] + candidate.shape[1] - 2
    if points < FEWEST_POINTS or df < 1:
        return None
    residuals = np.concatenate([arm - arm.mean(axis=1, keepdims=True) for arm in (baseline, candidate)], axis=1)
    # what a boot does to all points: the median, because a stall of some points is not a boot's doing
    together = np.median(residuals, axis=0)
    shared = max(float((together**2).sum()) / df, 0.0)
    variances = ((residuals - together) ** 2).sum(axis=1) / (df * (1.0 - 1.0 / points))
    common = common_spread(variances, df)
    if common is None:
        return None
    variances = np.maximum(variances, LAUNCH_FLOOR**2)
    noisier = variances > special.fdtri(df, common.df, 1 - _NOISIER) * common.variance
    shrunk = np.where(noisier, variances, (df * variances + common.df * common.variance) / (df + common.df))
    weight = np.where(noisier, df, df + common.df)
    priors = []
    for shrunk_variance, freedom in zip(shrunk.tolist(), weight.tolist(), strict=True):
        total = shrunk_variance + shared
        priors.append(Prior(total, total**2 / (shrunk_variance**2 / freedom + shared**2 / df)))
    return priors


def _trigamma_inverse(value: float) -> float:
    """X with trigamma(x) = value > 0, by Newton's iteration on 1 / trigamma."""
    x = 0.5 + 1.0 / value
    for _ in range(50):
        at = float(special.polygamma(1, x))
        step = at * (1.0 - at / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
