# SPDX-License-Identifier: Apache-2.0
"""fio's logs of several jobs become one series of I/Os per second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns.derive import parse_log, per_second


def series(*logs: str, ios: list[int], runtime_s: float) -> list[float]:
    """The series of jobs with these logs and I/O counts."""
    return per_second(list(logs), jobs_ios=ios, runtime_ns=int(runtime_s * 1e9))


def test_jobs_and_directions_are_added() -> None:
    one = "1003, 2000, 0, 0, 0\n2004, 2000, 0, 0, 0\n"
    two = "999, 100, 0, 0, 0\n999, 50, 1, 0, 0\n1999, 100, 0, 0, 0\n1999, 50, 1, 0, 0\n"
    assert series(one, two, ios=[4008, 300], runtime_s=2.004) == [2150.0, 2150.0]


def test_the_open_last_interval_is_computed_from_the_totals() -> None:
    assert series("1000, 2000, 0, 0\n2000, 2000, 0, 0\n", ios=[5500], runtime_s=3.0) == [2000, 2000, 1500.0]


def test_a_job_whose_last_second_was_open_when_it_ended_is_in_the_last_second_all_the_same() -> None:
    """Jobs that end together differ in whether fio logs their last second."""
    logs = ["1000, 200, 0, 0\n2000, 200, 0, 0\n3000, 190, 0, 0\n", "1001, 200, 0, 0\n2001, 200, 0, 0\n"]
    found = series(*logs, ios=[590, 595], runtime_s=3.0)
    assert found[:2] == [400.0, 400.0]
    assert found[2] == pytest.approx(190 + 195, rel=0.01)


@given(
    st.lists(st.tuples(st.lists(st.integers(1, 500), min_size=3, max_size=3), st.booleans()), min_size=1, max_size=4)
)
def test_the_seconds_add_up_to_the_ios_of_all_jobs(jobs: list[tuple[list[int], bool]]) -> None:
    """Whichever jobs lack the entry of their last second."""
    logs = [
        "".join(f"{1000 * (number + 1)}, {rate}, 0, 0\n" for number, rate in enumerate(rates[: 2 if open_ else 3]))
        for rates, open_ in jobs
    ]
    found = series(*logs, ios=[sum(rates) for rates, _ in jobs], runtime_s=3.0)
    assert found == pytest.approx([sum(rates[number] for rates, _ in jobs) for number in range(3)])


def test_a_job_without_a_log_cannot_be_told_unless_it_did_nothing() -> None:
    one = "1000, 20, 0, 0\n2000, 20, 0, 0\n"
    assert series(one, "", ios=[40, 40], runtime_s=2.0) == []
    assert series(one, "", ios=[40, 0], runtime_s=2.0) == [20.0, 20.0]


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
