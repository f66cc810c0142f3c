# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit: rounding, conventions and misprints are told apart, and statements are held to the figures."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from storqual.audit import Status
from storqual.audit.assertion import infer_conventions, mixed_up_with, most_likely_misprint
from storqual.base.formulas import Interval, service_demand_percent_thousandths
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


def number(text: str) -> Printed:
    return Printed.parse(text)


def test_one_wrong_digit_of_the_result_is_found() -> None:
    """59.7 where the figures give 59.8."""
    wrong = comparison_of(number("51.1"), "percent_of(a, 800)", {"a": number("412")})
    misprint = most_likely_misprint(wrong, [wrong])
    assert misprint is not None
    assert (misprint.reference, misprint.intended.text) == (None, "51.5")


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


FIGURES = Path(__file__).with_suffix(".figures").read_text(encoding="utf-8")


def status(assertion: str) -> Status:
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
