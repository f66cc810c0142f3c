# SPDX-License-Identifier: Apache-2.0
"""How a figure follows from others, as a published file writes it: figures, numbers, + - * / and named formulas."""

from __future__ import annotations

import ast
import inspect
import keyword
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Protocol

from storqual.base import formulas
from storqual.base.formulas import Interval

CONVENTION_NAMES = ("MB", "KB", "TIME", "CPUS")
"""Names in capitals stand for conventions that a report does not state; the audit infers them."""


class Scope(Protocol):
    """Where an expression finds its figures and conventions."""

    def value(self, reference: Reference) -> Interval:
        """What the figure may have been before it was printed."""
        ...

    def cells(self, reference: Reference) -> list[Interval]: ...

    def convention(self, name: str) -> Fraction: ...


class Expression(Protocol):
    """Any part of a parsed expression, and the whole."""

    def evaluate(self, scope: Scope) -> Interval:
        """The interval of the result. Raises ArithmeticError: a divisor may be zero, or the result is too large."""
        ...

    def leaves(self) -> Iterator[Reference | Convention]:
        """The figures and conventions it reads, in order."""
        ...

    def show(self, printed: Callable[[Reference], str]) -> str: ...


@dataclass(frozen=True)
class Number:
    """A number of the expression itself: exact."""

    text: str

    def evaluate(self, scope: Scope) -> Interval:
        del scope
        return Interval.exactly(Fraction(self.text))

    def leaves(self) -> Iterator[Reference | Convention]:
        return iter(())

    def show(self, printed: Callable[[Reference], str]) -> str:
        del printed
        return self.text


@dataclass(frozen=True)
class Reference:
    """A figure, or one cell of a series (`read.superdome[4]`)."""

    figure: str
    cell: str | None = None

    def __str__(self) -> str:
        return self.figure if self.cell is None else f"{self.figure}[{self.cell}]"

    def evaluate(self, scope: Scope) -> Interval:
        return scope.value(self)

    def leaves(self) -> Iterator[Reference | Convention]:
        yield self

    def show(self, printed: Callable[[Reference], str]) -> str:
        return printed(self)


@dataclass(frozen=True)
class Convention:
    """A unit's name whose size is inferred."""

    name: str

    def evaluate(self, scope: Scope) -> Interval:
        return Interval.exactly(scope.convention(self.name))

    def leaves(self) -> Iterator[Reference | Convention]:
        yield self

    def show(self, printed: Callable[[Reference], str]) -> str:
        del printed
        return self.name


@dataclass(frozen=True)
class Operation:
    """Two parts and a sign between them."""

    sign: str
    left: Expression
    right: Expression

    def evaluate(self, scope: Scope) -> Interval:
        return _bounded(_OPERATIONS[self.sign](self.left.evaluate(scope), self.right.evaluate(scope)))

    def leaves(self) -> Iterator[Reference | Convention]:
        yield from self.left.leaves()
        yield from self.right.leaves()

    def show(self, printed: Callable[[Reference], str]) -> str:
        left, right = self.left.show(printed), self.right.show(printed)
        if isinstance(self.left, Operation) and self.sign in "*/" and self.left.sign in "+-":
            left = f"({left})"
        if isinstance(self.right, Operation) and (self.sign in "*/" or self.sign == "-"):
            right = f"({right})"
        return f"{left} {self.sign} {right}"


@dataclass(frozen=True)
class Formula:
    """One of the formulas that judge live runs, applied to parts."""

    name: str
    arguments: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Interval:
        return _bounded(_FORMULAS[self.name](*(argument.evaluate(scope) for argument in self.arguments)))

    def leaves(self) -> Iterator[Reference | Convention]:
        for argument in self.arguments:
            yield from argument.leaves()

    def show(self, printed: Callable[[Reference], str]) -> str:
        return f"{self.name}({', '.join(argument.show(printed) for argument in self.arguments)})"


@dataclass(frozen=True)
class OverSeries:
    """A count, sum or end of all cells of a series."""

    name: str
    series: Reference

    def evaluate(self, scope: Scope) -> Interval:
        return _OVER_SERIES[self.name](scope.cells(self.series))

    def leaves(self) -> Iterator[Reference | Convention]:
        """Nothing: the cells have no one value to change."""
        return iter(())

    def show(self, printed: Callable[[Reference], str]) -> str:
        del printed
        return f"{self.name}({self.series})"


