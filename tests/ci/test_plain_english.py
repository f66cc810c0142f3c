# SPDX-License-Identifier: Apache-2.0
"""The check for private phrases: it finds them in pages, messages and help texts, and not in code."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "ci" / "plain_english"


def look(name: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "# Title\n\nA bench goes to\nand fro.\n", 3),
        ("code.py", '"""A module."""\n\nMESSAGE = "the bench can go to and fro"\n', 3),
        ("code.py", 'MESSAGE = f"{1} is In Doubt"\n', 1),
        ("code.py", '@click.command()\ndef go_command():\n    """Go to and fro."""\n', 3),
        ("page.html.j2", "<p>Compares with none</p>", 1),
    ],
)
def test_a_private_phrase_is_found_with_its_line_and_what_to_say(
    name: str, text: str, line: int, tmp_path: Path
) -> None:
    done = look(name, text, tmp_path)
    assert done.returncode == 1
    assert f"{name}:{line}: " in done.stdout
    assert ": say " in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "The bench can switch back and forth, undoubtedly.\n"),
        ("code.py", '"""Docstrings of code are for developers: to and fro."""\nto_and_fro = 1  # to and fro\n'),
    ],
)
def test_what_nobody_reads_as_text_is_left_alone(name: str, text: str, tmp_path: Path) -> None:
    done = look(name, text, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
