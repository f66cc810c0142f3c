# SPDX-License-Identifier: Apache-2.0
"""Corrections for many tests, against worked examples and their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from storqual.statistics.multiplicity import benjamini_hochberg, holm

PROBABILITIES = st.lists(st.floats(0, 1), max_size=30)


def test_holm_goes_down_the_list_until_one_does_not_hold() -> None:
    """0.01 against a quarter of 5 %, 0.02 against a third: the second one does not hold, nor does what follows."""
    assert holm([0.03, 0.01, 0.02, 0.9], 0.05) == [False, True, False, False]


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
