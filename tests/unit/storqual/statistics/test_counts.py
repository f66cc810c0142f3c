# SPDX-License-Identifier: Apache-2.0
"""Tests of counts and of many points: exact intervals, Holm, Benjamini and Hochberg, overall shifts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.statistics.comparison import nominal_levels
from storqual.statistics.counts import (
    benjamini_hochberg,
    compare_counts,
    holm,
    most_excess,
    most_share,
    overall_shift,
)


def compare(baseline: int, candidate: int, launches: tuple[int, int] = (40, 40), margin: float = 0.2) -> str:
    """The outcome of one look."""
    return compare_counts((baseline, candidate), launches, margin=margin, pass_level=0.05, fail_level=0.05).outcome


@pytest.mark.parametrize(
    ("baseline", "candidate", "outcome"),
    [
        (0, 0, "pass"),
        (5, 0, "pass"),
        (0, 1, "pass"),
        (0, 4, "inconclusive"),
        (0, 5, "fail"),
        (2, 12, "fail"),
        (3, 3, "pass"),
        (20, 22, "inconclusive"),
    ],
)
def test_counts_are_compared_as_shares_of_launches(baseline: int, candidate: int, outcome: str) -> None:
    assert compare(baseline, candidate) == outcome


def test_one_launch_among_few_decides_nothing_and_says_how_many_would() -> None:
    found = compare_counts((0, 1), (6, 6), margin=0.2, pass_level=0.05, fail_level=0.05)
    assert found.outcome == "inconclusive"
    assert compare(0, 1, (6 + found.wanted - 1, 6 + found.wanted - 1)) == "inconclusive"
    assert compare(0, 1, (6 + found.wanted, 6 + found.wanted)) == "pass"


def test_more_launches_of_one_arm_are_no_finding() -> None:
    assert compare(1, 10, (10, 100)) == "pass"


def test_the_excess_covers_the_truth() -> None:
    rng = np.random.default_rng(2)
    seen = rng.binomial(30, (0.1, 0.25), (2000, 2))
    covered = np.mean([most_excess((int(a), int(b)), (30, 30), 0.05) >= 0.15 for a, b in seen])
    assert 0.93 <= covered <= 0.99


def test_none_in_so_many_launches_excludes_a_share() -> None:
    assert most_share(0, 59, 0.05) == pytest.approx(0.05, abs=0.001)


def test_chance_alone_fails_in_five_of_a_hundred_at_most() -> None:
    rng = np.random.default_rng(1)
    counts = rng.binomial(40, 0.1, (2000, 2))
    assert np.mean([compare(int(a), int(b)) == "fail" for a, b in counts]) <= 0.05


@pytest.mark.parametrize(("before", "after", "word", "least"), [(0.04, 0.04, "pass", 0.99), (0.0, 1.0, "fail", 1.0)])
def test_a_campaign_that_looks_after_each_pair_decides(before: float, after: float, word: str, least: float) -> None:
    """Dips come in 4 % of launches of 5 s (the simulator's); a margin of 30 % of launches decides by 48 pairs."""
    rng = np.random.default_rng(4)
    levels = {side: nominal_levels(side, 0.05, np.arange(1.0, 49.0)) for side in ("pass", "fail")}
    found: Counter[str] = Counter()
    for _ in range(200):
        arms = [np.cumsum(rng.random(48) < share) for share in (before, after)]
        outcome = "inconclusive"
        for pairs in range(3, 49):
            seen = (int(arms[0][pairs - 1]), int(arms[1][pairs - 1]))
            at = {f"{side}_level": float(level[pairs - 1]) for side, level in levels.items()}
            outcome = compare_counts(seen, (pairs, pairs), margin=0.3, **at).outcome
            if outcome != "inconclusive":
                break
        found[outcome] += 1
    assert found[word] >= 200 * least


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
