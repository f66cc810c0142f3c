# SPDX-License-Identifier: Apache-2.0
"""Tests that the report of a fixed run stays what somebody looked at and accepted."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.golden import FOLDER, NAMES, expected_files, rendered

_MOST_LINES = 40


@pytest.mark.parametrize("name", NAMES)
def test_the_report_is_as_accepted(name: str, tmp_path: Path) -> None:
    """On a difference the new text lies beside the accepted one, and the first lines that differ are shown."""
    said = rendered(name, tmp_path)
    problems: list[str] = []
    for file in expected_files(name):
        path = FOLDER / file
        wanted = path.read_text(encoding="utf-8") if path.is_file() else ""
        got = FOLDER / f"{file}.got"
        if said[file] == wanted:
            got.unlink(missing_ok=True)
            continue
        got.write_text(said[file], encoding="utf-8")
        lines = list(
            difflib.unified_diff(wanted.splitlines(), said[file].splitlines(), file, got.name, lineterm="", n=1)
        )
        problems += [line[:300] for line in lines[:_MOST_LINES]]
        if len(lines) > _MOST_LINES:
            problems.append(f"... {len(lines) - _MOST_LINES} more lines: diff {path} {got}")
    assert not problems, "\n".join([*problems, "look at it, then accept it with: python -m tests.golden accept"])
