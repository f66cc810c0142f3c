# SPDX-License-Identifier: Apache-2.0
"""Tests that the report of a fixed run stays what somebody looked at and accepted."""

import difflib
from pathlib import Path

import pytest

from tests.golden import FOLDER, NAMES, expected_files, rendered
from tests.golden.sheet import SHEET, sheet_html

_MOST_LINES = 40
_ACCEPT = "look at it, then accept it with: python -m tests.golden accept"


@pytest.mark.parametrize("name", NAMES)
def test_the_report_is_as_accepted(name: str, tmp_path: Path) -> None:
    said = rendered(name, tmp_path)
    problems = [line for file in expected_files(name) for line in differences(file, said[file])]
    assert not problems, "\n".join([*problems, _ACCEPT])


def test_the_bench_sheet_is_as_accepted() -> None:
    problems = differences(SHEET, sheet_html())
    assert not problems, "\n".join([*problems, _ACCEPT])


def differences(file: str, said: str) -> list[str]:
    """The first lines that differ from what was accepted; the new text is left beside it."""
    path, got = FOLDER / file, FOLDER / f"{file}.got"
    wanted = path.read_text(encoding="utf-8") if path.is_file() else ""
    if said == wanted:
        got.unlink(missing_ok=True)
        return []
    got.write_text(said, encoding="utf-8")
    lines = list(difflib.unified_diff(wanted.splitlines(), said.splitlines(), file, got.name, lineterm="", n=1))
    more = [f"... {len(lines) - _MOST_LINES} more lines: diff {path} {got}"] if len(lines) > _MOST_LINES else []
    return [line[:300] for line in lines[:_MOST_LINES]] + more
