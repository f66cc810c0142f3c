# SPDX-License-Identifier: Apache-2.0
"""A run of trials is held to its records, its records to what the bench told, its checks to its records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual.cli.audit import audit_files
from storqual.cli.playbook.publish import publish
from storqual.judge.verdict import verdict_of
from storqual.robustness.follows import trial_findings
from storqual.robustness.store import keep_record, read_trials
from storqual.run import append_check, append_event, read_run, sha256_of
from storqual.run.evidence import evidence_findings
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.signing import make_person, sign, write_keys
from tests.support.turn_records import batch_of, keep_turn
from tests.unit.storqual.trials.test_campaign import REQUEST, finished, planned_by_hand, record

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("records_by_hand")]

CHANGES = (lambda path: path.unlink(), lambda path: path.write_bytes(b"{}"))
FAILED = {"write_error_candidate": {"outcome": "failed", "reasons": ["lost: 2 sectors"], "violations": [{}]}}


@pytest.fixture(scope="module")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = finished(tmp_path_factory.mktemp("runs"), **FAILED)
    publish(path)
    return path


@pytest.fixture
def run(_published: Path, tmp_path: Path) -> Path:
    """A published campaign in which a trial failed."""
    return Path(shutil.copytree(_published, tmp_path / _published.name))


@pytest.fixture(scope="module")
def _planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planned_by_hand(REQUEST, tmp_path_factory.mktemp("planned"))


@pytest.fixture
def planned(_planned: Path, tmp_path: Path) -> Path:
    """A campaign that began."""
    path = Path(shutil.copytree(_planned, tmp_path / _planned.name))
    append_event(path, "session_started", {"bench": "vbench", "session": "s01", "boot_id": "b"})
    return path


def as_if_it_passed(run: Path) -> None:
    """Whoever may write checks.jsonl makes every outcome of a trial a PASS."""
    file = run / "checks.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"outcome":"FAIL"', b'"outcome":"PASS"'))


def test_checks_that_do_not_follow_from_the_records_are_found_and_not_signed(run: Path, tmp_path: Path) -> None:
    person = make_person(tmp_path, "Pat", "release-manager")
    keys = write_keys(tmp_path, person)
    assert trial_findings(read_run(run)) == []
    as_if_it_passed(run)
    found = trial_findings(read_run(run))
    assert all(one.startswith("checks.jsonl: trials.write_error on ") for one in found)
    assert {one.partition(": found ")[2] for one in found} == {"PASS, the records of its trials say FAIL"}
    assert set(found) <= set(verify_run(run, keys).problems)
    assert set(found) <= {one.explanation for one in audit_files([run])}
    with pytest.raises(BadInputError):
        sign(run, person, keys)


def test_checks_that_somebody_wrote_before_the_run_ended_count_for_nothing(tmp_path: Path) -> None:
    run = finished(tmp_path / "runs", **FAILED)
    for adapter in ("fusion", "vscsi"):
        where = {"bench": "vbench", "adapter": adapter, "source": "trials"}
        append_check(run, {"id": "trials.write_error", "outcome": "PASS", "reason": "", **where})
    assert publish(run).verdict["outcome"] == "FAIL"
    assert trial_findings(read_run(run)) == []


def test_a_check_of_trials_that_no_record_gives_is_found(run: Path) -> None:
    file = run / "checks.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"trials.write_error"', b'"trials.other"'))
    assert {one.split(": ", 2)[2] for one in trial_findings(read_run(run))} == {
        "found no outcome, the records of its trials say FAIL",
        "found FAIL, the records of its trials say nothing of it",
    }


def test_a_run_without_trials_has_nothing_to_follow(tmp_path: Path) -> None:
    assert trial_findings(read_run(make_run(tmp_path))) == []


@pytest.mark.parametrize("change", CHANGES, ids=["gone", "changed"])
def test_a_record_that_was_changed_or_taken_away_makes_the_run_an_error(
    run: Path, change: Callable[[Path], object]
) -> None:
    assert verdict_of(run)["outcome"] == "FAIL"
    name = f"trials/{read_trials(read_run(run)).planned[0].id}.json"
    change(run / name)
    (found,) = evidence_findings(read_run(run))
    assert found.startswith(f"{name}: is ")
    assert verdict_of(run)["outcome"] == "ERROR"
    assert trial_findings(read_run(run)) != []


@pytest.mark.parametrize("change", CHANGES, ids=["gone", "changed"])
def test_what_the_bench_told_is_held_to_the_record(planned: Path, change: Callable[[Path], object]) -> None:
    path = planned
    for folder in ("trials", "external"):
        (path / folder).mkdir(exist_ok=True)
        (path / folder / "one.gz").write_bytes(b"told")
    evidence = {"stream": "one.gz", "stream_sha256": sha256_of(b"told")}
    keep_turn(path, record(read_run(path), 0, **evidence))
    more = {"bench": "vbench", "outcome": "ended", "boot_id": "b", "disks": {}, **evidence}
    batch = batch_of(path, read_trials(read_run(path)).planned[1].id)
    keep_record(path, "external", {"id": "p", **more}, batch, kind="program", ends_session=False)
    (open_end,) = evidence_findings(read_run(path))
    for folder in ("trials", "external"):
        change(path / folder / "one.gz")
    assert evidence_findings(read_run(path)) == [
        open_end,
        "trials/one.gz: is missing, or is not what the bench told",
        "external/one.gz: is missing, or is not what the bench told",
    ]


def test_a_record_that_is_none_is_left_to_who_reads_records(planned: Path) -> None:
    path = planned
    (path / "trials").mkdir(exist_ok=True)
    (path / "trials" / "x.json").write_bytes(b"[]")
    told = {"bench": "vbench", "session": "s01", "block": "s01-b001", "turn": "x", "turn_kind": "trial"}
    told |= {"outcome": "passed", "boot_id": "b", "ends_session": False, "end": {"disks": {}}}
    append_event(path, "turn_finished", {**told, "sha256": sha256_of(b"[]")})
    assert len(evidence_findings(read_run(path))) == 1
    (found, *_) = trial_findings(read_run(path))
    assert found.startswith("trials/x.json: ")


def test_what_is_looked_at_is_said(run: Path) -> None:
    told = json.loads((run / "verdict.json").read_bytes())["evidence"]
    assert "the record of each trial is derived again from its stream" in told
    assert "every sample" not in told
