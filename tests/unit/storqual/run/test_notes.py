# SPDX-License-Identifier: Apache-2.0
"""Notes before signing: in the chain of the run, in its report, and held to their attachments."""

from pathlib import Path

import pytest

from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.run.closing import close_run
from storqual.run.notes import add_note, read_notes
from storqual.signoff.findings import run_findings
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = make_run(tmp_path, noise=0.003, points=POINTS[:1], adapters=("sym",))
    close_run(path)
    judge_run(path)
    return path


def test_a_note_is_part_of_the_run_and_of_its_report(run: Path, tmp_path: Path) -> None:
    shot = tmp_path / "scope.png"
    shot.write_bytes(b"picture")
    words = ["note", str(run), "fan tray replaced", "--by", "Mia", "--link", "https://tracker.example.com/LAB-7"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--attach", str(shot)])
    assert ended.value.code == 0
    (note,) = read_notes(run)
    assert (note.by, note.text, note.files[0].name) == ("Mia", "fan tray replaced", "scope.png")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "fan tray replaced" in page
    assert 'href="notes/0001-scope.png"' in page
    assert run_findings(run) == []


def test_an_attachment_that_was_changed_speaks_against_the_run(run: Path, tmp_path: Path) -> None:
    shot = tmp_path / "scope.png"
    shot.write_bytes(b"picture")
    note = add_note(run, "seen", "Mia", (), (shot,))
    (run / note.files[0].path).write_bytes(b"another")
    assert run_findings(run) == ["notes/0001-scope.png: is not what was attached"]
