# SPDX-License-Identifier: Apache-2.0
"""The README's pictures by their documented command: `ci/screenshot RUN FOLDER`."""

import struct
import subprocess
from pathlib import Path

import pytest

from storqual.report import build_report
from tests.pages.browser import find_chromium

pytestmark = pytest.mark.pages

COMMAND = Path(__file__).resolve().parents[2] / "ci" / "screenshot"
SIZES = {"report": (1240, 1000), "report-dark": (1240, 1000), "report-phone": (780, 1688)}
"""Pixels; a phone has two of them for each of its own."""


def size_of(picture: Path) -> tuple[int, int]:
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine; `make test-pages` installs it")
def test_three_pictures_of_a_run(runs: dict[str, Path], tmp_path: Path) -> None:
    build_report(runs["pass"])
    made = subprocess.run(
        [COMMAND, runs["pass"], tmp_path / "pictures"], capture_output=True, text=True, check=True, timeout=300
    )
    files = [Path(line) for line in made.stdout.splitlines()]
    assert {file.stem: size_of(file) for file in files} == SIZES
    assert len({file.read_bytes() for file in files}) == len(SIZES)


def test_without_a_report_it_says_how_it_is_used(tmp_path: Path) -> None:
    """Exit code 3 and one line."""
    ended = subprocess.run([COMMAND, tmp_path], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("Usage: ci/screenshot RUN [FOLDER]")
