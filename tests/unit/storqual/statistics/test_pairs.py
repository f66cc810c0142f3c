# SPDX-License-Identifier: Apache-2.0
"""The sequential test on pairs holds its error rates, whatever the noise."""

from __future__ import annotations

import numpy as np
import pytest

from storqual.judge.decision import limits_for
from storqual.statistics.noise import Prior
from storqual.statistics.pairs import analyse_pairs

LIMITS = limits_for(0.03, 0.01, 0.05, "higher")
TRIALS = 1000


def shares(
    spread: float, effect: float, *, pairs: int = 40, prior: Prior | None = None
) -> tuple[float, float, float]:
    """Percent passed, percent failed, percent of intervals that hold the truth, on independent normal launches."""
    rng = np.random.default_rng(17)
    both = np.exp(rng.normal(0, spread, (2, TRIALS, pairs, 1)))
    both[1] *= 1.0 + effect
    found = analyse_pairs(both[0], both[1], LIMITS, prior=prior)
    held = np.mean([one.low <= np.log1p(effect) <= one.high for one in found])
    passed, failed = (np.mean([one.outcome == word for one in found]) for word in ("pass", "fail"))
    return 100 * float(passed), 100 * float(failed), 100 * float(held)


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.04])
def test_a_loss_of_the_margin_passes_in_five_of_a_hundred_at_most(spread: float) -> None:
    passed, _, held = shares(spread, -0.03)
    assert passed <= 5.0 + 1.2
    assert held >= 95.0


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.04])
def test_a_loss_of_the_indifference_fails_in_four_of_a_hundred_at_most(spread: float) -> None:
    _, failed, held = shares(spread, -0.01)
    assert failed <= 4.0 + 1.1
    assert held >= 95.0


def test_an_unchanged_candidate_hardly_ever_fails() -> None:
    passed, failed, _ = shares(0.03, 0.0)
    assert failed <= 0.5
    assert passed >= 95.0


def test_history_decides_sooner() -> None:
    rng = np.random.default_rng(3)
    both = np.exp(rng.normal(0, 0.015, (2, 300, 20, 1)))
    alone = analyse_pairs(both[0], both[1], LIMITS)
    known = analyse_pairs(both[0], both[1], LIMITS, prior=Prior(2 * 0.015**2, 20.0))
    assert np.mean([one.units for one in known]) < 0.9 * np.mean([one.units for one in alone])


def test_a_single_planned_look_is_made_at_the_full_level() -> None:
    rng = np.random.default_rng(5)
    both = np.exp(rng.normal(0, 0.02, (2, 2000, 6, 1)))
    both[1] *= 0.97
    found = analyse_pairs(both[0], both[1], LIMITS, looks="last")
    assert 3.5 <= 100 * np.mean([one.outcome == "pass" for one in found]) <= 6.0
    assert {one.units for one in found} == {6}


def test_the_probability_of_a_loss_agrees_with_the_decision() -> None:
    """A fail has a probability of at most alpha, anything else more."""
    rng = np.random.default_rng(6)
    both = np.exp(rng.normal(0, 0.02, (2, 200, 20, 1)))
    both[1] *= np.linspace(0.9, 1.0, 200)[:, None, None]
    for one in analyse_pairs(both[0], both[1], LIMITS):
        assert (one.loss_p <= LIMITS.alpha * (1 + 1e-9)) == (one.outcome == "fail") or one.outcome == "pass"


def test_a_pass_by_bounded_means_needs_the_plain_mean_inside_the_margin() -> None:
    """Launches that lose a fifth now and then: bounding alone would hide a mean loss of 4 %."""
    rng = np.random.default_rng(8)
    both = 1000.0 * (1.0 + rng.normal(0, 0.01, (2, 200, 12, 5)))
    both[1, :, ::5] *= 0.80
    found = analyse_pairs(both[0], both[1], LIMITS)
    loss = np.log(both[1].mean(axis=2) / both[0].mean(axis=2))
    for one, ratios in zip(found, loss, strict=True):
        assert one.outcome != "pass" or ratios[: one.units].mean() > LIMITS.margin
