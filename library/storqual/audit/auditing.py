# SPDX-License-Identifier: Apache-2.0
"""The audit: every assertion of a report against the report's own figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from storqual.audit.claim import Claim, Status
from storqual.audit.comparison import Comparison, comparisons
from storqual.audit.conventions import Sense, hedged_manners, infer_conventions, infer_manner
from storqual.audit.explaining import explain
from storqual.audit.misprint import mixed_up_with, most_likely_misprint
from storqual.audit.statements import Answer, judge_name, judge_statement
from storqual.inputs.expression import Reference
from storqual.inputs.figures import Figures
from storqual.inputs.printed import as_number
from storqual.inputs.published import Assertion, Published


@dataclass(frozen=True)
class _Judged:
    comparison: Comparison
    sense: Sense


def audit_report(report: Published) -> list[Claim]:
    """All claims of one report, in the order of its file."""
    figures = Figures(report.figures)
    judged = _judged(report.assertions, figures)
    every = [one.comparison for ones in judged.values() for one in ones]
    claims: list[Claim] = []
    for assertion in report.assertions:
        for label, answer in _answers(assertion, figures, judged.get(assertion.id, ()), every):
            claims.append(_claim(report, assertion, label, answer, figures))
    return claims


def _judged(assertions: Sequence[Assertion], figures: Figures) -> Mapping[str, list[_Judged]]:
    """Every comparison with its units and manners of rounding settled, by assertion."""
    found = [comparison for assertion in assertions for comparison in comparisons(assertion, figures)]
    by_sense: dict[str, list[Comparison]] = defaultdict(list)
    for one in found:
        by_sense[one.assertion.conventions or one.assertion.id].append(one)
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
    assertion: Assertion, figures: Figures, judged: Sequence[_Judged], every: Sequence[Comparison]
) -> Iterator[tuple[str | None, Answer]]:
    single = judge_statement(assertion, figures) or judge_name(assertion, figures)
    if single is not None:
        yield None, single
        return
    for one in judged:
        yield one.comparison.label, _compare(one, every)


def _compare(judged: _Judged, every: Sequence[Comparison]) -> Answer:
    comparison = judged.comparison
    if not comparison.computable():
        reason = "A figure that it is divided by may be zero."
        return Answer(Status.NOT_CHECKABLE, as_number(comparison.stated.value), None, reason)
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


def _claim(report: Published, assertion: Assertion, label: str | None, answer: Answer, figures: Figures) -> Claim:
    source = report.report
    note = f" {assertion.note}" if assertion.note else ""
    return Claim(
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
