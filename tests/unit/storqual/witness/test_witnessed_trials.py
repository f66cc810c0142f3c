# SPDX-License-Identifier: Apache-2.0
"""A run of trials is told to its witness trial by trial; one that was rewritten as a whole is found."""

import json
import shutil
from pathlib import Path

import pytest

from storqual.run import iter_events, sha256_of, write_json
from storqual.run.event_kinds import FINISHED
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line
from storqual.signoff.verify import verify_run
from storqual.witness import check_witness
from storqual.witness.milestones import milestones_of
from tests.support.signing import make_person, write_keys
from tests.support.time_authority import notify_own
from tests.support.turn_records import finished

pytestmark = pytest.mark.slow


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the witness appends to; an ssh of this machine takes its lines there."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")
    return tmp_path / "kept.log"


@pytest.fixture(scope="module")
def _passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def passed(_passed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_passed, tmp_path / "runs" / _passed.name))


def with_witness(run: Path, kept: Path) -> Path:
    """The run as if its bench had been planned with a witness."""
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"]["witness"] = f"ssh://lab{kept}"
    (run / "run.json").write_text(json.dumps(document))
    return run


def rewritten(run: Path, folder: Path) -> Path:
    """A copy in which every failed trial passed: its records, the events with their digests, the whole chain."""
    copy = Path(shutil.copytree(run, folder / run.name))
    previous, chain = FIRST_DIGEST, b""
    for line in (copy / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["kind"] == "turn_finished":
            path = copy / "turns" / f"{event['turn']}.json"
            write_json(path, {**json.loads(path.read_bytes()), "outcome": "passed", "reasons": []})
            event |= {"outcome": "passed", "sha256": sha256_of(path.read_bytes())}
        event = dump_line({**event, "previous": previous})
        previous, chain = sha256_of(event[:-1]), chain + event
    (copy / "events.jsonl").write_bytes(chain)
    assert list(iter_events(copy))
    return copy


FAILED = {"write_error_candidate": {"outcome": "failed", "reasons": ["lost: 2 sectors"], "violations": [{}]}}


def test_verify_finds_a_run_of_trials_that_was_rewritten_as_a_whole(tmp_path: Path, kept: Path) -> None:
    run = with_witness(finished(tmp_path / "runs", **FAILED), kept)
    keys = write_keys(tmp_path, make_person(tmp_path, "Pat", "technician"))
    assert notify_own(run, "vbench") == []
    ended = [event.text(FINISHED[event.kind]) for event in iter_events(run) if event.kind in FINISHED]
    assert [text.partition("sha256=")[0].split()[2] for text in kept.read_text().splitlines()] == [
        f"batch={name}" for name in ended
    ]
    assert check_witness(run, str(kept)) == []
    assert not any("the witness" in text for text in verify_run(run, keys, witness=str(kept)).problems)
    sentences = verify_run(rewritten(run, tmp_path / "copy"), keys, witness=str(kept)).problems
    first = next(text.text("turn") for text in iter_events(run) if text.fields.get("outcome") == "failed")
    assert f"trial {first}: the witness recorded another digest, so the run was changed afterwards" in sentences


def test_a_record_that_was_changed_a_trial_that_was_dropped_and_one_that_was_added_are_told(
    passed: Path, kept: Path
) -> None:
    run = with_witness(passed, kept)
    notify_own(run, "vbench")
    first, second, *_ = (name for name, milestone in milestones_of(run).items() if milestone.word == "trial")
    record_file = run / "turns" / f"{first}.json"
    whole = record_file.read_bytes()
    record_file.write_bytes(whole + b" ")
    assert [text.partition(":")[0] for text in check_witness(run, str(kept))] == [f"trial {first}"]
    record_file.write_bytes(whole)
    lines = kept.read_text().splitlines(keepends=True)
    of_first, of_second = (next(line for line in lines if f"batch={name} " in line) for name in (first, second))
    kept.write_text(kept.read_text().replace(of_first, "") + of_second.replace(f"batch={second}", "batch=gone"))
    assert check_witness(run, str(kept)) == [
        f"trial {first}: the witness has no record of it",
        "trial gone: the witness has a record of it, but the run does not have it",
    ]


def test_a_witness_that_is_away_is_told_of_and_stops_no_trial(passed: Path, kept: Path) -> None:
    run = with_witness(passed, kept / "no folder")
    wrong = notify_own(run, "vbench")
    assert len(wrong) == len(milestones_of(run))
    assert all(text.startswith(("the digest of trial ", "the digest of batch ")) for text in wrong)
