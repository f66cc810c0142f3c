# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit's conventions: the sense of MB, KB, time and CPU that a table was made with is found again."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.audit.assertion import infer_conventions
from storqual.base.formulas import service_demand_percent_thousandths
from tests.support.audit_reports import comparison_of, printed

MEGA, KILO = (10**6, 2**20), (1000, 1024)
DEMAND = "service_demand_percent_thousandths(cpu, rate, MB, KB)"

rows = st.lists(
    st.tuples(st.integers(2000, 9500), st.integers(2000, 9000)).map(
        lambda row: (Fraction(row[0], 100), Fraction(row[1], 10))
    ),
    min_size=8,
    max_size=10,
)


@pytest.mark.parametrize(("mb", "kb"), list(itertools.product(MEGA, KILO)))
@given(rows)
@settings(max_examples=3)
def test_the_units_of_a_table_are_found(mb: int, kb: int, rows: list[tuple[Fraction, Fraction]]) -> None:
    members = []
    for cpu, rate in rows:
        demand = service_demand_percent_thousandths(cpu, rate, mb, kb)
        members.append(comparison_of(printed(demand, 4), DEMAND, {"cpu": printed(cpu, 2), "rate": printed(rate, 1)}))
    sense = infer_conventions(members)
    assert (sense.fits, sense.members) == (len(rows), len(rows))
    assert sense.values["MB"] / sense.values["KB"] == Fraction(mb, kb)


def test_readings_that_fit_alike_are_named() -> None:
    """One coarse figure cannot tell 1000 from 1024; the answer says so."""
    sense = infer_conventions([comparison_of(printed(Fraction(5), 0), "a / KB", {"a": printed(Fraction(5000), 0)})])
    assert sense.fits == 1
    assert "so they do with KB = 1024 bytes" in sense.sentence()


def test_a_reading_that_fits_alone_is_named_with_the_next_best() -> None:
    members = [
        comparison_of(printed(value / 1024, 3), "a / KB", {"a": printed(value, 0)})
        for value in (Fraction(123456), Fraction(777777))
    ]
    assert infer_conventions(members).sentence() == (
        "With KB = 1024 bytes 2 of 2 agree, with any other reading at most 0."
    )


def test_where_nothing_fits_that_is_said() -> None:
    sense = infer_conventions([comparison_of(printed(Fraction(7), 0), "a / KB", {"a": printed(Fraction(50), 0)})])
    assert sense.sentence().startswith("No sense of its units makes it agree")


def test_without_conventions_there_is_nothing_to_say() -> None:
    assert (
        infer_conventions([comparison_of(printed(Fraction(2), 0), "a / a", {"a": printed(Fraction(2), 0)})]).words
        == ""
    )
