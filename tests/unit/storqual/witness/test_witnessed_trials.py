# SPDX-License-Identifier: Apache-2.0
"""A run of trials is told to its witness trial by trial; one that was rewritten as a whole is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.cli.playbook.publish import publish
from storqual.inputs import read_inventory
from storqual.run import iter_events, read_run, sha256_of, write_json
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line
from storqual.signoff.verify import verify_run
from storqual.trials import external, session
from storqual.trials.campaign import _bench, plan_campaign
from storqual.trials.session import run_session
from storqual.witness import check_witness, notify_witness
from storqual.witness.milestones import TOLD, milestones_of
from tests.support.signing import make_person, write_keys
from tests.unit.storqual.trials.test_campaign import INVENTORY, REQUEST, finished, record

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
    """A campaign in which every trial was made and passed."""
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
        if event["kind"] == "trial_finished":
            path = copy / "trials" / f"{event['trial']}.json"
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
    assert notify_witness(run, "vbench") == []
    trials = [event.text("trial") for event in iter_events(run) if event.kind == "trial_finished"]
    assert [one.partition("sha256=")[0].split()[2] for one in kept.read_text().splitlines()] == [
        f"batch={name}" for name in trials
    ]
    assert check_witness(run, str(kept)) == []
    assert not any("the witness" in one for one in verify_run(run, keys, witness=str(kept)).problems)
    said = verify_run(rewritten(run, tmp_path / "copy"), keys, witness=str(kept)).problems
    first = next(one.text("trial") for one in iter_events(run) if one.fields.get("outcome") == "failed")
    assert f"trial {first}: the witness recorded another digest, so the run was changed afterwards" in said


def test_a_record_that_was_changed_a_trial_that_was_dropped_and_one_that_was_added_are_told(
    passed: Path, kept: Path
) -> None:
    run = with_witness(passed, kept)
    notify_witness(run, "vbench")
    first, second, *_ = milestones_of(run)
    record_file = run / "trials" / f"{first}.json"
    whole = record_file.read_bytes()
    record_file.write_bytes(whole + b" ")
    assert [one.partition(":")[0] for one in check_witness(run, str(kept))] == [f"trial {first}"]
    record_file.write_bytes(whole)
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[1:]) + lines[1].replace(f"batch={second}", "batch=gone"))
    assert check_witness(run, str(kept)) == [
        f"trial {first}: the witness has no record of it",
        "trial gone: the witness has a record of it, but the run does not have it",
    ]


class Here:
    """A bench that is never reached."""

    boot_id, virtual = "b", None


class Link:
    def run(self, _command: str) -> str:
        return "boot-1\n6.1.0-56\n"


def test_each_trial_is_told_when_its_record_is_kept(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = with_witness(plan_campaign(REQUEST, tmp_path / "runs"), kept)
    told: list[int] = []

    class Trial:
        def __init__(self, _bench: Any, _suite: Any, planned: Any, *_: Any, **_more: Any) -> None:
            self.planned = planned

        def run(self) -> dict[str, Any]:
            told.append(len(kept.read_text().splitlines()) if kept.is_file() else 0)
            return {**record(read_run(run), 0), **self.planned.to_json()}

    monkeypatch.setattr(session, "LiveTrial", Trial)
    monkeypatch.setattr(session, "bench_here", lambda *_, **_more: Here)
    monkeypatch.setattr(session, "paths_of", lambda _adapters: [])
    link = cast("Any", Link())
    assert run_session(run, "vbench", "s01", link, python="python3", virtual="", say=lambda _text: None)
    assert told == list(range(len(told)))
    assert len(told) == len(milestones_of(run)) >= 2
    assert sum(event.kind == TOLD for event in iter_events(run)) == len(told)
    assert check_witness(run, str(kept)) == []


def test_a_run_of_a_foreign_program_is_told_too(passed: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_witness(passed, kept)
    notify_witness(path, "vbench")
    said: list[str] = []

    class Program:
        was_reset = False

        def __init__(self, _here: Any, _program: Any, planned: Any, *_: Any) -> None:
            self.planned = planned

        def run(self) -> dict[str, Any]:
            more = {"outcome": "ended", "boot_id": "b", "disks": {}, "tests": [], "reasons": [], "problems": []}
            return {"id": self.planned.id, "bench": "vbench", "session": "s01", "recovered": "", **more}

    class Planned:
        id, session, program = "own.s01", "s01", "own"

    class Files:
        records, planned, sessions = (), (Planned,), (("s01", "baseline"),)

        suite = SimpleNamespace(external={"own": SimpleNamespace(package=None)})

    (path / "external").mkdir()
    monkeypatch.setattr(external, "LiveExternal", Program)
    monkeypatch.setattr(external, "read_external", lambda _run: Files)
    monkeypatch.setattr(external, "bench_here", lambda *_, **_more: Here)
    external.run_external_session(
        path, "vbench", "s01", cast("Any", Link()), python="python3", virtual="", say=said.append
    )
    assert "batch=own.s01 " in kept.read_text()
    assert check_witness(path, str(kept)) == []


def test_a_witness_that_is_away_is_told_of_and_stops_no_trial(passed: Path, kept: Path) -> None:
    run = with_witness(passed, kept / "no folder")
    wrong = notify_witness(run, "vbench")
    assert len(wrong) == len(milestones_of(run))
    assert all(one.startswith("the digest of trial ") for one in wrong)


def test_a_campaign_of_trials_has_the_witness_of_its_bench() -> None:
    inventory, _ = read_inventory([INVENTORY])
    (bench,) = inventory.benches.values()
    place = "syslog://log.lab:6514"
    assert _bench(bench.model_copy(update={"witness": place}), set())["witness"] == place
    assert "witness" not in _bench(bench, set())


def test_the_report_counts_the_trials_that_were_told(passed: Path, kept: Path) -> None:
    run = with_witness(passed, kept)
    notify_witness(run, "vbench")
    count = len(milestones_of(run))
    page = publish(run).report.read_text(encoding="utf-8")
    assert f"{count} of {count} trials and programs had their digest recorded by" in page
