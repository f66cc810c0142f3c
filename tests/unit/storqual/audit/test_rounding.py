# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit's rounding rule: rounding is never called inconsistent, and nothing else is excused by it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from storqual.audit import Status
from storqual.base.formulas import Interval
from storqual.inputs.published import Printed, Rounding, decimal_text, prints_as
from tests.support.audit_reports import claims_of, comparison_of, printed

FORMULAS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "increase_percent(a, b)": lambda a, b: a / b * 100 - 100,
    "percent_of(a, b)": lambda a, b: a / b * 100,
    "a * b": lambda a, b: a * b,
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "service_demand_us_per_kb(a, b, 1000000, 1024)": lambda a, b: a * 10_000 * 1024 / (b * 1_000_000),
    "service_demand_percent_thousandths(a, b, 1048576, 1024)": lambda a, b: a * 1000 / (b * 1024),
}

truths = st.fractions(min_value=1, max_value=100_000, max_denominator=10**6)
decimals = st.integers(0, 3)


@given(st.sampled_from(sorted(FORMULAS)), truths, truths, decimals, decimals, decimals)
@settings(max_examples=50)
def test_a_figure_computed_before_its_inputs_were_rounded_is_never_inconsistent(
    formula: str, a: Fraction, b: Fraction, of_a: int, of_b: int, of_result: int
) -> None:
    truth = FORMULAS[formula](a, b)
    inputs = {"a": printed(a, of_a), "b": printed(b, of_b)}
    assume(inputs["b"].value - inputs["b"].step / 2 > 0)
    assert comparison_of(printed(truth, of_result), formula, inputs).agrees()


@given(st.sampled_from(sorted(FORMULAS)), truths, truths, decimals, decimals, decimals, st.booleans())
@settings(max_examples=50)
def test_a_figure_computed_from_the_printed_inputs_is_consistent(
    formula: str, a: Fraction, b: Fraction, of_a: int, of_b: int, of_result: int, shown: bool
) -> None:
    inputs = {"a": printed(a, of_a), "b": printed(b, of_b)}
    assume(inputs["b"].value - inputs["b"].step / 2 > 0)
    truth = FORMULAS[formula](inputs["a"].value, inputs["b"].value)
    assert comparison_of(printed(truth, of_result), formula, inputs).agrees_exactly()


@given(
    st.sampled_from(sorted(FORMULAS)),
    truths,
    truths,
    decimals,
    decimals,
    decimals,
    st.sampled_from((-1, 1)),
    st.integers(1, 50),
)
@settings(max_examples=50)
def test_a_figure_beyond_the_rounding_of_all_inputs_is_always_inconsistent(
    formula: str, a: Fraction, b: Fraction, of_a: int, of_b: int, of_result: int, side: int, steps: int
) -> None:
    inputs = {"a": printed(a, of_a), "b": printed(b, of_b)}
    assume(inputs["b"].value - inputs["b"].step / 2 > 0)
    values = comparison_of(printed(a, of_result), formula, inputs).values(Rounding.NEAREST)
    # a little more than whole steps: printed, half a step may be lost to rounding, and half of one is what it means
    away = (steps + Fraction(1, 100)) * Fraction(1, 10**of_result)
    beyond = values.high + away if side > 0 else values.low - away
    stated = printed(beyond, of_result)
    assert not comparison_of(stated, formula, inputs).agrees()


@given(truths, decimals, st.integers(0, 3))
def test_a_figure_repeated_with_fewer_digits_is_never_inconsistent(value: Fraction, fine: int, fewer: int) -> None:
    """195.15 in a chart and 195 in the text are one figure."""
    full = printed(value, fine)
    short = printed(full.value, max(0, fine - fewer))
    for here, there in ((full, short), (short, full)):
        assert comparison_of(here, "there", {"there": there}, copy=True).agrees()


