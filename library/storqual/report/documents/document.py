# SPDX-License-Identifier: Apache-2.0
"""A document: a title, what it is about, sections of sentences and tables; rendered like the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from storqual.report.criterion import Outcome
from storqual.report.notes import NoteRow
from storqual.report.render import render_template
from storqual.report.view import Cell
from storqual.run import write_bytes
from storqual.run.turns import Part


@dataclass(frozen=True)
class Row:
    """A row of a table; `tone` colours one that a reader must not miss, `outcome` is its last cell."""

    cells: tuple[Cell, ...]
    tone: str = ""
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Table:
    """A table; with `judged` its rows end with an outcome."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    judged: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a document."""

    ident: str
    title: str
    sentences: tuple[str, ...] = ()
    table: Table | None = None
    notes: tuple[NoteRow, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole document; `outcome` stands under the title where there is one."""

    kind: str
    title: str
    subject: tuple[str, ...]
    sections: tuple[Section, ...]
    foot: str
    outcome: Outcome | None = None


def table_of(part: Part) -> Table | None:
    """The table of a part that a kind of turn gives; None where it has none."""
    shown = part.table
    return None if shown is None else Table(shown.caption, shown.heads, tuple(Row(row) for row in shown.rows))


def write_document(document: Document, target: Path) -> Path:
    """Write it as one HTML page; returns its path."""
    write_bytes(target, render_template("document.html.j2", "report.css", page=document).encode())
    return target
