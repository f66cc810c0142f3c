# SPDX-License-Identifier: Apache-2.0
"""Levels of launches: dips do not decide, and nothing hides behind that."""

import numpy as np
import pytest

from storqual.statistics.launches import launch_levels, pad, session_levels


def arms(seed: int, count: int = 20, seconds: int = 5, spread: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Two equal arms; axes (launch, second)."""
    rng = np.random.default_rng(seed)
    both = 1000.0 * (1.0 + rng.normal(0, spread, (2, count, seconds)))
    return both[0], both[1]


def shift_of(baseline: np.ndarray, candidate: np.ndarray) -> tuple[float, bool]:
    """The mean log-ratio after all pairs, and whether seconds were bounded."""
    before, after = launch_levels(baseline[None], candidate[None])
    return float((after.used - before.used).mean()), bool(before.bounded[0])


def test_without_dips_bounding_changes_next_to_nothing() -> None:
    baseline, candidate = arms(1)
    plain = float(np.log(candidate.mean(axis=1) / baseline.mean(axis=1)).mean())
    assert shift_of(baseline, candidate) == (pytest.approx(plain, abs=0.002), True)


def test_a_few_dips_on_both_sides_do_not_shift_the_level() -> None:
    baseline, candidate = arms(2)
    baseline[3, 1:3] *= 0.75
    baseline[9, 0] *= 0.8
    candidate[1, 2:5] *= 0.75
    candidate[6, 0:2] *= 0.8
    candidate[14, 4] *= 0.7
    shift, bounded = shift_of(baseline, candidate)
    assert bounded
    assert shift == pytest.approx(0.0, abs=0.008)


def test_dips_of_the_candidate_alone_are_not_bounded_away() -> None:
    baseline, candidate = arms(3)
    candidate[[1, 4, 7, 10, 13, 16], 1:4] *= 0.7
    shift, bounded = shift_of(baseline, candidate)
    assert not bounded
    assert shift == pytest.approx(np.log(candidate.mean(axis=1) / baseline.mean(axis=1)).mean())


def test_single_dips_of_the_candidate_alone_are_not_bounded_away_though_they_are_few() -> None:
    """Nine of a hundred seconds: few enough to be dips, and in one arm only."""
    baseline, candidate = arms(3)
    candidate[1:19:2, 2] *= 0.75
    shift, bounded = shift_of(baseline, candidate)
    assert not bounded
    assert shift == pytest.approx(np.log(candidate.mean(axis=1) / baseline.mean(axis=1)).mean())
    baseline[1:19:2, 3] *= 0.75
    assert shift_of(baseline, candidate)[1]


def test_a_second_mode_is_no_dip() -> None:
    baseline, candidate = arms(4)
    for arm in (baseline, candidate):
        arm[::3] *= 0.8
    assert shift_of(baseline, candidate)[1] is False


def test_equal_seconds_are_taken_as_they_are() -> None:
    flat = np.full((10, 5), 500.0)
    shift, bounded = shift_of(flat, flat * 0.9)
    assert shift == pytest.approx(np.log(0.9))
    assert not bounded


def test_an_arm_that_mostly_stands_still_has_a_level() -> None:
    baseline, candidate = arms(6)
    candidate[:, :3] = 0.0
    shift, bounded = shift_of(baseline, candidate)
    assert not bounded
    assert shift < -0.8


def test_launches_of_different_lengths_stand_side_by_side() -> None:
    filled = pad([[1.0, 2.0, 3.0], [4.0]])
    assert np.array_equal(filled, [[1.0, 2.0, 3.0], [4.0, np.nan, np.nan]], equal_nan=True)


def test_long_series_are_averaged() -> None:
    filled = pad([[float(second) for second in range(3600)]])
    assert filled.shape == (1, 60)
    assert filled.mean() == pytest.approx(1799.5)


def test_sessions_are_bounded_about_their_own_level() -> None:
    """A session that is 10 % higher as a whole keeps its level; a dip in it does not count in full."""
    rng = np.random.default_rng(7)
    both = 1000.0 * (1.0 + rng.normal(0, 0.01, (2, 1, 3, 6, 5)))
    both[1, 0, 1] *= 1.1
    both[1, 0, 1, 2, 1:3] *= 0.7
    levels = session_levels(both[0], both[1])
    means = levels.used[1][0].mean(axis=1)
    assert levels.robust[0]
    assert means[1] - means[0] == pytest.approx(np.log(1.1), abs=0.006)


def test_dips_of_the_candidate_alone_are_not_bounded_away_in_sessions() -> None:
    rng = np.random.default_rng(7)
    both = 1000.0 * (1.0 + rng.normal(0, 0.01, (2, 1, 3, 6, 5)))
    both[1, 0, :, ::2, 2] *= 0.75
    levels = session_levels(both[0], both[1])
    assert not levels.robust[0]
    assert levels.used[1] == pytest.approx(np.log(both[1].mean(axis=-1)))
    both[0, 0, :, ::2, 3] *= 0.75
    assert session_levels(both[0], both[1]).robust[0]
