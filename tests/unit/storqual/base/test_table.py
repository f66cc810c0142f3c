# SPDX-License-Identifier: Apache-2.0
"""Tests of the one table: columns in a pipe, no sequence of a device on a terminal, no formula in a spreadsheet."""

import csv
import io

import pytest

from storqual.base.figures import ShownNumber
from storqual.base.table import NUMBER, Folded, LinkedCell, Table, csv_text, print_table
from tests.support.terminal import Terminal

ROWS = (
    ("PASS", LinkedCell("sym", "#p1", ("2 drives",)), ShownNumber("900")),
    ("FAIL", "\x1b[31mmpt", ShownNumber("12,345")),
)

TABLE = Table("Results", ("Outcome", "Adapter", "IOPS"), ROWS)


def test_a_pipe_gets_aligned_columns_with_numbers_at_the_right() -> None:
    out = io.StringIO()
    print_table(TABLE, out)
    assert out.getvalue().splitlines() == ["PASS  sym 2 drives     900", r"FAIL  \x1b[31mmpt   12,345"]


def test_a_terminal_gets_heads_and_no_sequence_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    print_table(TABLE, out)
    assert "\x1b[31mmpt" not in out.getvalue()
    assert all(text in out.getvalue() for text in ("Results", "Adapter", r"\x1b[31mmpt", "12,345"))


def test_a_table_without_rows_prints_nothing() -> None:
    out = Terminal()
    print_table(Table("Nothing", ("A",), ()), out)
    assert out.getvalue() == ""


def test_a_cell_of_a_spreadsheet_is_no_formula() -> None:
    table = Table(
        "", ("Name", "=1+1", "Value"), (("a;=cmd();-3", None, 1.5), ("-3", True, Folded("raw", ("a", "b"))))
    )
    rows = list(csv.reader(io.StringIO(csv_text(table))))
    assert rows == [["Name", "'=1+1", "Value"], ["a;'=cmd();-3", "", "1.5"], ["-3", "true", "a b"]]


def test_columns_of_figures_and_those_that_say_so_are_numbers() -> None:
    assert TABLE.column_styles == ("", "", NUMBER)
    assert Table("", ("A", "B"), (("x", "1"),), {"B": NUMBER}).column_styles == ("", NUMBER)
