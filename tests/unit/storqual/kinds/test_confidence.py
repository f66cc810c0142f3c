# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.kinds.trial_checks import compare, lower_bound, more_often, told, upper_bound


def at_most(failures: int, trials: int, rate: float) -> float:
    return sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(failures + 1))


def test_no_failure_in_sixty_trials_shows_less_than_five_percent() -> None:
    assert told(0, 60) == "0 of 60 failed: less than 4.9 % at 95 %"
    assert upper_bound(0, 59) < 0.05 < upper_bound(0, 58)


@given(st.integers(1, 80), st.data())
def test_the_bound_is_where_the_binomial_law_leaves_five_percent(trials: int, data: st.DataObject) -> None:
    failures = data.draw(st.integers(0, trials - 1))
    assert at_most(failures, trials, upper_bound(failures, trials)) == pytest.approx(0.05, abs=1e-9)
    if failures:
        below = 1 - at_most(failures - 1, trials, lower_bound(failures, trials))
        assert below == pytest.approx(0.05, abs=1e-9)


def test_bounds_at_the_ends() -> None:
    assert (upper_bound(0, 0), upper_bound(3, 3), lower_bound(0, 9)) == (1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="cannot be"):
        upper_bound(4, 3)


def test_a_printed_bound_is_never_below_the_true_one() -> None:
    for trials in range(1, 200):
        for failures in (0, 1, trials // 2):
            if failures <= trials:
                percent = float(told(failures, trials).split("less than ")[1].split(" %")[0])
                assert percent >= 100 * upper_bound(failures, trials) - 1e-9


def test_the_comparison_is_fishers() -> None:
    # 4 of 4 against 0 of 4: one case in 70
    assert more_often((4, 4), (0, 4)) == Fraction(1, 70)
    assert more_often((0, 4), (4, 4)) == 1
    assert more_often((2, 4), (2, 4)) == Fraction(53, 70)


def test_a_candidate_that_alone_fails_again_and_again_is_a_regression() -> None:
    assert compare([(True, False)] * 8).answer == "regression"


def test_a_failure_that_the_baseline_shows_as_often_is_known() -> None:
    found = compare([(True, True), (False, False)] * 10)
    assert (found.answer, found.looks) == ("known", 4)


def test_one_failure_of_the_candidate_alone_is_undecided_and_none_is_none() -> None:
    assert compare([(True, False), (False, False)]).answer == "undecided"
    assert compare([(False, True)] * 5).answer == "none"


def test_a_candidate_that_fails_much_more_often_than_a_baseline_that_fails_too_is_a_regression() -> None:
    assert compare([(True, number % 10 == 0) for number in range(40)]).answer == "regression"


def test_each_look_spends_its_part_of_the_error_only() -> None:
    # 4 of 4 against 0 of 4 has p = 1/70: more than a quarter of 5 %
    pairs = [(True, False)] * 4 + [(False, False)] * 12
    assert compare(pairs).answer == "undecided"
    assert compare(pairs, looks=4, alpha=0.06).answer == "regression"


def test_looking_four_times_accuses_equal_arms_at_most_as_often_as_promised() -> None:
    # exact, over all outcomes of 8 pairs in which either arm fails with probability one half
    wrong = 0
    for bits in range(1 << 16):
        pairs = [(bool(bits >> place & 1), bool(bits >> (8 + place) & 1)) for place in range(8)]
        wrong += compare(pairs).answer == "regression"
    assert 0 < wrong / (1 << 16) <= 0.05
