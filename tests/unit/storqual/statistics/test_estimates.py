# SPDX-License-Identifier: Apache-2.0
"""The individuals chart on series whose limits and signals are known."""

import math

import numpy as np
import pytest

from storqual.statistics.estimates import FEWEST, individuals


def test_limits_are_those_of_the_textbook() -> None:
    """Moving ranges 2, 2, 2, 2: a median of 2, so 3.145 times 2 on both sides of the middle value."""
    chart = individuals([10.0, 12.0, 10.0, 12.0, 10.0])
    assert chart.centre == pytest.approx(10.0)
    assert chart.limits == pytest.approx((10.0 - 6.29, 10.0 + 6.29))
    assert chart.signals == ("",) * 5


def test_too_few_values_have_no_limits() -> None:
    """A limit from two or three ranges would be a guess."""
    assert individuals([1.0] * (FEWEST - 1)).limits is None
    assert individuals([1.0] * FEWEST).limits == (1.0, 1.0)


def test_a_value_beyond_and_a_level_that_moved_are_signals() -> None:
    quiet = [0.1, -0.1] * 10
    assert individuals([*quiet, 5.0]).signals[-1] == "beyond"
    moved = individuals([*([0.0, 0.2] * 6), *([0.5, 0.7] * 6)])
    assert "shift" in moved.signals[19:]
    assert "shift" not in moved.signals[:7]


def test_one_bad_campaign_accuses_no_other() -> None:
    """It neither moves the centre nor widens the limits, so that the quiet ones before it stay quiet."""
    chart = individuals([0.1, -0.2, 0.2, -0.1, 0.1, -0.1, 0.2, -20.0])
    assert chart.signals == ("",) * 7 + ("beyond",)


def test_a_process_in_control_rarely_signals() -> None:
    """Beyond three sigma lie 0.3 % of normal values; limits that are estimated from 50 let some more through."""
    rng = np.random.default_rng(7)
    charts = [individuals(rng.normal(0, 1, 50).tolist()) for _ in range(200)]
    beyond = sum(chart.signals.count("beyond") for chart in charts) / (200 * 50)
    assert 0.0005 < beyond < 0.008


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_what_is_no_series_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        individuals(values)
