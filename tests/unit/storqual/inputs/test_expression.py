# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit's expressions: exact, and nothing but figures, numbers, signs and formulas gets in."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.inputs.expression import Convention, Reference, parse_expression, parse_reference
from storqual.inputs.figures import Figures, PrintedScope
from storqual.inputs.published import Figure, Printed

FIGURES = Figures(
    [
        Figure.model_construct(id="a", page=1, what="a", value=Printed.parse("12")),
        Figure.model_construct(
            id="read.ports", page=1, what="reads", along="ports", at=("1", "two ports"),
            values=(Printed.parse("10"), Printed.parse("19")),
        ),
    ]
)  # fmt: skip


def result(text: str, **conventions: int) -> Fraction:
    scope = PrintedScope(FIGURES, conventions={name: Fraction(value) for name, value in conventions.items()})
    values = parse_expression(text).evaluate(scope)
    assert values.low == values.high
    return values.low


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 2 * 3 - 1", 17),
        ("(a + 2) * 3 / 7", 6),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("read.ports[1] * 2", 20),
        ('read.ports["two ports"] / 2', Fraction(19, 2)),
        ("total(read.ports)", 29),
        ("highest(read.ports) - lowest(read.ports)", 9),
        ("count(read.ports)", 2),
        ("percent_of(a, 48)", 25),
        ("-a + 12", 0),
    ],
)
def test_an_expression_is_computed_exactly(text: str, value: Fraction) -> None:
    assert result(text) == value


def test_a_convention_is_what_the_scope_says() -> None:
    """MB over KB is 1000, 1024, or neither."""
    assert result("a * MB / KB", MB=2**20, KB=1024) == 12 * 1024
    assert list(parse_expression("a * MB / KB").leaves()) == [Reference("a"), Convention("MB"), Convention("KB")]


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "a.b(1)", "a ** 9", "[1, 2]", "a if a else a", "lambda: 1", "a[1:2]", "a[b.c]"),
        "f'{a}'",
        *("percent_of(a)", "percent_of(a, b, c)", "percent_of(part=a, whole=a)", "total(a + a)"),
        *("total(read.ports[1])", "True", "'a'", "a +"),
        "",
        "a < 2",
        "1" * 500,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_expression(text)


@given(st.text(max_size=40))
def test_no_text_does_more_than_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_expression(text)


def test_a_reference_is_one_figure() -> None:
    """`same:` and `stated:` take no arithmetic."""
    assert parse_reference("read.ports[1]") == Reference("read.ports", "1")
    with pytest.raises(ValueError, match="the name of one figure"):
        parse_reference("a + a")


@pytest.mark.parametrize("text", ["a - (a - 2)", "(a + 2) * 3", "a / (2 * 3)", "percent_of(a, 2) - 1", "-a + a"])
def test_an_expression_shown_with_numbers_means_the_same(text: str) -> None:
    shown = parse_expression(text).show(lambda reference: FIGURES.number(reference).text)
    assert "a" not in shown.replace("percent_of", "")
    assert result(shown) == result(text)
