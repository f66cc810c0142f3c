# SPDX-License-Identifier: Apache-2.0
"""Rows for people: a table on a terminal, aligned words that `grep` and `awk` can read in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import click

from storqual.base.text import OUTCOME_COLOURS, terminal_text, with_minus


def on_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def print_rows(
    heads: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "", numbers: Collection[str] = ()
) -> None:
    """Print `rows`; `title`, `heads` and true minus signs are for a terminal, columns in `numbers` end at the right.

    Texts of devices are made safe and never read as markup; a cell that is an outcome has the outcome's colour.
    """
    cells = [[terminal_text("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        return
    if on_terminal():
        _print_table(terminal_text(title), heads, [[with_minus(cell) for cell in row] for row in cells], numbers)
        return
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    for row in cells:
        click.echo(
            "  ".join(
                cell.rjust(width) if head in numbers else cell.ljust(width)
                for cell, width, head in zip(row, widths, heads, strict=True)
            ).rstrip()
        )


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names with their values, one a line; the same on a terminal and in a pipe."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{terminal_text(name).ljust(width)}  {terminal_text(str(value))}".rstrip())


def _print_table(title: str, heads: Sequence[str], cells: Sequence[Sequence[str]], numbers: Collection[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if title:
        # a line of its own: the title of a rich table is broken to the table's width
        console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", justify="right" if head in numbers else "left")
    for row in cells:
        # Text, not str: a drive called "[bold]" must stay that
        table.add_row(*(Text(cell, style=OUTCOME_COLOURS.get(cell, "")) for cell in row))
    console.print(table)
