# SPDX-License-Identifier: Apache-2.0
"""How noisy are pairs, or sessions: a variance with degrees of freedom, with or without earlier knowledge."""

from __future__ import annotations

import math
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


def pair_variance(
    difference_ss: Floats, common_ss: Floats, pairs: tuple[int, ...], floor: float = 2 * LAUNCH_FLOOR**2
) -> tuple[Floats, Floats]:
    """The variance of one pair's log-ratio after so many `pairs`, and its degrees of freedom (last axis: looks).

    `difference_ss` is the sum of squares of the log-ratios about their mean. `common_ss` is the sum of squared
    successive differences, halved, of (log candidate + log baseline): when launches are independent it has the same
    expectation per term and is independent of the log-ratios, so it adds two thirds to the degrees of freedom at no
    cost in bench time. Slow drift hardly touches it. Where the two disagree (neighbours share slow noise that
    cancels in the pair, or disturb each other) the log-ratios alone are believed.
    """
    k, nv, low, high = _ratio_limits(pairs)
    terms = np.maximum(k, 1.0)
    own = np.maximum(difference_ss / terms, floor)
    common = np.maximum(common_ss / terms, floor)
    ratio = own / common
    agree = (ratio >= low) & (ratio <= high)
    both = (k * own + nv * common) / np.maximum(k + nv, 1.0)
    return np.where(agree, both, own), np.where(agree, k + nv, k)


def with_prior(variance: Floats, df: Floats, prior: Prior | None) -> tuple[Floats, Floats]:
    """Variance and degrees of freedom with earlier knowledge added, unless the new data are clearly noisier."""
    if prior is None or prior.df <= 0:
        return variance, df
    return with_priors(variance, df, np.asarray(prior.variance), np.asarray(prior.df))


def with_priors(variance: Floats, df: Floats, known: Floats, known_df: Floats) -> tuple[Floats, Floats]:
    """The same where each point has its own earlier knowledge; none where `known_df` is 0."""
    weight = np.maximum(known_df, 1e-9)
    limit = special.fdtri(np.maximum(df, 1.0), weight, 1 - _NOISIER)
    alone = (known_df <= 0) | ((df >= 1) & (variance > limit * known))
    added = (df * variance + weight * known) / (df + weight)
    return np.where(alone, variance, added), np.where(alone, df, df + weight)
