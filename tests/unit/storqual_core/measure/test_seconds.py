# SPDX-License-Identifier: Apache-2.0
"""fio's logs of several jobs become one series of I/Os per second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.measure.derive import parse_log, per_second


def series(*logs: str, ios: list[int], runtime_s: float) -> list[float]:
    """The series of jobs with these logs and I/O counts."""
    return per_second(list(logs), jobs_ios=ios, runtime_ns=int(runtime_s * 1e9))


def test_jobs_and_directions_are_added() -> None:
    one = "1003, 2000, 0, 0, 0\n2004, 2000, 0, 0, 0\n"
    two = "999, 100, 0, 0, 0\n999, 50, 1, 0, 0\n1999, 100, 0, 0, 0\n1999, 50, 1, 0, 0\n"
    assert series(one, two, ios=[4008, 300], runtime_s=2.004) == [2150.0, 2150.0]


def test_the_open_last_interval_is_computed_from_the_totals() -> None:
    assert series("1000, 2000, 0, 0\n2000, 2000, 0, 0\n", ios=[5500], runtime_s=3.0) == [2000, 2000, 1500.0]


def test_a_stall_is_zero_and_stays() -> None:
    assert series("1000, 10, 0, 0\n4000, 10, 0, 0\n", ios=[20], runtime_s=4.0) == [10.0, 0.0, 0.0, 10.0]


def test_a_short_run_is_its_mean() -> None:
    assert series("", ios=[750], runtime_s=1.0) == [750.0]


@pytest.mark.parametrize(
    ("logs", "ios", "runtime_s"), [([""], [1, 2], 1.0), ([""], [5], 10.0), ([], [], 1.0), (["1000, 1, 0"], [], 1.0)]
)
def test_logs_that_cannot_tell_give_no_series(logs: list[str], ios: list[int], runtime_s: float) -> None:
    assert series(*logs, ios=ios, runtime_s=runtime_s) in ([], [0.0])
    assert sum(series(*logs, ios=ios, runtime_s=runtime_s)) == 0


@given(st.text(alphabet="0123456789, -\nx", max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert all(entry[0] >= 0 and entry[1] >= 0 for entry in parse_log(text))
    assert all(value >= 0 for value in series(text, ios=[10], runtime_s=3.0))
