# SPDX-License-Identifier: Apache-2.0
"""Open loop: what arrived, and whether it was issued."""

from typing import Any

import pytest

from storqual_core.turns.derive import arrived_of
from storqual_core.turns.fio_job import FioAsk, read_ask
from storqual_core.turns.fio_result import FioResult
from storqual_core.turns.launch import arrivals, arrivals_per_s


def ask(**options: Any) -> FioAsk:
    """A launch at 1000 I/Os per second and job."""
    problems: list[str] = []
    entry = {"rw": "randread", "bs": 4096, "runtime_s": 10.0, "numjobs": 2, "options": {"rate_iops": 1000, **options}}
    read = read_ask(entry, "fio", problems)
    assert read is not None, problems
    return read


def ran(ios: int, status: str = "ok") -> FioResult:
    return FioResult(status, "", {"runtime_ns": 10_000_000_000}, jobs_ios=(ios,))


def test_a_closed_loop_has_no_arrivals() -> None:
    """A rate alone is no open loop: fio's default holds the next I/O back."""
    assert arrivals_per_s(ask(), 2) is None
    assert (arrived_of(None, ran(40_000)), arrivals(None, ran(40_000))) == ({}, [])


@pytest.mark.parametrize(("ios", "doubtful"), [(40_000, False), (39_200, False), (38_900, True), (20_000, True)])
def test_arrivals_that_were_not_issued_put_the_sample_in_doubt(ios: int, doubtful: bool) -> None:
    """Two jobs on two drives: 40,000 arrivals; one percent and the spread of a Poisson count are no shortfall."""
    per_s = arrivals_per_s(ask(rate_process="poisson"), 2)
    doubts = arrivals(per_s, ran(ios))
    assert arrived_of(per_s, ran(ios)) == {"open_loop": 1, "asked_ios": 40_000}
    assert bool(doubts) is doubtful
    assert all("closed in part" in doubt for doubt in doubts)


def test_what_went_wrong_anyway_is_not_doubted_again() -> None:
    """Its status says so."""
    assert arrivals(arrivals_per_s(ask(rate_process="poisson"), 2), ran(10, "killed")) == []