_OPERATIONS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
_LONGEST = 400
_MOST_DIGITS = 31
_LARGEST_EXPONENT = 30
"""Of a number as it is printed: a figure of a report is neither beyond 10^30 nor below 10^-30."""
_LARGEST_RESULT = Fraction(10) ** (2 * _LARGEST_EXPONENT)
_MOST_BITS = 12_000
"""Of each part of a fraction; fewer digits than Python writes out (4300)."""
_SIGNS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_FORMULAS: Mapping[str, Callable[..., Any]] = {
    formula.__name__: formula
    for formula in (
        formulas.efficiency,
        formulas.increase_percent,
        formulas.outstanding,
        formulas.percent_of,
        formulas.service_demand_percent_thousandths,
        formulas.service_demand_us_per_kb,
        formulas.stripes_per_second,
        formulas.throughput,
    )
}
_OVER_SERIES: Mapping[str, Callable[[list[Interval]], Interval]] = {
    "count": lambda cells: Interval.exactly(len(cells)),
    "highest": lambda cells: Interval(max(c.low for c in cells), max(c.high for c in cells)),
    "lowest": lambda cells: Interval(min(c.low for c in cells), min(c.high for c in cells)),
    "total": lambda cells: sum(cells[1:], cells[0]),
}


def parse_decimal(text: str) -> Decimal:
    """Read `69104`, `0.466`, `3.20e8`. Raises ValueError for anything that is no number of a report."""
    try:
        number = Decimal(text) if text.isascii() and len(text) <= 2 * _MOST_DIGITS else None
    except InvalidOperation:
        number = None
    if number is None:
        raise ValueError(f"{text[:_MOST_DIGITS]!r} is not a number of at most {_MOST_DIGITS} digits")
    if not number.is_finite():
        raise ValueError("a finite number")
    if abs(number.adjusted()) > _LARGEST_EXPONENT or len(number.as_tuple().digits) > _MOST_DIGITS:
        raise ValueError(f"a number of at most {_MOST_DIGITS} digits with an exponent of at most {_LARGEST_EXPONENT}")
    return number


def _bounded(values: Interval) -> Interval:
    """`values`. Raises OverflowError for what no figure of a report can be, before it grows without end."""
    for end in (values.low, values.high):
        if abs(end) > _LARGEST_RESULT or max(end.numerator.bit_length(), end.denominator.bit_length()) > _MOST_BITS:
            raise OverflowError(f"a result beyond 1e{2 * _LARGEST_EXPONENT}")
    return values


def parse_expression(text: str) -> Expression:
    """Read an expression. Raises ValueError whose text says what would be right."""
    source = " ".join(text.split())
    if len(source) > _LONGEST:
        raise ValueError(f"an expression of at most {_LONGEST} characters")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("an expression of figures, numbers, + - * / and formulas") from None
    return _part(tree, source)


def parse_reference(text: str) -> Reference:
    """Read the name of a figure or of one cell of a series. Raises ValueError."""
    part = parse_expression(text)
    if not isinstance(part, Reference):
        raise ValueError("the name of one figure")  # noqa: TRY004 - pydantic gathers ValueError
    return part


def _part(node: ast.expr, source: str) -> Expression:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ValueError("numbers and names of figures only")  # noqa: TRY004 - pydantic gathers ValueError
        # the text and not the float: 0.1 is a tenth
        number = Number(ast.get_source_segment(source, node) or str(node.value))
        parse_decimal(number.text)
        return number
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return Operation(_SIGNS[type(node.op)], _part(node.left, source), _part(node.right, source))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return Operation("-", Number("0"), _part(node.operand, source))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, node.args, source)
    if isinstance(node, ast.Name) and node.id in CONVENTION_NAMES:
        return Convention(node.id)
    return _reference(node)


def _call(name: str, arguments: list[ast.expr], source: str) -> Expression:
    if name in _OVER_SERIES:
        series = _reference(arguments[0]) if len(arguments) == 1 else None
        if series is None or series.cell is not None:
            raise ValueError(f"one series in {name}()")
        return OverSeries(name, series)
    if name not in _FORMULAS:
        raise ValueError(f"one of {', '.join(sorted([*_FORMULAS, *_OVER_SERIES]))} instead of {name}()")
    try:
        inspect.signature(_FORMULAS[name]).bind(*arguments)
    except TypeError:
        wanted = ", ".join(inspect.signature(_FORMULAS[name]).parameters)
        raise ValueError(f"{name}({wanted})") from None
    return Formula(name, tuple(_part(argument, source) for argument in arguments))


def _reference(node: ast.expr) -> Reference:
    cell: str | None = None
    if isinstance(node, ast.Subscript):
        cell = _label(node.slice)
        node = node.value
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or keyword.iskeyword(node.id):
        raise ValueError("figures, numbers, + - * / and formulas only")
    return Reference(".".join([node.id, *reversed(parts)]), cell)


def _label(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
        return str(node.value)
    raise ValueError("a label in the brackets of a series; in quotes when it is more than one word")
