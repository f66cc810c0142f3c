# SPDX-License-Identifier: Apache-2.0
"""The audit: every assertion of a published report against the report's own figures."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from storqual.audit.assertion import (
    AuditedAssertion,
    CheckResult,
    Sense,
    StatedNumber,
    Status,
    comparisons,
    explain,
    hedged_manners,
    infer_conventions,
    infer_manner,
    mixed_up_with,
    most_likely_misprint,
)
from storqual.base.files import suites_folder
from storqual.base.formulas import Interval, efficiency
from storqual.inputs.expression import Reference
from storqual.inputs.figures import Figures, PrintedScope, load_published
from storqual.inputs.published import Assertion, Course, Linear, Printed, Published, Rounding, as_number, finer
from storqual.run import sha256_of
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_percent

LINEAR_TOLERANCE = Fraction(5, 100)
"""Linear is: at least 95 % of what one unit alone gives, times their number. The reports' undisputed scalings keep
within 2 % of it; the statements that the audit refutes miss it by more than 6 %."""
FLAT_TOLERANCE = Fraction(2, 100)
"""A plateau changes by at most 2 %."""

NO_RESULT = "A figure in its denominator may be zero, or the result is too large."

_ONE = Fraction(1)
_TENTH = Fraction(1, 10)


def judge_statement(assertion: Assertion, figures: Figures) -> CheckResult | None:
    """The answer to a statement; None when the assertion states a number."""
    if assertion.not_checkable is not None:
        return CheckResult(Status.NOT_CHECKABLE, _stated_text(assertion, figures), None, assertion.not_checkable)
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
        return CheckResult(Status.NOT_CHECKABLE, None, None, NO_RESULT)
    return None


def judge_name(assertion: Assertion, figures: Figures) -> CheckResult | None:
    """The answer when a name is stated twice; None when the assertion is no such thing."""
    if assertion.same is None or not isinstance(assertion.stated, Reference) or figures.labels(assertion.stated):
        return None
    here, there = figures.entry(assertion.stated), figures.entry(assertion.same)
    if not isinstance(here, str) or not isinstance(there, str):
        return None
    if here == there:
        return CheckResult(Status.CONSISTENT, here, there, "The same in both places.")
    return CheckResult(Status.INCONSISTENT, here, there, f"Elsewhere in the report it is {there}.")


def _stated_text(assertion: Assertion, figures: Figures) -> float | str | None:
    if isinstance(assertion.stated, Printed):
        return as_number(assertion.stated.value)
    if isinstance(assertion.stated, Reference):
        entry = figures.entry(assertion.stated)
        return as_number(entry.value) if isinstance(entry, Printed) else entry
    return None


def _order(references: Sequence[Reference], figures: Figures) -> CheckResult:
    numbers = [figures.number(reference) for reference in references]
    shown = " > ".join(number.text for number in numbers)
    pairs = list(itertools.pairwise(number.before(Rounding.NEAREST) for number in numbers))
    if all(higher.low > lower.high for higher, lower in pairs):
        return CheckResult(Status.CONSISTENT, None, shown, f"The figures stand in this order: {shown}.")
    if all(higher.high >= lower.low for higher, lower in pairs):
        return CheckResult(Status.ROUNDING, None, shown, f"Within the printed digits the order {shown} is possible.")
    actual = " > ".join(number.text for number in sorted(numbers, key=lambda number: -number.value))
    return CheckResult(Status.INCONSISTENT, shown, actual, f"The figures stand in another order: {actual}.")


def _ranking(there: Sequence[Reference], here: Sequence[Reference], figures: Figures) -> CheckResult:
    """Whether two places rank alike. Positions in both lists mean the same thing (the same adapter)."""
    before, now = (
        _positions([figures.number(reference).value for reference in references]) for references in (there, here)
    )
    stated, computed = (
        " > ".join(_named(references[index], figures) for index in order)
        for references, order in ((here, now), (there, before))
    )
    if before == now:
        return CheckResult(Status.CONSISTENT, stated, computed, "Both places rank alike.")
    return CheckResult(Status.INCONSISTENT, stated, computed, f"Here {stated}; elsewhere {computed}.")


def _named(reference: Reference, figures: Figures) -> str:
    return f"{figures.number(reference).text} ({figures.figure(reference).what})"


def _positions(values: Sequence[Fraction]) -> list[int]:
    return sorted(range(len(values)), key=lambda index: -values[index])


def _linear(linear: Linear, figures: Figures) -> CheckResult:
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
    share = format_percent(total / expected)
    sentence = (
        f"{finer(total, _ONE)} is {share} of {linear.units} x {finer(single, _TENTH)}"
        f" = {finer(expected, _ONE)}; linear is at least {format_percent(limit)}."
    )
    if status is Status.INCONSISTENT:
        sentence += f" Consistent would be {finer(expected * limit, _ONE)} or more."
    return CheckResult(status, "linear", float(round(total / expected, 4)), sentence)


def _linear_series(series: Reference, up_to: int | None, limit: Fraction, figures: Figures) -> CheckResult:
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
    per_unit = finer(cells[first].value / first, _ONE)
    sentence = (
        f"{cells[worst].text} at {worst} is {format_percent(exact)} of {worst} x {per_unit};"
        f" linear is at least {format_percent(limit)}."
    )
    if status is Status.INCONSISTENT:
        holds = [first, *itertools.takewhile(lambda units: shares[units].high >= limit, shares)]
        sentence += f" It is linear up to {holds[-1]}."
        if worst - 1 in cells:
            step = cells[worst].value - cells[worst - 1].value
            sentence += f" Unit {worst} adds {finer(step, _ONE)}."
    return CheckResult(status, f"linear up to {last}", float(round(exact, 4)), sentence)


def _course(course: Course, figures: Figures) -> CheckResult:
    tolerance = FLAT_TOLERANCE if course.tolerance is None else Fraction(str(course.tolerance))
    numbers = [figures.number(Reference(course.series.figure, label)) for label in course.over]
    steps = list(itertools.pairwise(number.before(Rounding.NEAREST) for number in numbers))
    shown = " to ".join(number.text for number in numbers)
    if course.direction == "flat":
        values = [later / earlier - 1 for earlier, later in steps]
        holds = all(abs(value.low) <= tolerance or abs(value.high) <= tolerance for value in values)
        status = Status.CONSISTENT if holds else Status.INCONSISTENT
        sentence = f"From {shown}; a plateau changes by at most {format_percent(tolerance)}."
        return CheckResult(status, course.direction, shown, sentence)
    rising = course.direction == "rises"
    gains = [later - earlier if rising else earlier - later for earlier, later in steps]
    if all(gain.low > 0 for gain in gains):
        status = Status.CONSISTENT
    elif all(gain.high >= 0 for gain in gains):
        status = Status.ROUNDING
    else:
        status = Status.INCONSISTENT
    opposite = "falls" if rising else "rises"
    sentence = f"From {shown} it {course.direction if status is not Status.INCONSISTENT else opposite}."
    return CheckResult(status, course.direction, shown, sentence)


def _at_least(values: Interval, limit: Fraction) -> Status:
    if values.low >= limit:
        return Status.CONSISTENT
    return Status.ROUNDING if values.high >= limit else Status.INCONSISTENT


_LARGEST_TEXT = 4 << 20


@dataclass(frozen=True)
class _Judged:
    comparison: StatedNumber
    sense: Sense


def audit_report(report: Published) -> list[AuditedAssertion]:
    figures = Figures(report.figures)
    judged = _judged(report.assertions, figures)
    every = [member.comparison for of_assertion in judged.values() for member in of_assertion]
    claims: list[AuditedAssertion] = []
    for assertion in report.assertions:
        for label, answer in _answers(assertion, figures, judged.get(assertion.id, ()), every):
            claims.append(_audited(report, assertion, label, answer, figures))
    return claims


def _judged(assertions: Sequence[Assertion], figures: Figures) -> Mapping[str, list[_Judged]]:
    stated_numbers = [comparison for assertion in assertions for comparison in comparisons(assertion, figures)]
    by_sense: dict[str, list[StatedNumber]] = defaultdict(list)
    for number in stated_numbers:
        by_sense[number.assertion.conventions or number.assertion.id].append(number)
    settled: list[_Judged] = []
    for members in by_sense.values():
        sense = infer_conventions(members)
        settled += [_Judged(member.using(sense.values), sense) for member in members]
    by_manner: dict[str, list[_Judged]] = defaultdict(list)
    for judged in settled:
        by_manner[judged.comparison.assertion.rounding or judged.comparison.assertion.id].append(judged)
    result: dict[str, list[_Judged]] = defaultdict(list)
    for group in by_manner.values():
        manner = infer_manner([judged.comparison for judged in group])
        for judged in group:
            admitted = judged.comparison.admitting([manner, *hedged_manners(judged.comparison)])
            result[admitted.assertion.id].append(_Judged(admitted, judged.sense))
    return result


def _answers(
    assertion: Assertion, figures: Figures, judged: Sequence[_Judged], every: Sequence[StatedNumber]
) -> Iterator[tuple[str | None, CheckResult]]:
    single = judge_statement(assertion, figures) or judge_name(assertion, figures)
    if single is not None:
        yield None, single
        return
    for member in judged:
        yield member.comparison.label, _compare(member, every)


def _compare(judged: _Judged, every: Sequence[StatedNumber]) -> CheckResult:
    comparison = judged.comparison
    if not comparison.computable():
        reason = NO_RESULT
        return CheckResult(Status.NOT_CHECKABLE, as_number(comparison.stated.value), None, reason)
    if comparison.agrees_exactly():
        return explain(comparison, judged.sense, Status.CONSISTENT)
    if comparison.agrees():
        return explain(comparison, judged.sense, Status.ROUNDING)
    misprint = most_likely_misprint(comparison, every)
    return explain(comparison, judged.sense, Status.INCONSISTENT, misprint, mixed_up_with(comparison))


def _labelled(assertion: Assertion, label: str, figures: Figures) -> str:
    """`ports 2`, `read`: a number needs the word of what it counts."""
    if not label.isdigit() or not isinstance(assertion.stated, Reference):
        return label
    return f"{figures.figure(assertion.stated).along} {label}"


def _audited(
    report: Published, assertion: Assertion, label: str | None, answer: CheckResult, figures: Figures
) -> AuditedAssertion:
    source = report.report
    note = f" {assertion.note}" if assertion.note else ""
    return AuditedAssertion(
        id=f"{source.name}.{assertion.id}" + (f"[{label}]" if label else ""),
        source=source.title + (f" ({source.text})" if source.text else ""),
        page=assertion.page,
        text=f"{assertion.text} ({_labelled(assertion, label, figures)})" if label else assertion.text,
        stated=answer.stated,
        computed=answer.computed,
        unit=assertion.unit,
        status=answer.status,
        explanation=answer.explanation + note,
    )


def read_report(path: Path) -> Published:
    """The figures and assertions behind `path`. Raises BadInputError when it has none that can be named.

    A published file (`*.yml`) holds them. A text is accepted when it is, byte for byte, the one that a file in
    suites/published was read from; of any other text nobody can tell mechanically which of its numbers belong
    together, so it is refused with what to do.
    """
    if path.suffix in (".yml", ".yaml"):
        return load_published(path)
    return _known_text(path)


def _known_text(path: Path) -> Published:
    digest = sha256_of(read_regular(path, _LARGEST_TEXT))
    for file in sorted((suites_folder() / "published").glob("*.yml")):
        if digest in file.read_text(encoding="utf-8"):
            return load_published(file)
    expected = (
        "a file such as suites/published/qla1040.yml, the text that one of those was read from, or a run directory"
    )
    raise BadInputError([f"{path}: found a text whose figures have no names, expected {expected}"])


def audit(files: Iterable[Path]) -> list[AuditedAssertion]:
    """Every claim of every file, in order. Raises BadInputError with the problems of all files."""
    claims: list[AuditedAssertion] = []
    problems: list[str] = []
    for file in files:
        try:
            claims += audit_report(read_report(file))
        except BadInputError as bad:
            problems += bad.problems
        except (KeyError, ValueError) as problem:
            problems.append(f"{file}: its figures and assertions do not fit together ({problem.args[0]})")
    if problems:
        raise BadInputError(problems)
    return claims


def exit_code(claims: Iterable[AuditedAssertion]) -> int:
    """1 when any claim is inconsistent, else 0."""
    return int(any(claim.status is Status.INCONSISTENT for claim in claims))
