# SPDX-License-Identifier: Apache-2.0
"""The sequential test on pairs holds its error rates, whatever the noise."""

import numpy as np
import pytest

from storqual.statistics.comparison import ArmComparison, limits_for
from storqual.statistics.noise import LAUNCH_FLOOR, Prior
from storqual.statistics.pairs import Estimates, analyse_pairs, crossings, estimate, pair_levels

pytestmark = pytest.mark.slow

LIMITS = limits_for(0.03, 0.01, 0.05, "higher")
TRIALS = 400


def alone(both: np.ndarray, prior: Prior | None = None) -> Estimates:
    """Points in fours: too few to lend each other anything, so nothing is lent but by the prior."""
    parts = []
    for start in range(0, both.shape[1], 4):
        levels = pair_levels(both[0, start : start + 4], both[1, start : start + 4])
        parts.append(estimate([levels], [prior] * len(levels.plain)))
    names = ("pairs", "shift", "plain", "sd", "df", "robust")
    joined = (np.concatenate([getattr(group, name) for group in parts]) for name in names)
    return Estimates(*joined, odd=tuple(odd for group in parts for odd in group.odd))


def shares(spread: float, effect: float, *, pairs: int = 24) -> tuple[float, float, float]:
    """Percent that pass first, percent that fail first, percent of points whose every interval holds the truth."""
    rng = np.random.default_rng(17)
    both = np.exp(rng.normal(0, spread, (2, TRIALS, pairs, 1)))
    both[1] *= 1.0 + effect
    outcome = np.zeros(TRIALS)
    held = np.ones(TRIALS, dtype=bool)
    for count in range(2, pairs + 1):
        estimates = alone(both[:, :, :count])
        crossed = crossings(estimates, [LIMITS] * TRIALS)
        here = np.where(crossed.passed, 1, np.where(crossed.failed, 2, 0))
        outcome = np.where(outcome == 0, here, outcome)
        held &= np.abs(estimates.shift - np.log1p(effect)) <= crossed.aside
    return 100 * float(np.mean(outcome == 1)), 100 * float(np.mean(outcome == 2)), 100 * float(np.mean(held))


@pytest.mark.parametrize("prior", [None, Prior(LAUNCH_FLOOR**2, 20.0)], ids=["first-campaign", "quieter-history"])
def test_launches_that_repeat_to_the_last_digit_are_as_noisy_as_a_launch_can_be_told(prior: Prior | None) -> None:
    both = np.ones((2, 1, 6, 1))
    both[1] *= 0.9999
    estimates = alone(both, prior)
    assert estimates.sd == pytest.approx(np.sqrt(2) * LAUNCH_FLOOR)
    assert crossings(estimates, [LIMITS]).aside > 0


@pytest.mark.parametrize("spread", [0.005, 0.02])
def test_a_loss_of_the_margin_passes_in_five_of_a_hundred_at_most(spread: float) -> None:
    """Over all looks at which a campaign could stop. Two standard errors are allowed for."""
    passed, _, held = shares(spread, -0.03)
    assert passed <= 5.0 + 1.8
    assert held >= 95.0 - 1.8


@pytest.mark.parametrize("spread", [0.005, 0.02])
def test_a_loss_of_the_indifference_fails_in_four_of_a_hundred_at_most(spread: float) -> None:
    _, failed, held = shares(spread, -0.01)
    assert failed <= 4.0 + 1.6
    assert held >= 95.0 - 1.8


def test_an_unchanged_candidate_hardly_ever_fails() -> None:
    """One alarm in a hundred at most, before any confirmation."""
    passed, failed, _ = shares(0.02, 0.0)
    assert failed <= 1.0
    assert passed >= 95.0


def test_history_decides_sooner() -> None:
    """With the noise known the same four pairs have narrower intervals."""
    rng = np.random.default_rng(3)
    both = np.exp(rng.normal(0, 0.015, (2, 300, 4, 1)))
    widths = [crossings(alone(both, prior), [LIMITS] * 300).aside for prior in (None, Prior(2 * 0.015**2, 20.0))]
    assert np.median(widths[1]) < 0.7 * np.median(widths[0])


def test_points_lend_each_other_their_noise() -> None:
    """Nine points of four pairs each know it as well as one of many; alone their intervals are half as wide again."""
    rng = np.random.default_rng(4)
    both = np.exp(rng.normal(0, 0.003, (2, 9, 4, 1)))
    together = crossings(estimate([pair_levels(both[0], both[1])], [None] * 9), [LIMITS] * 9)
    assert np.median(together.aside) < 0.7 * np.median(crossings(alone(both), [LIMITS] * 9).aside)
    assert np.median(together.aside) < 0.015


