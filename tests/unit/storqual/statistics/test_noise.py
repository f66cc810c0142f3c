# SPDX-License-Identifier: Apache-2.0
"""The noise of pairs: two sources that agree, sources that do not, and what was known before."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from storqual.statistics.noise import (
    LAUNCH_FLOOR,
    Prior,
    _fit,
    common_spread,
    pair_variance,
    session_mean_noise,
    with_prior,
)


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


def wrong_passes(common: float, *, points: int = 15, sessions: int = 2, trials: int = 400) -> float:
    """Percent of points at the margin that a single look passes."""
    rng = np.random.default_rng(11)
    passed = 0.0
    for _ in range(trials):
        own = 0.005 * np.exp(0.3 * rng.standard_normal((points, 1)))
        arms = [
            own * rng.standard_normal((points, sessions)) + common * rng.standard_normal((1, sessions))
            for _ in range(2)
        ]
        noise = session_mean_noise(arms[0], arms[1])
        assert noise is not None
        error = np.sqrt([2 * one.variance / sessions for one in noise])
        reach = -special.stdtrit([one.df for one in noise], 0.05)
        passed += float(np.mean(arms[1].mean(axis=1) - arms[0].mean(axis=1) > reach * error))
    return 100 * passed / trials


@pytest.mark.parametrize("common", [0.0, 0.005, 0.01])
def test_error_rates_hold_when_a_boot_shifts_all_points(common: float) -> None:
    assert wrong_passes(common) <= 7.0


def test_points_that_are_alike_share_their_degrees_of_freedom() -> None:
    rng = np.random.default_rng(1)
    arms = 0.005 * rng.standard_normal((2, 15, 2))
    noise = session_mean_noise(arms[0], arms[1])
    assert noise is not None
    assert np.median([one.df for one in noise]) > 8
    assert np.median([one.variance for one in noise]) == pytest.approx(0.005**2, rel=0.6)


def test_points_that_differ_keep_to_themselves() -> None:
    rng = np.random.default_rng(2)
    variances = 10.0 ** rng.uniform(-8, -2, 30)
    shared = common_spread(variances, 10.0)
    assert shared is not None
    assert shared.df < 3


def test_a_shift_of_all_points_keeps_the_degrees_of_freedom_of_sessions() -> None:
    rng = np.random.default_rng(3)
    arms = 0.0005 * rng.standard_normal((2, 40, 2)) + 0.01 * rng.standard_normal((2, 1, 2))
    noise = session_mean_noise(arms[0], arms[1])
    assert noise is not None
    assert max(one.df for one in noise) < 2.6


@pytest.mark.parametrize("points", [1, 4])
def test_few_points_share_nothing(points: int) -> None:
    arms = np.random.default_rng(4).standard_normal((2, points, 2))
    assert session_mean_noise(arms[0], arms[1]) is None


def test_equal_points_have_a_finite_weight() -> None:
    shared = common_spread(np.full(10, 0.0004), 4.0)
    assert shared is not None
    assert shared.df == 36.0
    assert np.isfinite(shared.variance)


@pytest.mark.parametrize("stalled", [1, 2, 3, 4])
def test_a_stall_at_some_points_does_not_cost_the_others_their_decision(stalled: int) -> None:
    rng = np.random.default_rng(5)
    arms = 0.003 * rng.standard_normal((2, 12, 2))
    arms[0, :stalled, 0] -= 0.4
    noise = session_mean_noise(arms[0], arms[1])
    assert noise is not None
    assert max(one.variance for one in noise[stalled:]) < 0.01**2
    assert min(one.variance for one in noise[:stalled]) > 0.1**2
    assert np.median([one.df for one in noise[stalled:]]) > 4


def test_equal_points_hardly_ever_lose_one() -> None:
    """Leaving the noisiest out by chance would make all others look quieter than they are: one set in a hundred."""
    rng = np.random.default_rng(8)
    lost = 0
    for _ in range(300):
        variances = np.sort(rng.chisquare(2, 12) / 2)
        lost += common_spread(variances, 2.0) != _fit(variances, np.full(12, 2.0))
    assert lost <= 9


def test_points_of_different_knowledge_weigh_by_it() -> None:
    """Ten points with many pairs and ten with two: the scale is that of the many."""
    rng = np.random.default_rng(9)
    df = np.repeat([2.0, 40.0], 10)
    variances = 0.01**2 * rng.chisquare(df) / df
    shared = common_spread(variances, df)
    assert shared is not None
    assert shared.variance == pytest.approx(0.01**2, rel=0.25)
    assert common_spread(variances, np.where(df > 2, 40.0, 0.0)) is not None
    assert common_spread(variances[:12], np.where(np.arange(12) > 7, 40.0, 0.0)) is None
