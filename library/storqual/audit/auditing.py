# SPDX-License-Identifier: Apache-2.0
"""The audit: every assertion of a report, of this project or of another, against the report's own figures."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from storqual.audit.claim import Claim, Status
from storqual.audit.comparison import Comparison, Sense, comparisons, hedged_manners, infer_conventions, infer_manner
from storqual.audit.explaining import explain, mixed_up_with, most_likely_misprint
from storqual.audit.run_directory import read_run_directory
from storqual.audit.statements import NO_RESULT, Answer, judge_name, judge_statement
from storqual.base.resources import suites_folder
from storqual.inputs.expression import Reference
from storqual.inputs.figures import Figures, load_published
from storqual.inputs.published import Assertion, Published, as_number
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError

_LARGEST_TEXT = 16 << 20


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
        reason = NO_RESULT
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


_LARGEST_TEXT = 4 << 20
_OF_A_RUN = ("verdict.json", "run.json", "report.html")


def read_report(path: Path) -> Published:
    """The figures and assertions behind `path`. Raises BadInputError when it has none that can be named.

    A published file (`*.yml`) holds them. A run directory, or its verdict.json or report.html, stands for the run.
    A text is accepted when it is, byte for byte, the one that a file in suites/published was read from; of any other
    text nobody can tell mechanically which of its numbers belong together, so it is refused with what to do.
    """
    if path.is_dir():
        return read_run_directory(path)
    if path.name in _OF_A_RUN:
        return read_run_directory(path.parent)
    if path.suffix in (".yml", ".yaml"):
        return load_published(path)
    return _known_text(path)


def _known_text(path: Path) -> Published:
    digest = hashlib.sha256(read_regular(path, _LARGEST_TEXT)).hexdigest()
    for known in sorted((suites_folder() / "published").glob("*.yml")):
        if digest in known.read_text(encoding="utf-8"):
            return load_published(known)
    wanted = (
        "a file such as suites/published/qla1040.yml, the text that one of those was read from, or a run directory"
    )
    raise BadInputError([f"{path}: found a text whose figures have no names, expected {wanted}"])


def audit(files: Iterable[Path]) -> list[Claim]:
    """Every claim of every file, in order. Raises BadInputError with the problems of all files."""
    claims: list[Claim] = []
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


def exit_code(claims: Iterable[Claim]) -> int:
    """1 when any claim is inconsistent, else 0."""
    return int(any(claim.status is Status.INCONSISTENT for claim in claims))
