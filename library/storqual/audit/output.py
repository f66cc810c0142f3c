# SPDX-License-Identifier: Apache-2.0
"""`storqual audit`: recompute what reports state; a table for people, JSON for programs, 1 when a report is wrong."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from storqual.audit import Claim, Status, audit
from storqual.base.text import terminal_text
from storqual.run import read_run
from storqual.run.evidence import evidence_findings, rules_of
from storqual.run.files import read_object

_STYLES = {
    Status.CONSISTENT: "green",
    Status.ROUNDING: "green",
    Status.INCONSISTENT: "bold red",
    Status.NOT_CHECKABLE: "dim",
}
_SHOWN = (Status.INCONSISTENT,)


def audit_files(files: Sequence[Path]) -> list[Claim]:
    """All claims of the files, and of runs whether they are whole. Raises BadInputError."""
    return [*audit(files), *(claim for file in files if file.is_dir() for claim in _evidence(file))]


def _evidence(folder: Path) -> Iterator[Claim]:
    """Whether the samples of a run follow from its raw files, and all of it is as it was planned and collected."""
    run = read_run(folder)
    found = evidence_findings(run)
    outcome = read_object(folder, "verdict.json").get("outcome")
    # a verdict that says so itself is contradicted by nothing
    wrong = Status.NOT_CHECKABLE if outcome == "ERROR" else Status.INCONSISTENT
    text = f"the run is whole, {rules_of(run)}"
    for number, told in enumerate(found or [""]):
        status = wrong if told else Status.CONSISTENT
        yield Claim(f"run.evidence.{number}", run.name, None, text, None, None, "", status, told)


def print_claims(claims: Sequence[Claim], *, everything: bool = False, file: TextIO | None = None) -> None:
    """The inconsistent claims (or all) with their reasons, then how many there are of each kind.

    On a terminal a table; in a pipe one line per claim: status, id, page, stated, computed, unit, explanation.
    """
    out = file or sys.stdout
    shown = [claim for claim in claims if everything or claim.status in _SHOWN]
    if out.isatty():
        _print_table(shown, out)
    else:
        for claim in shown:
            out.write("\t".join(terminal_text(cell) for cell in _cells(claim)) + "\n")
    counts = Counter(claim.status for claim in claims)
    told = ", ".join(f"{counts[status]} {status.value.replace('_', ' ')}" for status in Status)
    out.write(f"{len(claims)} assertion{'s' * (len(claims) != 1)}: {told}\n")


def _cells(claim: Claim) -> tuple[str, ...]:
    stated, computed = (_number(value) for value in (claim.stated, claim.computed))
    page = "" if claim.page is None else str(claim.page)
    return (claim.status.value, claim.id, page, claim.text, stated, computed, claim.unit, claim.explanation)


def _number(value: float | str | None) -> str:
    return "" if value is None else str(value)


def _print_table(claims: Sequence[Claim], out: TextIO) -> None:
    table = Table(show_lines=True, expand=True)
    table.add_column("assertion", ratio=2, overflow="fold")
    table.add_column("what it states, and why", ratio=5, overflow="fold")
    for claim in claims:
        status, name, page, text, stated, computed, unit, why = (terminal_text(cell) for cell in _cells(claim))
        measure = "" if unit == "-" else f" {unit}"
        place = f"page {page}" if page.isdigit() else page
        head = Text.assemble((name, "bold"), "\n", (status.replace("_", " "), _STYLES[claim.status]), f"\n{place}")
        body = Text.assemble((f"\u201c{text}\u201d", "italic"))
        if stated:
            body.append(f"\nstated {stated}{measure}" + (f", computed {computed}{measure}" if computed else ""))
        body.append(f"\n{why}")
        table.add_row(head, body)
    if claims:
        Console(file=out).print(table)
