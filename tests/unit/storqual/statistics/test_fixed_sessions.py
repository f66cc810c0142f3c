# SPDX-License-Identifier: Apache-2.0
"""Points measured in the same sessions: the boot is the unit, and its launches are no second opinion."""

from __future__ import annotations

import numpy as np
import pytest

from storqual.statistics.comparison import limits_for
from storqual.statistics.sessions import ONE_SESSION, analyse_fixed_sessions

LIMITS = limits_for(0.03, 0.01, 0.05, "higher")


def arm(levels: np.ndarray) -> np.ndarray:
    """One point; log-levels have axes (session, launch)."""
    return 1000.0 * np.exp(levels)[None, :, :, None]


def test_one_boot_of_each_arm_decides_nothing_whatever_the_loss() -> None:
    launches = np.random.default_rng(1).normal(0.0, 0.001, (1, 40))
    (found,) = analyse_fixed_sessions(arm(launches), arm(launches - 0.2), [LIMITS])
    assert (found.outcome, found.missing, found.units) == ("inconclusive", ONE_SESSION, 1)
    assert found.log_shift == pytest.approx(-0.2)


def test_the_means_of_both_arms_cost_two_degrees_of_freedom() -> None:
    levels = np.random.default_rng(2).normal(0.0, 0.01, (2, 4, 1))
    (found,) = analyse_fixed_sessions(arm(levels[0]), arm(levels[1]), [LIMITS])
    assert found.df == 4 + 4 - 2
    before, after = levels.mean(axis=2)
    pooled = (before.var(ddof=1) + after.var(ddof=1)) / 2
    assert found.sd == pytest.approx(np.sqrt(pooled))


def test_sessions_that_agree_by_chance_are_no_steadier_than_the_launches_they_are_made_of() -> None:
    """The same four launches, in another order, in each of four sessions: means agree to the last digit."""
    launches = np.array([-0.06, -0.02, 0.02, 0.06])
    levels = np.stack([np.roll(launches, turn) for turn in range(4)])
    (found,) = analyse_fixed_sessions(arm(levels), arm(levels - 0.02), [LIMITS])
    within = launches.std(ddof=1) / np.sqrt(len(launches))
    assert found.sd == pytest.approx(within, rel=1e-6)
    assert found.outcome == "inconclusive"
