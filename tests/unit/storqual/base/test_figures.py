# SPDX-License-Identifier: Apache-2.0
"""Tests of storqual.base.figures: numbers are rounded honestly, and what is missing is a dash."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.base.figures import (
    DASH,
    MINUS,
    NONE,
    Scale,
    count,
    percent,
    plain,
    quantity,
    scale_for,
    seconds,
    together,
)

TIED = "\u00a0"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (12, "12"),
        (123.456, "123.5"),
        (1234567.8, "1,234,568"),
        (9.9996, "10.00"),
        (0.012345, "0.01235"),
        (-3.25, f"{MINUS}3.250"),
        (1e-7, "1.000e-07"),
    ],
)
def test_four_digits_tell_a_number(value: float, shown: str) -> None:
    assert plain(value) == shown


@given(st.floats(min_value=1e-3, max_value=1e12))
def test_rounding_moves_a_number_by_less_than_its_last_digit(value: float) -> None:
    assert float(plain(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1.234, f"{MINUS}1.23"), (0.001, "0.00"), (-0.001, "0.00"), (12.34, "+12.3"), (-12.36, f"{MINUS}12.4")],
)
def test_a_shift_has_a_sign_unless_it_rounds_to_zero(value: float, shown: str) -> None:
    assert percent(value, "x").text == f"{shown}{TIED}%"


def test_a_margin_has_no_sign_and_no_trailing_zeros() -> None:
    assert [percent(value, "x", signed=False).text for value in (3.0, 2.5)] == [f"3{TIED}%", f"2.5{TIED}%"]


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_what_is_missing_is_a_dash_and_never_zero(missing: float | None) -> None:
    for figure in (
        percent(missing, "x"),
        quantity(missing, "ns", "x"),
        seconds(missing, "x"),
        Scale("s").figure(missing, "x"),
    ):
        assert figure is NONE
    assert count(None, "x") is NONE
    assert NONE.text == DASH


def test_a_column_has_one_unit_that_fits_its_middle() -> None:
    assert scale_for("ns", [1e6, 2e6, 5e9]) == Scale("ms", 1e6)
    assert scale_for("us", [150.0]) == Scale("µs", 1)
    assert scale_for("us/IO", [150.0]) == Scale("µs/IO", 1)
    assert scale_for("1/TB", [3.0]) == Scale("1/TB")
    assert scale_for("ns", [None]) == Scale("ns", 1)


def test_a_quantity_carries_its_unit_and_what_it_was() -> None:
    figure = quantity(1_234_567, "B/s", "x")
    assert (figure.text, figure.value, figure.divisor) == (f"1.235{TIED}MB/s", 1_234_567, 1e6)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.25, "0.25 s"), (200, "3 min 20 s"), (3725, "1 h 2 min"), (59.4, "59.4 s"), (50, "50 s"), (0.5, "0.5 s")],
)
def test_times_read_as_people_say_them(value: float, shown: str) -> None:
    assert seconds(value, "x").text == shown


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"bs": 4096, "iodepth": 16}, "4 KiB, QD 16"),
        ({"direct": False, "target": "xfs"}, "buffered, XFS"),
        ({"direct": True, "target": "raw"}, "direct, drive"),
        ({"drives": 1, "ports": 2}, "1 drive, 2 ports"),
        ({"drive.WCE": 0}, "drive.WCE=0"),
    ],
    ids=["sizes", "file-system", "drive", "counts", "setting"],
)
def test_a_workload_with_its_levels_reads_as_a_person_would_say_it(levels: dict[str, object], said: str) -> None:
    assert together("reads", levels.items()) == f"reads, {said}"
