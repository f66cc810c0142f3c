# SPDX-License-Identifier: Apache-2.0
"""A disk without space: one sentence, nothing half written, and everything that was there before is whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.run import append_event, create_run, iter_events, write_json
from storqual.run.layout import NoSpaceError
from storqual_core.kit.errors import BadInputError

CODES = pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return create_run(tmp_path / "runs", "r1", {"benches": {}}, inputs={}, batches=[])


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Every write fails when it has to reach the disk."""

    def fails(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.fsync", fails)


@CODES
def test_an_event_that_finds_no_space_is_told_and_happens_again_when_there_is_some(
    code: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        fill_the_disk(full, code)
        with pytest.raises(NoSpaceError, match=r"events\.jsonl: no space left on this disk") as told:
            append_event(run, "note", {"text": "one"})
    assert told.value.exit_code == 2
    # what was written and never reached the disk is cut off here, as after a power cut
    os.truncate(run / "events.jsonl", (run / "events.jsonl").stat().st_size - 1)
    append_event(run, "note", {"text": "two"})
    assert [event.kind for event in iter_events(run)] == ["planned", "note"]


@CODES
def test_a_file_that_finds_no_space_keeps_its_former_content(
    code: int, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(run / "verdict.json", {"outcome": "PASS"})
    fill_the_disk(monkeypatch, code)
    with pytest.raises(NoSpaceError, match=r"verdict\.json: no space left on this disk"):
        write_json(run / "verdict.json", {"outcome": "FAIL"})
    assert '"PASS"' in (run / "verdict.json").read_text(encoding="utf-8")
    assert not list(run.glob(".verdict*"))


@CODES
def test_a_run_for_which_there_is_no_space_is_not_begun(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_the_disk(monkeypatch, code)
    with pytest.raises(BadInputError, match="there is no space for a run on this disk") as told:
        create_run(tmp_path / "runs", "r1", {}, inputs={}, batches=[])
    assert told.value.exit_code == 3
    assert not list((tmp_path / "runs").iterdir())


@CODES
def test_any_other_file_without_space_is_one_sentence_and_no_fault_of_the_code(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def fails(*_: object, **__: object) -> object:
        raise OSError(code, os.strerror(code), "out/report.html")

    monkeypatch.setattr("storqual.cli.storqual.main", fails)
    with pytest.raises(SystemExit) as left:
        main(["report", "runs/x"])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.startswith("storqual: out/report.html: no space left on this disk; ")
    assert said.count("\n") == 1
    assert not list(tmp_path.rglob("storqual-error-*"))
