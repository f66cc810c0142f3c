# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit's misprints: one changed number that explains an inconsistency, and is at odds with nothing."""

from __future__ import annotations

from storqual.audit.assertion import mixed_up_with, most_likely_misprint
from storqual.inputs.published import Printed
from tests.support.audit_reports import claims_of, comparison_of


def number(text: str) -> Printed:
    """A number as printed."""
    return Printed.parse(text)


def test_one_wrong_digit_of_the_result_is_found() -> None:
    """59.7 where the figures give 59.8."""
    wrong = comparison_of(number("51.1"), "percent_of(a, 800)", {"a": number("412")})
    found = most_likely_misprint(wrong, [wrong])
    assert found is not None
    assert (found.reference, found.meant.text) == (None, "51.5")


def test_a_wrong_input_is_found_where_the_result_is_far_off() -> None:
    """143 MB/s that must have been 41; a CPU of 213 % is no way out."""
    claims = claims_of(
        """\
        - {id: cpu, page: 1, what: CPU, value: 61, unit: "% CPU"}
        - {id: rate, page: 1, what: throughput, value: 143, unit: MB/s}
        """,
        """\
        - {id: demand, page: 1, text: demand, stated: 1.454,
           computed: "service_demand_percent_thousandths(cpu, rate, 1048576, 1024)"}
        """,
    )
    assert "143 should read 41 (throughput)" in claims["demand"].explanation


def test_a_change_that_would_break_another_claim_is_not_proposed() -> None:
    """8 = 2 x 2: the 2 that another sum needs is not the wrong one."""
    figures = """\
    - {id: cells, page: 1, what: cells, value: 2, exact: true}
    - {id: cpus, page: 1, what: CPUs a cell, value: 2, exact: true}
    - {id: memory, page: 1, what: memory a cell, value: 4, exact: true}
    - {id: all_cpus, page: 2, what: all CPUs, value: 8, exact: true}
    - {id: again, page: 3, what: all CPUs again, value: 8, exact: true}
    """
    claims = claims_of(
        figures,
        """\
        - {id: cpus, page: 1, text: CPUs, stated: all_cpus, computed: cells * cpus}
        - {id: memory, page: 1, text: memory, stated: 8, computed: cells * memory}
        - {id: again, page: 1, text: CPUs again, stated: again, same: all_cpus}
        """,
    )
    assert "2 should read 4 (CPUs a cell)" in claims["cpus"].explanation


def test_another_number_altogether_is_no_misprint() -> None:
    """51 % where it is 98 %: no digit is left of it, so nothing is proposed."""
    wrong = comparison_of(number("51"), "increase_percent(a, b)", {"a": number("521.1"), "b": number("262.6")})
    assert most_likely_misprint(wrong, [wrong]) is None


def test_a_figure_taken_from_another_place_is_named() -> None:
    """49 % comes out with the number of the other system."""
    wrong = comparison_of(
        number("49"),
        "increase_percent(quad, symbios)",
        {"quad": number("2666"), "symbios": number("1826"), "dual": number("2721")},
    )
    assert [(str(here), str(there)) for here, there in mixed_up_with(wrong)] == [("quad", "dual")]
