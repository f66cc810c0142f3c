# SPDX-License-Identifier: Apache-2.0
"""A summary for a customer: what was tested against what, what was found, what was not; no serial, host or path.

Only what is chosen here gets onto the page: aliases, models, drivers, drops, workloads and numbers. Names of benches,
inventories, runs and people are not among it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from storqual.report.change import once_each
from storqual.report.criterion import Criterion, outcome, read_criteria
from storqual.report.documents.document import Document, Row, Section, Table, table_of
from storqual.report.figures import minute
from storqual.report.links import Links, Sites
from storqual.report.material import Material, measure
from storqual.report.parts.arms import identities
from storqual.report.parts.changes import Change, changes_of, compared_of
from storqual.report.parts.first_screen import BENCH_KINDS, limits_of
from storqual.report.parts.sentence import sentence_for
from storqual.report.parts.untested import untested
from storqual.run.turns import turns_of

_MOST_CHANGES = 8
_NO_LINKS = Links(Sites({}, {}, frozenset()), None)


def customer_summary(material: Material) -> Document:
    """Two pages at most on paper; numbers are those of the verdict."""
    rows = read_criteria(material.verdict)
    required = [row for row in rows if row.required]
    drops = {name: arm.drop for name, arm in material.run.arms.items()}
    measured = [_tested(material, required), _changes(rows)] if material.points else []
    turns = [
        Section(f"turns-{number}", part.title, part.sentences, table_of(part))
        for number, part in enumerate(turns_of(material.run).summary(), start=1)
    ]
    sections = [
        Section("result", "Result", tuple(_result(material, rows, drops))),
        Section("adapters", "Adapters", (), _adapters(material)),
        *measured,
        *turns,
        Section(
            "untested",
            "What was not tested",
            tuple(f"{one.name}: {''.join(map(str, one.values))}." for one in untested(material, required, [])),
        ),
    ]
    return Document(
        kind="Qualification summary",
        title=" against ".join(drops[arm] for arm in ("candidate", "baseline") if arm in drops),
        subject=(f"Measured {minute(material.document.get('created'))}",),
        sections=tuple(sections),
        foot=f"Made by storqual; SHA-256 of the verdict: {material.verdict_sha256}.",
        outcome=outcome(str(material.verdict.get("outcome"))),
    )


def _changes(rows: tuple[Criterion, ...]) -> Section:
    """The largest changes for better and worse."""
    # without benches a place is its adapter alone
    changes = changes_of(rows, [], _NO_LINKS)
    none = ("No change is shown: the 95 % interval of every measurement includes zero.",)
    return Section(
        "changes",
        "What changed",
        () if changes.worse or changes.better else none,
        Table(
            "Changes that are shown, the largest first",
            ("Change", "Where", "Result"),
            tuple(_change(one) for one in (*changes.worse[:_MOST_CHANGES], *changes.better[:_MOST_CHANGES])),
            judged=True,
        ),
    )


def _result(material: Material, rows: tuple[Criterion, ...], drops: dict[str, str]) -> Iterator[str]:
    for kind in sorted({str(bench.get("kind") or "hardware") for bench in material.run.benches.values()}):
        name, meaning = BENCH_KINDS.get(kind, (kind, ""))
        if meaning:
            yield f"{name}: {meaning}"
    told = "".join(map(str, sentence_for(material.verdict, rows, drops)))
    reason = str(material.verdict.get("reason") or "").rstrip(".")
    # the judge's own reason may name a bench or a file where a run is not valid
    undecided = material.verdict.get("outcome") in ("ERROR", "INCONCLUSIVE")
    quoted = undecided and bool(reason) and reason.casefold() in told.casefold()
    yield "The campaign could not be judged as it was planned." if quoted else told
    waived = once_each([row for row in rows if row.required and row.waived])
    if waived:
        yield f"{len(waived)} failures were accepted by a named person for a limited time."


def _tested(material: Material, required: list[Criterion]) -> Section:
    """What was measured, and by which limits it was judged."""
    workloads = Counter(key[2].partition("[")[0] for key in material.points)
    told = ", ".join(f"{name} ({number} point{'' if number == 1 else 's'})" for name, number in workloads.items())
    limits = [
        f"{one.metrics}: a loss up to {one.acceptable} is acceptable, one of {one.unacceptable} must be excluded."
        for one in limits_of(compared_of(required))
    ]
    metrics = dict.fromkeys(measure(row.text("metric")).label for row in required if row.text("metric"))
    return Section("tested", "What was tested", (f"Workloads: {told}.", *limits, f"Required: {', '.join(metrics)}."))


def _adapters(material: Material) -> Table:
    rows = {Row((one.alias, one.model, one.driver, one.baseline, one.candidate), "") for one in identities(material)}
    return Table(
        "Adapters and their drivers in both arms",
        ("Adapter", "Model", "Driver", "Baseline", "Candidate"),
        tuple(sorted(rows, key=lambda row: str(row.cells[0]))),
    )


def _change(change: Change) -> Row:
    return Row((change.words, change.where), outcome=change.outcome)