def test_a_noisy_point_is_lent_no_quiet() -> None:
    """Eight quiet points and one ten times as noisy: its interval stays wide."""
    rng = np.random.default_rng(5)
    both = np.exp(rng.normal(0, 0.003, (2, 9, 6, 1)))
    both[:, 4] = np.exp(rng.normal(0, 0.03, (2, 6, 1)))
    estimates = estimate([pair_levels(both[0], both[1])], [None] * 9)
    assert estimates.sd[4] > 4 * np.median(estimates.sd)


def one_odd(size: float, *, arm: int = 1, spread: float = 0.003, points: int = 9) -> np.ndarray:
    """Four quiet pairs at some points; the third launch of an arm of the first point is changed as a whole."""
    both = np.exp(np.random.default_rng(7).normal(0, spread, (2, points, 4, 1)))
    both[arm, 0, 2] *= size
    return both


@pytest.mark.parametrize(("arm", "size"), [(1, 0.93), (0, 0.93), (1, 1.08)])
def test_one_odd_launch_is_left_out_and_named(arm: int, size: float) -> None:
    """A stall that takes 7 % off one launch of four neither widens the interval nor shifts it."""
    both = one_odd(size, arm=arm)
    first = analyse_pairs([pair_levels(both[0], both[1])], [LIMITS] * 9)[0]
    assert first.odd is not None
    assert (first.odd.candidate, first.odd.number) == (arm == 1, 2)
    assert (first.outcome, first.units) == ("pass", 3)
    assert abs(first.shift) < 0.006


def test_two_odd_launches_are_what_the_candidate_does() -> None:
    """Half of its launches lose 7 %: nothing is left out, and it does not pass."""
    both = one_odd(0.93)
    both[1, 0, 1] *= 0.93
    first = analyse_pairs([pair_levels(both[0], both[1])], [LIMITS] * 9)[0]
    assert first.odd is None
    assert first.outcome != "pass"


def test_an_odd_launch_that_costs_the_margin_is_no_pass() -> None:
    """Left out, three pairs agree; but the mean of all four lost 5 %."""
    both = one_odd(0.81)
    first = analyse_pairs([pair_levels(both[0], both[1])], [LIMITS] * 9)[0]
    assert first.odd is not None
    assert first.outcome == "inconclusive"


def test_one_point_in_a_hundred_has_an_odd_launch_by_chance() -> None:
    """And three pairs never have one."""
    both = np.exp(np.random.default_rng(8).normal(0, 0.01, (2, 3000, 5, 1)))
    estimates = estimate([pair_levels(both[0], both[1])], [None] * 3000)
    assert 0.2 <= 100 * np.mean([odd is not None for odd in estimates.odd]) <= 1.8
    few = estimate([pair_levels(both[0, :, :3], both[1, :, :3])], [None] * 3000)
    assert set(few.odd) == {None}


def analysed(both: np.ndarray, looks: str = "every") -> list[ArmComparison]:
    levels = pair_levels(both[0], both[1])
    return analyse_pairs([levels], [LIMITS] * both.shape[1], looks=looks)  # type: ignore[arg-type]


def test_a_single_planned_look_is_made_at_the_full_level() -> None:
    rng = np.random.default_rng(5)
    both = np.exp(rng.normal(0, 0.02, (2, 2000, 6, 1)))
    both[1] *= 0.97
    comparisons = analysed(both, "last")
    assert 3.5 <= 100 * np.mean([comparison.outcome == "pass" for comparison in comparisons]) <= 6.0
    assert {comparison.units for comparison in comparisons} <= {5, 6}


def test_the_probability_of_a_loss_agrees_with_the_decision() -> None:
    """A fail has a probability of at most alpha, anything else more."""
    rng = np.random.default_rng(6)
    both = np.exp(rng.normal(0, 0.02, (2, 200, 20, 1)))
    both[1] *= np.linspace(0.9, 1.0, 200)[:, None, None]
    for comparison in analysed(both):
        assert (comparison.loss_p <= LIMITS.alpha * (1 + 1e-9)) == (
            comparison.outcome == "fail"
        ) or comparison.outcome == "pass"


def test_a_pass_by_bounded_means_needs_the_plain_mean_inside_the_margin() -> None:
    """Launches that lose a fifth now and then: bounding alone would hide a mean loss of 4 %."""
    rng = np.random.default_rng(8)
    both = 1000.0 * (1.0 + rng.normal(0, 0.01, (2, 200, 12, 5)))
    both[1, :, ::5] *= 0.80
    comparisons = analysed(both)
    loss = np.log(both[1].mean(axis=2) / both[0].mean(axis=2))
    for comparison, ratios in zip(comparisons, loss, strict=True):
        assert comparison.outcome != "pass" or ratios.mean() > LIMITS.margin
