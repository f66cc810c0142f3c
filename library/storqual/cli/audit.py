# SPDX-License-Identifier: Apache-2.0
"""`storqual audit`: recompute what reports state, from their own figures, and what a run states, from its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.audit import AuditedAssertion, Status, audit, audit_document, exit_code
from storqual.cli.options import as_json, print_json, print_rows

if TYPE_CHECKING:
    from storqual.run import Run


@click.command("audit")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Show every assertion, not only the inconsistent ones.")
@as_json
def audit_command(files: tuple[Path, ...], everything: bool, as_json: bool) -> int:
    """Recompute every derived figure and assertion of a report; exit with 1 if any is inconsistent.

    FILES are figures of published reports (suites/published/*.yml), the texts they were taken from, or run
    directories. Of a run the evidence is checked, and the verdict is recomputed from its raw files.

    \b
    Examples:
      storqual audit suites/published/*.yml
      storqual audit --all suites/published/a6826a.yml
      storqual audit --json runs/20261121T101500Z-adapter-4f2a
    """
    assertions = audit_files(files)
    if as_json:
        print_json(audit_document(assertions))
    else:
        _print(assertions, everything=everything)
    return exit_code(assertions)


def audit_files(files: Sequence[Path]) -> list[AuditedAssertion]:
    """All assertions of the files in order. Raises BadInputError with the problems of all published ones."""
    published = audit([file for file in files if not file.is_dir()])
    return [*published, *(assertion for file in files if file.is_dir() for assertion in _run_assertions(file))]


def _run_assertions(folder: Path) -> Iterator[AuditedAssertion]:
    """Whether a run is as it was planned and collected, and its verdict and exports are what its files give.

    Raises BadInputError for a directory without a verdict.
    """
    from storqual.run import read_run
    from storqual.run.evidence import evidence_findings, rules_of
    from storqual.signoff.findings import JudgedAgain, export_findings, read_judgement

    run = read_run(folder)
    stored = read_judgement(run, "verdict.json")
    # a verdict that says so itself is contradicted by nothing
    wrong = Status.NOT_CHECKABLE if stored["outcome"] == "ERROR" else Status.INCONSISTENT
    findings = evidence_findings(run)
    yield from _findings(run, "evidence", f"the run is whole, {rules_of(run)}", findings, wrong)
    again = JudgedAgain(run)
    differences = again.differences("verdict.json")
    yield from _findings(run, "verdict", "verdict.json is what the run's files give", differences)
    made = again.of_day("verdict.json", datetime.fromisoformat(str(stored["as_of"])).date())
    for number, (entry, computed) in enumerate(zip(stored["criteria"], made["criteria"], strict=False)):
        yield _criterion(run, number, entry, computed)
    yield from _findings(run, "exports", "junit.xml and ocp.jsonl say what verdict.json says", export_findings(run))


def _findings(
    run: Run, name: str, text: str, findings: Iterable[str], wrong: Status = Status.INCONSISTENT
) -> Iterator[AuditedAssertion]:
    for number, finding in enumerate([*findings] or [""]):
        status = wrong if finding else Status.CONSISTENT
        yield AuditedAssertion(f"run.{name}.{number}", run.name, None, text, None, None, "", status, finding)


def _criterion(run: Run, number: int, stored: Mapping[str, Any], made: Mapping[str, Any]) -> AuditedAssertion:
    """A criterion's shift, or its value where nothing is compared, beside what the samples give again."""
    field, unit = ("shift_percent", "%") if made["shift_percent"] is not None else ("candidate", str(made["unit"]))
    stated, computed = stored.get(field), made[field]
    status = Status.INCONSISTENT
    if stated == computed:
        status = Status.CONSISTENT
    elif isinstance(stated, int | float) and computed is not None and math.isclose(stated, computed, rel_tol=1e-6):
        status = Status.ROUNDING
    name, point = f"run.criterion_{number}", "/".join(str(made[part] or "") for part in ("bench", "adapter", "point"))
    return AuditedAssertion(name, run.name, point, f"{made['id']}: {field}", stated, computed, unit, status, "")


def _print(assertions: Sequence[AuditedAssertion], *, everything: bool) -> None:
    """The inconsistent assertions (or all) with their reasons, then how many there are of each kind."""
    print_rows(
        ("Status", "Assertion", "Page", "What it states", "Stated", "Computed", "Unit", "Why"),
        [
            (row.status, row.id, row.page, row.text, row.stated, row.computed, row.unit, row.explanation)
            for row in assertions
            if everything or row.status is Status.INCONSISTENT
        ],
        title="Assertions",
    )
    counts = Counter(assertion.status for assertion in assertions)
    summary = ", ".join(f"{counts[status]} {status.value.replace('_', ' ')}" for status in Status)
    click.echo(f"{len(assertions)} assertion{'s' * (len(assertions) != 1)}: {summary}")
