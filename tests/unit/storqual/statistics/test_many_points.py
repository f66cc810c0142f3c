# SPDX-License-Identifier: Apache-2.0
"""Many points at once: corrections, and the shift of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.statistics.counts import benjamini_hochberg, holm, overall_shift

PROBABILITIES = st.lists(st.floats(0, 1), max_size=30)


def test_holm_goes_down_the_list_until_one_does_not_hold() -> None:
    """0.01 against a quarter of 5 %, 0.02 against a third: the second one does not hold, nor does what follows."""
    assert holm([0.03, 0.01, 0.02, 0.9], 0.05) == [False, True, False, False]


def test_the_more_hypotheses_the_smaller_the_share_of_each_that_is_allowed() -> None:
    """0.01 against a fifth of 5 %; 0.04 against two and three fifths: below 5 %, and still no finding."""
    assert benjamini_hochberg([0.01, 0.04, 0.04, 0.5, 0.6], 0.05) == [True, False, False, False, False]


def test_benjamini_and_hochberg_go_up_the_list() -> None:
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.9], 0.1) == [True, True, True, False]


@given(PROBABILITIES)
def test_holm_rejects_no_more_than_single_tests_and_no_less_than_bonferroni(p: list[float]) -> None:
    for probability, rejected in zip(p, holm(p, 0.05), strict=True):
        assert not rejected or probability <= 0.05
        assert rejected or probability > 0.05 / len(p)


@given(PROBABILITIES)
def test_the_order_of_the_list_does_not_matter(p: list[float]) -> None:
    for method in (holm, benjamini_hochberg):
        forwards, backwards = method(p, 0.1), method(p[::-1], 0.1)[::-1]
        kept = {probability for probability, rejected in zip(p, forwards, strict=True) if rejected}
        assert sum(forwards) == sum(backwards)
        assert all(kept >= {q} for q, rejected in zip(p, backwards, strict=True) if rejected)


def test_a_matrix_of_unchanged_points_fails_in_five_of_a_hundred() -> None:
    rng = np.random.default_rng(1)
    failed = sum(any(holm(rng.uniform(size=200).tolist(), 0.05)) for _ in range(500))
    assert failed / 5 <= 5.0 + 2.0


def test_a_small_loss_everywhere_is_seen() -> None:
    rng = np.random.default_rng(1)
    found = overall_shift((-0.01 + rng.normal(0, 0.01, 40)).tolist(), [0.01] * 40)
    assert found is not None
    assert found.high < 0
    assert found.shift == pytest.approx(-0.01, abs=0.005)


def test_one_bad_point_makes_points_differ() -> None:
    found = overall_shift([0.0] * 19 + [-0.2], [0.005] * 20)
    assert found is not None
    assert found.spread > 0.03
    assert found.low < 0 < found.high


def test_the_interval_holds_the_truth() -> None:
    """In 95 of 100 sets of points, with true differences between points."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        errors = rng.uniform(0.005, 0.02, 12)
        shifts = rng.normal(0, 0.01, 12) + rng.normal(0, errors)
        found = overall_shift(shifts.tolist(), errors.tolist())
        assert found is not None
        held += found.low <= 0.0 <= found.high
    assert held / 4 >= 92.0


def test_two_points_are_no_family() -> None:
    assert overall_shift([0.0, 0.1], [0.01, 0.01]) is None
    assert overall_shift([0.0, 0.1, 0.2], [0.01, float("nan"), 0.01]) is None
