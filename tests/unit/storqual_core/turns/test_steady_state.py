# SPDX-License-Identifier: Apache-2.0
"""Settled or not, on planted series: level, decaying, filled and unfilled, with the noise that drives have."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from storqual_core.turns.precondition import FEWEST_SECONDS, Slope, drift_of, is_settled, settled_from, snia_of


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


@pytest.mark.parametrize(
    ("rounds", "steady"),
    [
        ([90.0, 110.0, 100.0, 100.0, 100.0], True),
        ([89.0, 111.0, 100.0, 100.0, 100.0], False),
        ([95.0, 97.5, 100.0, 102.5, 105.0], True),
        ([94.0, 97.0, 100.0, 103.0, 106.0], False),
    ],
)
def test_snias_limits_belong_to_what_is_steady(rounds: list[float], steady: bool) -> None:
    """20 % of range and 10 % of excursion are in, more of either is out."""
    found = snia_of(rounds)
    assert found is not None
    assert found.steady is steady


def test_a_drift_is_level_up_to_five_percent_either_way() -> None:
    assert Slope(0.0, -0.05, 0.05, 300).level
    assert not Slope(0.0, -0.051, 0.05, 300).level
    assert not Slope(0.0, -0.05, 0.051, 300).level


def test_the_change_is_that_of_the_line_from_its_first_second_to_its_last() -> None:
    """100 to 109 in ten seconds is 9 of 104.5; nine seconds are too few, and no rate has no change."""
    found = drift_of([100.0 + second for second in range(10)])
    assert found is not None
    assert (found.change, found.seconds) == (pytest.approx(9 / 104.5), 10)
    assert drift_of([100.0] * 9) is None
    assert drift_of([0.0] * 20) is None


def test_neighbours_that_are_alike_are_worth_fewer_seconds() -> None:
    turns = [1000.0 + (10 if second % 2 else -10) for second in range(400)]
    runs = [1000.0 + (10 if second // 10 % 2 else -10) for second in range(400)]
    narrow, wide = drift_of(turns), drift_of(runs)
    assert narrow is not None
    assert wide is not None
    assert wide.high - wide.low == pytest.approx(3 * (narrow.high - narrow.low), rel=0.05)


@pytest.mark.parametrize("rounds", [[], [1.0] * 4, [0.0] * 5])
def test_snia_says_nothing_of_too_few_rounds_or_of_a_drive_that_stands_still(rounds: list[float]) -> None:
    assert snia_of(rounds) is None


def test_the_interval_is_that_of_the_least_squares_line() -> None:
    """Where neighbours are not alike; scipy is the oracle, and 1.645 the normal law's 95 %."""
    values = [1000.0 + second + (10 if second % 2 else -10) for second in range(50)]
    line = linregress(range(50), values)
    across = 49 / (sum(values) / 50)
    found = drift_of(values)
    assert found is not None
    assert found.change == pytest.approx(line.slope * across)
    assert found.low == pytest.approx((line.slope - 1.6449 * line.stderr) * across, rel=1e-4)
    assert found.high == pytest.approx((line.slope + 1.6449 * line.stderr) * across, rel=1e-4)


@pytest.mark.parametrize(("seconds", "window"), [(299, None), (300, 300), (600, 300), (700, 350)])
def test_drift_is_asked_of_the_last_half_and_at_least_of_five_minutes(seconds: int, window: int | None) -> None:
    found = is_settled([9999.0] * (seconds - 350) + [100.0] * min(seconds, 350))
    assert (None if found is None else found.seconds) == window
    assert found is None or found.change == 0.0


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
    values = noisy([500.0] * transient + [1000.0] * (100 - transient), 3, spread=0.01, correlation=0.0)
    assert least <= settled_from(values) <= most


def test_nothing_is_cut_of_a_series_that_never_settles() -> None:
    """A straight rise would lose all but its end."""
    assert settled_from([float(second) for second in range(1, 101)]) == 0


@given(st.lists(st.floats(0, 1e9), max_size=80))
def test_any_series_has_an_answer(values: list[float]) -> None:
    assert 0 <= settled_from(values) <= len(values) / 2
    drift = drift_of(values)
    assert drift is None or drift.low <= drift.change <= drift.high
    snia_of(values)
