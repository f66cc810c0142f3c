# SPDX-License-Identifier: Apache-2.0
"""The one lock of a run: who waited for it looks again, and who holds a folder open holds that folder."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.run import append_event, is_signed, read_run, write_json
from storqual.run.layout import locked, opened
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS

SIGNATURE = "signoff.release-manager.json"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path, points=POINTS[:1], adapters=("sym",))


def refused_after_waiting(run: Path, meanwhile: Callable[[], object]) -> str:
    """What somebody is told who waited for the lock while `meanwhile` happened under it."""
    said: list[str] = []
    begun = threading.Event()

    def write() -> None:
        begun.set()
        try:
            append_event(run, "note", {"text": "late"})
        except BadInputError as problem:
            said.append(str(problem))

    writer = threading.Thread(target=write)
    with locked(run):
        writer.start()
        begun.wait()
        meanwhile()
    writer.join()
    return "".join(said)


def test_who_waited_for_a_run_that_was_signed_writes_nothing(run: Path) -> None:
    before = (run / "events.jsonl").read_bytes()
    assert "this run is signed" in refused_after_waiting(run, (run / SIGNATURE).touch)
    assert (run / "events.jsonl").read_bytes() == before


def test_who_waited_for_a_folder_that_is_another_now_writes_nothing(run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(run, tmp_path / "other"))

    def exchange() -> None:
        run.rename(tmp_path / "gone")
        other.rename(run)

    before = (run / "events.jsonl").read_bytes()
    said = refused_after_waiting(run, exchange)
    # the writer may have come before or after the exchange; what it wrote it wrote to the folder that it held
    changed = (run / "events.jsonl").read_bytes() != before
    assert changed == (said == "")
    assert (tmp_path / "gone" / "events.jsonl").read_bytes() == before


def test_a_thread_that_holds_a_run_may_take_it_again(run: Path) -> None:
    with locked(run) as folder, locked(run) as again, locked(folder):
        append_event(again, "note", {"text": "inside"})
    append_event(run, "note", {"text": "outside"})
    assert [event.text("text") for event in read_run(run).events][-2:] == ["inside", "outside"]


def test_a_signature_made_under_the_lock_is_seen_by_the_same_thread(run: Path) -> None:
    with locked(run):
        (run / SIGNATURE).touch()
        with pytest.raises(BadInputError, match="this run is signed"):
            append_event(run, "note", {"text": "late"})


def test_an_open_folder_stays_the_one_that_was_opened_and_is_named_as_it_was_asked_for(run: Path) -> None:
    with opened(run) as folder:
        moved = run.rename(run.with_name("moved"))
        run.mkdir()
        assert read_run(folder).document["run"] == json.loads((moved / "run.json").read_text())["run"]
        (moved / "run.json").unlink()
    with pytest.raises(BadInputError) as caught, opened(moved) as folder:
        read_run(folder)
    assert str(caught.value).startswith(f"{moved}/run.json: ")
    assert caught.value.problems[0].startswith(f"{moved}/run.json: ")


@pytest.mark.parametrize("name", ["signoff-x.json", "signoff.manifest.json", SIGNATURE, "signoff.x.statement.json"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("run.json")])
def test_only_a_file_is_a_signature(name: str, make: Callable[[Path], object], run: Path) -> None:
    make(run / name)
    assert not is_signed(run)
    append_event(run, "note", {"text": "still measured"})


@pytest.mark.parametrize("name", ["suite", "gate", "baseline"])
@pytest.mark.parametrize("place", ["absolute", "above", "link"])
def test_an_input_outside_of_a_run_is_not_opened(
    name: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, points=POINTS[:1], adapters=("sym",), gate="name: lab\n")
    secret = tmp_path / "secret.yml"
    secret.write_text("root: top-secret-word\n", encoding="utf-8")
    named = {"absolute": str(secret), "above": "inputs/../../secret.yml", "link": "inputs/link.yml"}[place]
    if place == "link":
        (run / "inputs" / "link.yml").symlink_to(secret)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    document["inputs"][name]["file"] = named
    write_json(run / "run.json", document)
    with pytest.raises(SystemExit) as ended:
        main(["judge", str(run)])
    # a link is odd wherever it lies in a run, and judged is nothing beside it
    assert ended.value.code == (2 if place == "link" else 3)
    said = capsys.readouterr().err
    assert ("inputs/link.yml" if place == "link" else f"inputs.{name}.file") in said
    assert "top-secret-word" not in said
    assert any(f"inputs.{name}.file" in problem for problem in read_run(run).verify_inputs())
    with pytest.raises(StorqualError):
        judge_run(run)
