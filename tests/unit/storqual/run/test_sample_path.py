# SPDX-License-Identifier: Apache-2.0
"""The path of one sample as library/README.md tells it: its files are there, and they are few."""

from __future__ import annotations

import re
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[4] / "library"
FOLDERS = ("", "module_utils", "..")


def files() -> list[Path]:
    """The files of the section's table; a folder named in front of a list of files is theirs."""
    text = (LIBRARY / "README.md").read_text(encoding="utf-8")
    section = text.partition("## The path of one sample\n")[2].partition("\n## ")[0]
    folder, found = "", []
    for row in (line for line in section.splitlines() if line.startswith("| ") and "`" in line):
        for name in re.findall(r"`([^`]+)`", row):
            if name.endswith("/"):
                folder = name
                continue
            places = [LIBRARY / root / prefix / name for root in FOLDERS for prefix in ("", folder)]
            found.append(next((place.resolve() for place in places if place.is_file()), LIBRARY / name))
    return found


def test_a_sample_passes_at_most_25_files() -> None:
    listed = files()
    assert [path for path in listed if not path.is_file()] == []
    # the metric's own file has no name of its own in the list
    assert 20 < len(listed) == len(set(listed)) <= 25
