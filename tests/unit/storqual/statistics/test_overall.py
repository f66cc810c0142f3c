# SPDX-License-Identifier: Apache-2.0
"""The shift of all points together."""

from __future__ import annotations

import numpy as np
import pytest

from storqual.statistics.overall import overall_shift


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
