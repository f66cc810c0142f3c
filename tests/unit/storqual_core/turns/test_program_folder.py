# SPDX-License-Identifier: Apache-2.0
"""The unpacked bench program: whole on the disk before it has its name."""

import os
import zipfile
from pathlib import Path

import pytest

from storqual.bench.program import build_program
from storqual_core.turns.main import unpacked


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program as it was sent."""
    return build_program(tmp_path / "sent")


def sizes(folder: Path) -> dict[str, int]:
    """Each file of a folder and its bytes."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def test_it_has_its_name_when_it_is_on_the_disk(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(program) as archive:
        whole = {entry.filename: entry.file_size for entry in archive.infolist()}
    synced = []

    def sync() -> None:
        assert not program.with_suffix("").exists()
        (part,) = program.parent.glob(".core-*")
        synced.append(sizes(part))

    monkeypatch.setattr(os, "sync", sync)
    folder = unpacked(program, tmp_path)
    assert synced == [whole]
    assert sizes(folder) == whole
    assert unpacked(program, tmp_path) == folder
    assert len(synced) == 1


def test_a_power_cut_leaves_no_folder_of_that_name(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def cut() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "sync", cut)
        with pytest.raises(KeyboardInterrupt):
            unpacked(program, tmp_path)
    assert not program.with_suffix("").exists()
    assert (unpacked(program, tmp_path) / "__main__.py").stat().st_size > 0


def test_what_is_no_zip_file_runs_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("print()\n", encoding="utf-8")
    assert unpacked(script, tmp_path) == script
