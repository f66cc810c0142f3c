# SPDX-License-Identifier: Apache-2.0
"""Requirements traceability: each requirement with the criteria and checks that answer it, and their results."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterator, Sequence

from storqual.report.criterion import Criterion, outcome, place_name, read_criteria
from storqual.report.documents.document import Document, Row, Section, Table
from storqual.report.material import Material
from storqual_core.kit.errors import BadInputError

_ORDER = ("FAIL", "ERROR", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")
_MOST_EVIDENCE = 3


def traceability(material: Material) -> Document:
    """The matrix of requirement, criterion, result and evidence; a requirement without a result is red.

    Raises BadInputError for a run whose suite names no requirement.
    """
    asked = dict(_asked(material))
    if not asked:
        told = "this suite has no requirements; give a criterion a `requirement`, or the suite `requirements`"
        raise BadInputError([f"{material.run.path}: {told}"])
    rows = read_criteria(material.verdict)
    listed = [row for name, patterns in asked.items() for row in _rows(material, name, patterns, rows)]
    open_ones = sorted({str(row.cells[0]) for row in listed if row.outcome is None})
    bad = sorted({str(row.cells[0]) for row in listed if row.outcome and row.outcome.word in _ORDER[:3]})
    accepted = sorted({str(row.cells[0]) for row in listed if row.outcome and row.outcome.word == "WAIVED"})
    met = len(asked) - len({*open_ones, *bad, *accepted})
    sentences = [f"{len(asked)} requirements; {met} are met."]
    if accepted:
        sentences.append(f"Not met, accepted by a waiver: {', '.join(accepted)}.")
    if bad:
        sentences.append(f"Not met or not decided: {', '.join(bad)}.")
    if open_ones:
        sentences.append(f"Without any result in this run: {', '.join(open_ones)}.")
    heads = ("Requirement", "Text", "Criterion or check", "Points", "Evidence", "Result")
    table = Table("Requirement, criterion, result and evidence", heads, tuple(listed), judged=True)
    arms = " against ".join(
        material.run.arms[arm].drop for arm in ("candidate", "baseline") if arm in material.run.arms
    )
    return Document(
        kind="Requirements traceability",
        title=arms,
        subject=(
            f"Suite {material.run.suite.name}, profile {material.run.suite.profile}; run {material.run.name}",
            f"verdict.json SHA-256 {material.verdict_sha256}",
        ),
        sections=(Section("matrix", "Requirements", tuple(sentences), table),),
        foot=f"Made by storqual from the suite and the verdict of run {material.run.name}.",
    )


def _asked(material: Material) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Requirements with the patterns of the criteria and checks that answer them, in the order of the suite."""
    suite = material.suite
    if suite is None:
        return
    named: dict[str, list[str]] = {name: list(one.checks) for name, one in suite.requirements.items()}
    for criterion in suite.criteria:
        for name in criterion.requirement:
            named.setdefault(name, []).append(criterion.name)
    yield from ((name, tuple(dict.fromkeys(patterns))) for name, patterns in named.items())


def _rows(material: Material, name: str, patterns: Sequence[str], rows: Sequence[Criterion]) -> Iterator[Row]:
    declared = material.suite.requirements.get(name) if material.suite is not None else None
    text = declared.text if declared is not None else ""
    for pattern in patterns or ("",):
        # a hand-written check's id may hold brackets, which a pattern would take for a set of letters
        literal = pattern.replace("[", "[[]")
        found = [row for row in rows if pattern and fnmatch.fnmatchcase(row.text("id"), literal)]
        judged = [row for row in found if row.outcome != "SKIPPED"]
        if not judged:
            yield Row((name, text, pattern or "not covered", "", ""), tone="fail")
            continue
        worst = min(judged, key=_severity)
        counted = Counter("WAIVED" if row.waived else row.outcome for row in judged)
        told = ", ".join(f"{number} {word}" for word, number in counted.items())
        evidence = [
            _evidence(row, list(material.run.benches)) for row in sorted(judged, key=_severity)[:_MOST_EVIDENCE]
        ]
        more = len(judged) - len(evidence)
        shown = "; ".join(evidence) + (f"; and {more} more" if more > 0 else "")
        shown_worst = outcome("WAIVED" if worst.waived else worst.outcome)
        yield Row((name, text, pattern, told, shown), tone=_tone(worst), outcome=shown_worst)


def _tone(worst: Criterion) -> str:
    return "" if worst.waived or worst.outcome not in ("FAIL", "ERROR") else worst.badge.tone


def _severity(row: Criterion) -> tuple[bool, int]:
    return row.waived, _ORDER.index(row.outcome) if row.outcome in _ORDER else 0


def _evidence(row: Criterion, benches: Sequence[str]) -> str:
    adapter = place_name(benches, row.text("bench"), row.text("adapter"))
    place = " ".join(filter(None, (adapter if row.text("adapter") else "", row.text("point"))))
    return f"{place or row.text('id')} ({row.ident} in report.html)"
