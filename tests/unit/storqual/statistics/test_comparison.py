# SPDX-License-Identifier: Apache-2.0
"""Levels of a sequential test: the table, its inverse, and what is spent where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.statistics.comparison import LEVELS, alpha_of, nominal_levels, scale, shape

RULES = sorted(LEVELS)


@pytest.mark.parametrize("rule", RULES)
def test_the_table_is_hit_exactly(rule: str) -> None:
    for alpha, expected in LEVELS[rule]:
        assert scale(rule, alpha) == pytest.approx(expected)


@given(st.sampled_from(RULES), st.floats(1e-6, 0.4))
def test_a_larger_error_buys_higher_levels(rule: str, alpha: float) -> None:
    assert scale(rule, alpha) < scale(rule, alpha * 1.1)
    assert float(nominal_levels(rule, min(alpha, 0.2), np.arange(1.0, 500.0)).max()) <= alpha


@given(st.sampled_from(RULES), st.floats(1e-4, 0.2), st.integers(2, 60))
def test_the_error_of_a_level_is_found_back(rule: str, alpha: float, look: int) -> None:
    """`alpha_of` is the inverse of the levels."""
    level = float(nominal_levels(rule, alpha, np.array([float(look)]))[0])
    assert alpha_of(rule, level, float(look)) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_the_first_look_spends_nothing(rule: str) -> None:
    assert shape(rule, np.array([1.0]))[0] == 0.0
    assert np.all(shape(rule, np.arange(2.0, 300.0)) > 0)


def test_looks_without_end_spend_little() -> None:
    """Behind the horizon levels fall faster than 1 / n, so that their sum is finite."""
    late = shape("pass", np.arange(49.0, 100_000.0)).sum()
    assert late < 2 * 48 * float(shape("pass", np.array([48.0]))[0]) + 1
