# SPDX-License-Identifier: Apache-2.0
"""Tables: one model for pages, documents, exports and terminals; a cell's text is made safe for where it is shown."""

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TextIO

from storqual.base.figures import ShownNumber
from storqual.base.text import OUTCOME_COLOURS, csv_cell, terminal_text, with_minus

_WORD = 18
"""Characters of the outcome of a paragraph, at most: `INCONCLUSIVE` and its symbol, and more in a second line."""
NUMBER = "n"
"""The style of a column whose cells end at the right."""


@dataclass(frozen=True)
class LinkedCell:
    """A cell with more than one thing in it: where it leads, and what stands below it in small type."""

    content: object
    href: str = ""
    notes: tuple[object, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, map(str, (self.content, *self.notes))))


@dataclass(frozen=True)
class Folded:
    """A cell whose lines are shown on request."""

    summary: object
    lines: tuple[object, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.lines))


@dataclass(frozen=True)
class Table:
    """Column heads, and rows whose first cell names the row; a cell that is a tuple has several lines.

    `styles` are classes of columns by head, of pages and for alignment; a column that begins with a figure is one of
    numbers by itself. `tones` are classes of rows by number, `widths` the most characters of columns on a terminal,
    `label` names it to who cannot see it, where the caption does not.
    """

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    styles: Mapping[str, str] = field(default_factory=dict)
    tones: Mapping[int, str] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    label: str = ""

    @property
    def column_styles(self) -> tuple[str, ...]:
        first = self.rows[0] if self.rows else ()
        numbers = [NUMBER if isinstance(cell, ShownNumber) and at else "" for at, cell in enumerate(first)]
        return tuple(self.styles.get(head, own) for head, own in zip(self.heads, numbers, strict=False))


def csv_text(table: Table) -> str:
    """The rows under their heads, for spreadsheets: no cell is run as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([csv_cell(head) for head in table.heads])
    writer.writerows([csv_cell(cell) for cell in row] for row in table.rows)
    return out.getvalue()


def print_table(table: Table, file: TextIO | None = None) -> None:
    """On a terminal a table under its caption; in a pipe aligned columns that `grep` and `awk` can read.

    A cell that begins with an outcome has the outcome's colour. Nothing is printed for a table without rows.
    """
    out = file or sys.stdout
    rows = [[terminal_text("" if cell is None else str(cell)) for cell in row] for row in table.rows]
    if not rows:
        return
    if out.isatty():
        _print_rich(table, [[with_minus(cell) for cell in row] for row in rows], out)
        return
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if style == NUMBER else cell.ljust(width)
            for cell, width, style in zip(row, widths, table.column_styles, strict=True)
        )
        out.write("  ".join(cells).rstrip() + "\n")


def _print_rich(table: Table, rows: Sequence[Sequence[str]], out: TextIO) -> None:
    from rich import box  # noqa: PLC0415 - a pipe does not pay for colours
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=out, highlight=False)
    if table.caption:
        # a line of its own: the title of a rich table is broken to the table's width
        console.print(Text(terminal_text(table.caption), style="bold"), soft_wrap=True)
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for head, style in zip(table.heads, table.column_styles, strict=True):
        justify: Literal["left", "right"] = "right" if style == NUMBER else "left"
        shown.add_column(head, overflow="fold", justify=justify, max_width=table.widths.get(head))
    for row in rows:
        # Text, not str: a drive called "[bold]" must stay that
        shown.add_row(*(Text(cell, style=_colour(cell)) for cell in row))
    console.print(shown)


def fits(table: Table, out: TextIO) -> bool:
    """Whether each row stands on a line of the terminal, but for columns with a width; any pipe is wide."""
    if not out.isatty():
        return True
    from rich.console import Console  # noqa: PLC0415 - as above

    columns = zip(table.heads, *table.rows, strict=True)
    widths = (min(max(len(str(cell)) for cell in column), table.widths.get(column[0], 1 << 30)) for column in columns)
    return sum(widths) + 2 * (len(table.heads) - 1) <= Console(file=out).width


def print_paragraphs(paragraphs: Sequence[tuple[str, str, str]], out: TextIO) -> None:
    """On a terminal a word in its outcome's colour, a text beside it, and a second text below that one."""
    from rich.console import Console  # noqa: PLC0415 - as above
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(max_width=_WORD)
    grid.add_column(overflow="fold")
    for word, text, below in paragraphs:
        shown = [Text(with_minus(terminal_text(part))) for part in (text, below) if part]
        grid.add_row(Text(terminal_text(word), style=_colour(word)), Text("\n").join(shown))
    Console(file=out, highlight=False).print(Padding(grid, (1, 0)))


def _colour(text: str) -> str:
    """That of the outcome with which a text begins, with or without its symbol."""
    return next((OUTCOME_COLOURS[word] for word in text.split()[:2] if word in OUTCOME_COLOURS), "")


def print_lines(lines: Sequence[str], out: TextIO) -> None:
    """Lines below a table; on a terminal a line that begins with an outcome has that outcome in its colour."""
    if not out.isatty():
        out.writelines(f"{line}\n" for line in lines)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=out, highlight=False)
    for line in lines:
        word, colon, rest = line.partition(":")
        console.print(Text.assemble((word, OUTCOME_COLOURS.get(word, "")), colon, rest), soft_wrap=True)
