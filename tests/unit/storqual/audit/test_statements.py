# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit's statements: orders, rankings, scaling, curves, bounds, names, and what cannot be checked."""

from __future__ import annotations

import pytest

from storqual.audit import Status
from tests.support.audit_reports import claims_of

FIGURES = """\
- {id: low, page: 1, what: low, value: 10}
- {id: near, page: 1, what: near, value: 10}
- {id: high, page: 1, what: high, value: 20}
- {id: other_low, page: 2, what: low there, value: 11}
- {id: other_high, page: 2, what: high there, value: 25}
- {id: word, page: 1, what: a name, value: A6826A}
- {id: wrong_word, page: 2, what: a name, value: A6828A}
- id: scaling
  page: 3
  what: throughput
  along: ports
  at: [1, 2, 3, 4, 5, 8]
  values: [191, 381, 571, 712, 710, 1026]
"""


def status(assertion: str) -> Status:
    """The status of one assertion about FIGURES."""
    return claims_of(FIGURES, f"- {{id: claim, page: 1, text: it says so, {assertion}}}\n")["claim"].status


@pytest.mark.parametrize(
    ("assertion", "expected"),
    [
        ("falling: [high, low]", Status.CONSISTENT),
        ("falling: [low, high]", Status.INCONSISTENT),
        ("falling: [low, near]", Status.ROUNDING),
        ("ranking: {there: [low, high], here: [other_low, other_high]}", Status.CONSISTENT),
        ("ranking: {there: [low, high], here: [other_high, other_low]}", Status.INCONSISTENT),
        ("stated: word, same: word", Status.CONSISTENT),
        ("stated: wrong_word, same: word", Status.INCONSISTENT),
        ("linear: {series: scaling, up_to: 3}", Status.CONSISTENT),
        ("linear: {series: scaling, up_to: 4}", Status.INCONSISTENT),
        ("linear: {series: scaling, up_to: 4, tolerance: 10%}", Status.CONSISTENT),
        ("linear: {total: 'scaling[3]', single: 'scaling[1]', units: 3}", Status.CONSISTENT),
        ("linear: {total: high, single: low, units: 2}", Status.ROUNDING),
        ("linear: {total: other_high, single: other_low, units: 3}", Status.INCONSISTENT),
        ("course: {series: scaling, over: [4, 5], is: flat}", Status.CONSISTENT),
        ("course: {series: scaling, over: [4, 5], is: falls}", Status.CONSISTENT),
        ("course: {series: scaling, over: [4, 8], is: flat}", Status.INCONSISTENT),
        ("course: {series: scaling, over: [5, 8], is: falls}", Status.INCONSISTENT),
        ("course: {series: scaling, over: [1, 2, 3], is: rises}", Status.CONSISTENT),
        ("stated: 10, relation: more_than, computed: high", Status.CONSISTENT),
        ("stated: 30, relation: more_than, computed: high", Status.INCONSISTENT),
        ("stated: 20, relation: more_than, computed: high", Status.ROUNDING),
        ("stated: 21, relation: less_than, computed: high", Status.CONSISTENT),
        ("stated: 10, relation: at_least, computed: high", Status.CONSISTENT),
        ("stated: 10, relation: at_most, computed: high", Status.INCONSISTENT),
        ("stated: 40, relation: just_over, computed: high * 7", Status.INCONSISTENT),
        ("stated: 40, relation: just_over, computed: high * 2.2", Status.CONSISTENT),
        ("stated: 5, computed: high / (low - near)", Status.NOT_CHECKABLE),
        ("not_checkable: the chart has no data", Status.NOT_CHECKABLE),
    ],
)
def test_each_statement_is_judged(assertion: str, expected: Status) -> None:
    assert status(assertion) is expected


def test_a_scaling_claim_is_answered_with_the_linear_range() -> None:
    claims = claims_of(FIGURES, "- {id: claim, page: 1, text: linear, linear: {series: scaling, up_to: 4}}\n")
    assert "It is linear up to 3. Unit 4 adds 141." in claims["claim"].explanation


def test_a_series_is_judged_cell_by_cell() -> None:
    claims = claims_of(FIGURES, "- {id: claim, page: 1, text: it rises, stated: scaling, same: scaling}\n")
    assert list(claims) == [f"claim[{label}]" for label in (1, 2, 3, 4, 5, 8)]
    assert claims["claim[8]"].text == "it rises (ports 8)"
