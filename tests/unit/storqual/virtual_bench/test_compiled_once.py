# SPDX-License-Identifier: Apache-2.0
"""What the bench guest keeps of the modules that it imports from archives."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from storqual.virtual_bench import image

FOLDER = Path(image.__file__).parent / "recipe/tree/usr/lib/python3/dist-packages"
PROGRAM = """
import sys
import compiled_once
compiled_once._FOLDER = sys.argv[1]
compile_source = compiled_once._compile
def told(pathname, source):
    print("compiled")
    return compile_source(pathname, source)
compiled_once._compile = told
sys.path.insert(0, sys.argv[2])
import told_value
print(told_value.VALUE)
"""


def imported(kept: Path, archive: Path) -> list[str]:
    """Import the archive's module in an interpreter of its own; what it printed."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(kept), str(archive)],
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.split()


def archive_with(path: Path, source: str) -> Path:
    """An archive with one module."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("told_value.py", source)
    return path


def test_source_is_compiled_once_and_again_when_it_changed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = archive_with(tmp_path / "first.zip", "VALUE = 1\n")
    assert imported(kept, first) == ["compiled", "1"]
    assert imported(kept, first) == ["1"]
    assert imported(kept, archive_with(tmp_path / "second.zip", "VALUE = 2\n")) == ["compiled", "2"]


def test_what_was_cut_short_is_compiled_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    archive = archive_with(tmp_path / "some.zip", "VALUE = 3\n")
    imported(kept, archive)
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:5])
    assert imported(kept, archive) == ["compiled", "3"]


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert imported(blocked / "kept", archive_with(tmp_path / "some.zip", "VALUE = 4\n"))[-1] == "4"