@given(truths, decimals, st.sampled_from((-1, 1)))
def test_a_figure_repeated_with_other_digits_is_inconsistent(value: Fraction, places: int, side: int) -> None:
    """364.8 and 364.9 are not one figure, however it was rounded."""
    here = printed(value, places)
    there = printed(here.value + side * here.step, places)
    copy = comparison_of(here, "there", {"there": there}, copy=True, relation="about")
    assert not copy.admitting(tuple(Rounding)).agrees()


@pytest.mark.parametrize(
    ("text", "value", "step"),
    [("69104", 69104, 1), ("0.466", Fraction(466, 1000), Fraction(1, 1000)), ("3.20e8", 320_000_000, 10**6)],
)
def test_the_last_printed_digit_is_the_step(text: str, value: Fraction, step: Fraction) -> None:
    assert Printed.parse(text) == Printed(text, Fraction(value), Fraction(step))


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "1,000"])
def test_what_is_no_number_is_refused(text: str) -> None:
    """Nothing else has digits."""
    with pytest.raises(ValueError, match="number"):
        Printed.parse(text)


@pytest.mark.parametrize(
    ("value", "text", "manner", "prints"),
    [
        ("2.7555", "2.75", Rounding.DOWN, True),
        ("2.76", "2.75", Rounding.DOWN, False),
        ("2.75", "2.75", Rounding.DOWN, True),
        ("12.2", "13", Rounding.UP, True),
        ("12", "13", Rounding.UP, False),
        ("13", "13", Rounding.UP, True),
        ("2.5", "2", Rounding.NEAREST, True),
        ("2.5", "3", Rounding.NEAREST, True),
        ("2.51", "2", Rounding.NEAREST, False),
        ("-1.29", "-1.2", Rounding.DOWN, True),
        ("-1.3", "-1.2", Rounding.DOWN, False),
        ("-1.21", "-1.3", Rounding.UP, True),
    ],
)
def test_each_manner_of_rounding_has_its_own_reach(value: str, text: str, manner: Rounding, prints: bool) -> None:
    assert prints_as(Interval.exactly(Fraction(value)), Printed.parse(text), manner) is prints


def test_an_exact_count_has_no_rounding() -> None:
    assert Printed.parse("4", exact=True).before(Rounding.NEAREST) == Interval.exactly(4)


@given(st.fractions(-1000, 1000), decimals)
def test_rounding_to_text_is_to_nearest(value: Fraction, places: int) -> None:
    step = Fraction(1, 10**places)
    assert abs(Fraction(decimal_text(value, step)) - value) <= step / 2


def two_percentages(first: int, second: int, relation: str = "is") -> dict[str, Status]:
    """The status of 2721 over 2425 and 2721 over 1765 (12.2 and 54.2 %) when these are printed."""
    group = f"relation: {relation}, rounding: together"
    claims = claims_of(
        """\
        - {id: a, page: 1, what: a, value: 2721}
        - {id: b, page: 1, what: b, value: 2425}
        - {id: c, page: 1, what: c, value: 1765}
        """,
        f"""\
        - {{id: one, page: 1, text: one, stated: {first}, computed: "increase_percent(a, b)", {group}}}
        - {{id: two, page: 1, text: two, stated: {second}, computed: "increase_percent(a, c)", {group}}}
        """,
    )
    return {name: claim.status for name, claim in claims.items()}


def test_a_manner_that_two_figures_show_is_admitted() -> None:
    """12.2 as 13 and 54.2 as 55: this author rounds up."""
    assert set(two_percentages(13, 55).values()) == {Status.ROUNDING}


def test_a_manner_that_one_figure_shows_is_not() -> None:
    """12.2 as 13 beside 54.2 as 54 is a misprint."""
    assert two_percentages(13, 54) == {"one": Status.INCONSISTENT, "two": Status.CONSISTENT}


def test_about_lets_a_figure_be_rounded_either_way() -> None:
    """Approximately 13 may be said of 12.2, and 12 of 12.2, but not 14."""
    assert two_percentages(13, 54, "about")["one"] is Status.ROUNDING
    assert two_percentages(14, 54, "about")["one"] is Status.INCONSISTENT
