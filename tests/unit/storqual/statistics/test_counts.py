# SPDX-License-Identifier: Apache-2.0
"""Counts in two arms."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from storqual.statistics.comparison import nominal_levels
from storqual.statistics.counts import compare_counts, most_excess, most_share


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
