# SPDX-License-Identifier: Apache-2.0
"""The noise of pairs: two sources that agree, sources that do not, and what was known before."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from storqual.statistics.comparison import nominal_levels
from storqual.statistics.counts import (
    benjamini_hochberg,
    compare_counts,
    holm,
    most_excess,
    most_share,
    overall_shift,
)
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
    d, p = candidate - baseline, candidate + baseline
    ss = np.array([((d - d.mean()) ** 2).sum()])
    variance, df = pair_variance(ss, np.array([(np.diff(p) ** 2).sum() / 2]), (len(d),))
    return float(variance[0]), float(df[0])


def test_independent_launches_give_two_thirds_more_degrees_of_freedom() -> None:
    rng = np.random.default_rng(1)
    variances = [variance_of(*rng.normal(0, 0.02, (2, 10))) for _ in range(400)]
    assert np.mean([variance for variance, _ in variances]) == pytest.approx(2 * 0.02**2, rel=0.05)
    assert np.median([df for _, df in variances]) == pytest.approx(9 + 2 * 81 / 26)


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
    rng = np.random.default_rng(11)
    passed = 0.0
    for _ in range(trials):
        spreads = 0.005 * np.exp(0.3 * rng.standard_normal((points, 1)))
        arms = [
            spreads * rng.standard_normal((points, sessions)) + common * rng.standard_normal((1, sessions))
            for _ in range(2)
        ]
        noise = session_mean_noise(arms[0], arms[1])
        assert noise is not None
        error = np.sqrt([2 * prior.variance / sessions for prior in noise])
        reach = -special.stdtrit([prior.df for prior in noise], 0.05)
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
    assert np.median([prior.df for prior in noise]) > 8
    assert np.median([prior.variance for prior in noise]) == pytest.approx(0.005**2, rel=0.6)


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
    assert max(prior.df for prior in noise) < 2.6


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
    assert max(prior.variance for prior in noise[stalled:]) < 0.01**2
    assert min(prior.variance for prior in noise[:stalled]) > 0.1**2
    assert np.median([prior.df for prior in noise[stalled:]]) > 4


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


def compare(baseline: int, candidate: int, launches: tuple[int, int] = (40, 40), margin: float = 0.2) -> str:
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
    result = compare_counts((0, 1), (6, 6), margin=0.2, pass_level=0.05, fail_level=0.05)
    assert result.outcome == "inconclusive"
    assert compare(0, 1, (6 + result.further_launches - 1, 6 + result.further_launches - 1)) == "inconclusive"
    assert compare(0, 1, (6 + result.further_launches, 6 + result.further_launches)) == "pass"


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
    outcomes: Counter[str] = Counter()
    for _ in range(200):
        arms = [np.cumsum(rng.random(48) < share) for share in (before, after)]
        outcome = "inconclusive"
        for pairs in range(3, 49):
            seen = (int(arms[0][pairs - 1]), int(arms[1][pairs - 1]))
            at = {f"{side}_level": float(level[pairs - 1]) for side, level in levels.items()}
            outcome = compare_counts(seen, (pairs, pairs), margin=0.3, **at).outcome
            if outcome != "inconclusive":
                break
        outcomes[outcome] += 1
    assert outcomes[word] >= 200 * least


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
    result = overall_shift((-0.01 + rng.normal(0, 0.01, 40)).tolist(), [0.01] * 40)
    assert result is not None
    assert result.high < 0
    assert result.shift == pytest.approx(-0.01, abs=0.005)


def test_one_bad_point_makes_points_differ() -> None:
    result = overall_shift([0.0] * 19 + [-0.2], [0.005] * 20)
    assert result is not None
    assert result.spread > 0.03
    assert result.low < 0 < result.high


def test_the_interval_holds_the_truth() -> None:
    """In 95 of 100 sets of points, with true differences between points."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        errors = rng.uniform(0.005, 0.02, 12)
        shifts = rng.normal(0, 0.01, 12) + rng.normal(0, errors)
        result = overall_shift(shifts.tolist(), errors.tolist())
        assert result is not None
        held += result.low <= 0.0 <= result.high
    assert held / 4 >= 92.0


def test_two_points_are_no_family() -> None:
    assert overall_shift([0.0, 0.1], [0.01, 0.01]) is None
    assert overall_shift([0.0, 0.1, 0.2], [0.01, float("nan"), 0.01]) is None
