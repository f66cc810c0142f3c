# SPDX-License-Identifier: Apache-2.0
"""Tests of storqual.report.svg: values find their places, ticks are numbers that people like."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.report.svg import LinearScale, LogScale, decade_ticks, nice_ceiling, nice_step, nice_ticks, power_ticks

spans = st.floats(min_value=1e-6, max_value=1e12, allow_nan=False)


def test_a_linear_scale_maps_ends_to_ends() -> None:
    scale = LinearScale(0, 10, 100, 0)
    assert [scale(0), scale(5), scale(10)] == [100, 50, 0]


def test_a_scale_without_length_puts_everything_in_the_middle() -> None:
    assert LinearScale(3, 3, 0, 10)(3) == 5


def test_equal_ratios_lie_at_equal_distances_on_a_logarithmic_scale() -> None:
    """4k, 64k and 1M are evenly apart."""
    scale = LogScale(4096, 1048576, 0, 100)
    assert scale(65536) == pytest.approx(50)


def test_zero_has_no_place_on_a_logarithmic_scale() -> None:
    with pytest.raises(ValueError, match=r"math domain error|positive input"):
        LogScale(1, 10, 0, 1)(0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)), (0, 300, (0.0, 100.0, 200.0, 300.0)), (-3, 3, (-2.0, 0.0, 2.0))],
)
def test_ticks_are_round(low: float, high: float, expected: tuple[float, ...]) -> None:
    """No 0.30000000000000004 on an axis."""
    assert nice_ticks(low, high) == expected


@given(low=st.floats(-1e9, 1e9), span=spans, count=st.integers(1, 12))
def test_ticks_stay_inside_and_are_not_too_many(low: float, span: float, count: int) -> None:
    high = low + span
    if high == low:
        return
    ticks = nice_ticks(low, high, count)
    assert len(ticks) <= count + 1
    room = (high - low) * 1e-6 + abs(low) * 1e-9
    assert all(low - room <= tick <= high + room for tick in ticks)


@given(value=spans)
def test_the_top_of_an_axis_is_not_below_its_values(value: float) -> None:
    top = nice_ceiling(value)
    assert value * (1 - 1e-6) <= top <= value * 2.01


def test_the_top_of_an_axis_without_values_is_one() -> None:
    assert [nice_ceiling(value) for value in (0, -1, math.inf, math.nan)] == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("span", [0.0, -1.0, math.inf, math.nan])
def test_no_step_fits_a_span_that_is_none(span: float) -> None:
    with pytest.raises(ValueError, match="no steps"):
        nice_step(span, 4)


def test_decades_get_marks_between_while_there_is_room() -> None:
    assert decade_ticks(1, 10, 6) == (1.0, 2.0, 5.0, 10.0)
    assert decade_ticks(1e3, 1e6, 6) == (1e3, 1e4, 1e5, 1e6)
    assert len(decade_ticks(1, 1e9, 5)) <= 5


def test_block_sizes_are_powers_of_two() -> None:
    assert power_ticks(4096, 65536) == (4096, 8192, 16384, 32768, 65536)
    assert power_ticks(512, 16 * 2**20, 6) == (512, 2**12, 2**15, 2**18, 2**21, 2**24)
