# SPDX-License-Identifier: Apache-2.0
"""Rows for people: a table on a terminal, aligned words that `grep` and `awk` can read in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from storqual.text_safety import terminal_text

__all__ = ["print_pairs", "print_rows"]


def print_rows(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print `rows`; `heads` are shown on a terminal only. Texts of devices are made safe and never read as markup."""
    cells = [[terminal_text("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        return
    if sys.stdout.isatty():
        _print_table(heads, cells)
        return
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names with their values, one a line; the same on a terminal and in a pipe."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{terminal_text(name).ljust(width)}  {terminal_text(str(value))}".rstrip())


def _print_table(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in cells:
        # Text, not str: a drive called "[bold]" must stay that
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)
