# SPDX-License-Identifier: Apache-2.0
"""Statements without a number of their own: orders, rankings, linear scaling, and what a curve does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from storqual.audit.claim import Status
from storqual.base.formulas import Interval, efficiency
from storqual.inputs.expression import Reference
from storqual.inputs.figures import Figures, PrintedScope
from storqual.inputs.published import Assertion, Course, Linear, Printed, Rounding, as_number, finer

LINEAR_TOLERANCE = Fraction(5, 100)
"""Linear is: at least 95 % of what one unit alone gives, times their number. The reports' undisputed scalings keep
within 2 % of it; the statements that the audit refutes miss it by more than 6 %."""
FLAT_TOLERANCE = Fraction(2, 100)
"""A plateau changes by at most 2 %."""

NO_RESULT = "A figure in its denominator may be zero, or the result is too large."

_ONE = Fraction(1)
_TENTH = Fraction(1, 10)


@dataclass(frozen=True)
class Answer:
    """The outcome of one check, before it becomes a claim."""

    status: Status
    stated: float | str | None
    computed: float | str | None
    explanation: str


def judge_statement(assertion: Assertion, figures: Figures) -> Answer | None:
    """The answer to a statement; None when the assertion states a number."""
    if assertion.not_checkable is not None:
        return Answer(Status.NOT_CHECKABLE, _stated_text(assertion, figures), None, assertion.not_checkable)
    if assertion.falling is not None:
        return _order(assertion.falling, figures)
    if assertion.ranking is not None:
        return _ranking(assertion.ranking.there, assertion.ranking.here, figures)
    try:
        if assertion.linear is not None:
            return _linear(assertion.linear, figures)
        if assertion.course is not None:
            return _course(assertion.course, figures)
    except ArithmeticError:
        return Answer(Status.NOT_CHECKABLE, None, None, NO_RESULT)
    return None


def judge_name(assertion: Assertion, figures: Figures) -> Answer | None:
    """The answer when a name is stated twice; None when the assertion is no such thing."""
    if assertion.same is None or not isinstance(assertion.stated, Reference) or figures.labels(assertion.stated):
        return None
    here, there = figures.entry(assertion.stated), figures.entry(assertion.same)
    if not isinstance(here, str) or not isinstance(there, str):
        return None
    if here == there:
        return Answer(Status.CONSISTENT, here, there, "The same in both places.")
    return Answer(Status.INCONSISTENT, here, there, f"Elsewhere in the report it is {there}.")


def _stated_text(assertion: Assertion, figures: Figures) -> float | str | None:
    if isinstance(assertion.stated, Printed):
        return as_number(assertion.stated.value)
    if isinstance(assertion.stated, Reference):
        entry = figures.entry(assertion.stated)
        return as_number(entry.value) if isinstance(entry, Printed) else entry
    return None


def _order(references: Sequence[Reference], figures: Figures) -> Answer:
    numbers = [figures.number(reference) for reference in references]
    shown = " > ".join(number.text for number in numbers)
    pairs = list(itertools.pairwise(number.before(Rounding.NEAREST) for number in numbers))
    if all(higher.low > lower.high for higher, lower in pairs):
        return Answer(Status.CONSISTENT, None, shown, f"The figures stand in this order: {shown}.")
    if all(higher.high >= lower.low for higher, lower in pairs):
        return Answer(Status.ROUNDING, None, shown, f"Within the printed digits the order {shown} is possible.")
    actual = " > ".join(number.text for number in sorted(numbers, key=lambda number: -number.value))
    return Answer(Status.INCONSISTENT, shown, actual, f"The figures stand in another order: {actual}.")


def _ranking(there: Sequence[Reference], here: Sequence[Reference], figures: Figures) -> Answer:
    """Whether two places rank alike. Positions in both lists mean the same thing (the same adapter)."""
    before, now = (
        _positions([figures.number(reference).value for reference in references]) for references in (there, here)
    )
    stated, computed = (
        " > ".join(_named(references[place], figures) for place in order)
        for references, order in ((here, now), (there, before))
    )
    if before == now:
        return Answer(Status.CONSISTENT, stated, computed, "Both places rank alike.")
    return Answer(Status.INCONSISTENT, stated, computed, f"Here {stated}; elsewhere {computed}.")


def _named(reference: Reference, figures: Figures) -> str:
    return f"{figures.number(reference).text} ({figures.figure(reference).what})"


def _positions(values: Sequence[Fraction]) -> list[int]:
    return sorted(range(len(values)), key=lambda place: -values[place])


def _linear(linear: Linear, figures: Figures) -> Answer:
    tolerance = LINEAR_TOLERANCE if linear.tolerance is None else Fraction(str(linear.tolerance))
    limit = 1 - tolerance
    if linear.series is not None:
        return _linear_series(linear.series, linear.up_to, limit, figures)
    scope = PrintedScope(figures, rounding=Rounding.NEAREST)
    if linear.total is None or linear.single is None or linear.units is None:
        raise ValueError("linear without total, single and units")
    values = efficiency(linear.total.evaluate(scope), linear.single.evaluate(scope), linear.units)
    total, single = (part.evaluate(PrintedScope(figures)).low for part in (linear.total, linear.single))
    status = _at_least(values, limit)
    expected = single * linear.units
    said = (
        f"{finer(total, _ONE)} is {_percent(total / expected)} of {linear.units} x {finer(single, _TENTH)}"
        f" = {finer(expected, _ONE)}; linear is at least {_percent(limit)}."
    )
    if status is Status.INCONSISTENT:
        said += f" Consistent would be {finer(expected * limit, _ONE)} or more."
    return Answer(status, "linear", float(round(total / expected, 4)), said)


def _linear_series(series: Reference, up_to: int | None, limit: Fraction, figures: Figures) -> Answer:
    cells = {int(str(label)): cell for label, cell in figures.series(series).items() if isinstance(cell, Printed)}
    first = min(cells)
    last = up_to or max(cells)
    shares = {
        units: efficiency(cell.before(Rounding.NEAREST), cells[first].before(Rounding.NEAREST) / first, units)
        for units, cell in sorted(cells.items())
        if first < units <= last
    }
    worst = min(shares, key=lambda units: shares[units].high)
    status = _at_least(shares[worst], limit)
    exact = cells[worst].value / (cells[first].value / first * worst)
    said = (
        f"{cells[worst].text} at {worst} is {_percent(exact)} of {worst} x {finer(cells[first].value / first, _ONE)};"
        f" linear is at least {_percent(limit)}."
    )
    if status is Status.INCONSISTENT:
        holds = [first, *itertools.takewhile(lambda units: shares[units].high >= limit, shares)]
        said += f" It is linear up to {holds[-1]}."
        if worst - 1 in cells:
            step = cells[worst].value - cells[worst - 1].value
            said += f" Unit {worst} adds {finer(step, _ONE)}."
    return Answer(status, f"linear up to {last}", float(round(exact, 4)), said)


def _course(course: Course, figures: Figures) -> Answer:
    tolerance = FLAT_TOLERANCE if course.tolerance is None else Fraction(str(course.tolerance))
    numbers = [figures.number(Reference(course.series.figure, label)) for label in course.over]
    steps = list(itertools.pairwise(number.before(Rounding.NEAREST) for number in numbers))
    shown = " to ".join(number.text for number in numbers)
    if course.direction == "flat":
        values = [later / earlier - 1 for earlier, later in steps]
        holds = all(abs(value.low) <= tolerance or abs(value.high) <= tolerance for value in values)
        status = Status.CONSISTENT if holds else Status.INCONSISTENT
        said = f"From {shown}; a plateau changes by at most {_percent(tolerance)}."
        return Answer(status, course.direction, shown, said)
    rising = course.direction == "rises"
    gains = [later - earlier if rising else earlier - later for earlier, later in steps]
    if all(gain.low > 0 for gain in gains):
        status = Status.CONSISTENT
    elif all(gain.high >= 0 for gain in gains):
        status = Status.ROUNDING
    else:
        status = Status.INCONSISTENT
    opposite = "falls" if rising else "rises"
    said = f"From {shown} it {course.direction if status is not Status.INCONSISTENT else opposite}."
    return Answer(status, course.direction, shown, said)


def _at_least(values: Interval, limit: Fraction) -> Status:
    if values.low >= limit:
        return Status.CONSISTENT
    return Status.ROUNDING if values.high >= limit else Status.INCONSISTENT


def _percent(fraction: Fraction) -> str:
    return f"{finer(fraction * 100, _ONE)} %"
