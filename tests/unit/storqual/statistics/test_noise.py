# SPDX-License-Identifier: Apache-2.0
"""The noise of pairs: two sources that agree, sources that do not, and what was known before."""

from __future__ import annotations

import numpy as np
import pytest

from storqual.statistics.noise import LAUNCH_FLOOR, Prior, pair_variance, with_prior


def variance_of(baseline: np.ndarray, candidate: np.ndarray) -> tuple[float, float]:
    """Variance of a pair's log-ratio and its degrees of freedom, from logarithms of launches."""
    d, p = candidate - baseline, candidate + baseline
    ss = np.array([((d - d.mean()) ** 2).sum()])
    variance, df = pair_variance(ss, np.array([(np.diff(p) ** 2).sum() / 2]), (len(d),))
    return float(variance[0]), float(df[0])


def test_independent_launches_give_two_thirds_more_degrees_of_freedom() -> None:
    rng = np.random.default_rng(1)
    found = [variance_of(*rng.normal(0, 0.02, (2, 10))) for _ in range(400)]
    assert np.mean([variance for variance, _ in found]) == pytest.approx(2 * 0.02**2, rel=0.05)
    assert np.median([df for _, df in found]) == pytest.approx(9 + 2 * 81 / 26)


def test_a_slow_drift_does_not_touch_the_noise() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 0.02, (2, 30))
    still, drifting = variance_of(*noise), variance_of(*(noise + np.linspace(0, 0.05, 30)))
    assert drifting[0] == pytest.approx(still[0], rel=0.05)


def test_noise_that_neighbours_share_is_not_counted() -> None:
    rng = np.random.default_rng(3)
    shared = rng.normal(0, 0.1, 20)
    variance, df = variance_of(*(rng.normal(0, 0.01, (2, 20)) + shared))
    assert variance < 3 * 2 * 0.01**2
    assert df == 19


def test_equal_figures_have_a_floor() -> None:
    variance, df = variance_of(np.zeros(5), np.zeros(5))
    assert variance == pytest.approx(2 * LAUNCH_FLOOR**2)
    assert df > 4


def test_a_prior_is_added_with_its_weight() -> None:
    variance, df = with_prior(np.array([4.0]), np.array([4.0]), Prior(2.0, 12.0))
    assert (variance[0], df[0]) == (2.5, 16.0)


def test_a_prior_is_dropped_when_the_data_are_clearly_noisier() -> None:
    variance, df = with_prior(np.array([9.0]), np.array([10.0]), Prior(1.0, 20.0))
    assert (variance[0], df[0]) == (9.0, 10.0)
