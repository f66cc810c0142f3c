# SPDX-License-Identifier: Apache-2.0
"""Settled or not, on planted series: level, decaying, filled and unfilled, with the noise that drives have."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.steady_state import FEWEST_SECONDS, drift_of, is_settled, settled_from, snia_of


def noisy(levels: list[float], seed: int, spread: float = 0.03, correlation: float = 0.6) -> list[float]:
    """Seconds at these levels with AR(1) noise."""
    source, state, values = random.Random(seed), 0.0, []
    for level in levels:
        state = correlation * state + math.sqrt(1 - correlation**2) * source.gauss(0, 1)
        values.append(level * (1 + spread * state))
    return values


def test_snia_names_its_two_numbers() -> None:
    """Rounds that fall by 5 % of the mean each: 20 % of range, 20 % of excursion."""
    found = snia_of([9.0, 110.0, 105.0, 100.0, 95.0, 90.0])
    assert found is not None
    assert (round(found.range, 9), round(found.excursion, 9), found.steady) == (0.2, 0.2, False)
    level = snia_of([99.0, 101.0, 100.0, 101.0, 99.0])
    assert level is not None
    assert level.steady


@pytest.mark.parametrize("rounds", [[], [1.0] * 4, [0.0] * 5])
def test_snia_says_nothing_of_too_few_rounds_or_of_a_drive_that_stands_still(rounds: list[float]) -> None:
    """Missing is never steady."""
    assert snia_of(rounds) is None


def test_a_settled_series_is_called_level_soon() -> None:
    """Of two hundred noisy level series nearly all by 600 seconds, none before 300."""
    settled = 0
    for seed in range(200):
        values = noisy([1000.0] * 600, seed)
        assert is_settled(values[: FEWEST_SECONDS - 1]) is None
        found = is_settled(values)
        settled += found is not None and found.level
    assert settled >= 195


def test_a_decay_is_hardly_ever_called_level_while_it_is_off() -> None:
    """30 % above the plateau with time constants of 20 to 90 s: stops are judged by the level in their window."""
    wrong = 0
    for seed in range(200):
        tau = random.Random(seed).uniform(20, 90)
        values = noisy([1000.0 * (1 + 0.3 * math.exp(-second / tau)) for second in range(3000)], seed)
        for now in range(FEWEST_SECONDS, 3000, 30):
            found = is_settled(values[:now])
            if found is not None and found.level:
                window = range(now - found.seconds, now)
                bias = sum(0.3 * math.exp(-second / tau) for second in window) / found.seconds
                wrong += bias > 0.03
                break
    assert wrong <= 10


def test_a_cliff_beyond_the_window_is_not_seen_which_is_why_volume_comes_first() -> None:
    """Three times the plateau for 400 s: level so far, and nobody can know better from the series alone."""
    before = is_settled(noisy([3000.0] * 390, 1))
    after = is_settled(noisy([3000.0] * 400 + [1000.0] * 200, 1))
    assert before is not None
    assert before.level
    assert after is not None
    assert not after.level


@pytest.mark.parametrize(("transient", "least", "most"), [(0, 0, 5), (12, 10, 20), (20, 15, 30)])
def test_a_start_up_transient_is_cut_where_it_ends(transient: int, least: int, most: int) -> None:
    """Half the rate at first, then level."""
    values = noisy([500.0] * transient + [1000.0] * (100 - transient), 3, spread=0.01, correlation=0.0)
    assert least <= settled_from(values) <= most


def test_nothing_is_cut_of_a_series_that_never_settles() -> None:
    """A straight rise would lose all but its end."""
    assert settled_from([float(second) for second in range(1, 101)]) == 0


@given(st.lists(st.floats(0, 1e9), max_size=80))
def test_any_series_has_an_answer(values: list[float]) -> None:
    """No number of seconds and no stall is an error; a cut leaves half."""
    assert 0 <= settled_from(values) <= len(values) / 2
    drift = drift_of(values)
    assert drift is None or drift.low <= drift.change <= drift.high
    snia_of(values)
