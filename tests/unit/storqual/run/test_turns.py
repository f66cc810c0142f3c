# SPDX-License-Identifier: Apache-2.0
"""One run with launches, trials and programs is judged, published, signed and verified as a whole."""

import gzip
import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storqual.campaign.pipeline import publish
from storqual.cli.audit import audit_files
from storqual.judge.verdict import verdict_of
from storqual.kinds.trial import RECORD
from storqual.report.documents import customer_summary, planned_tests
from storqual.report.material import read_material
from storqual.run import append_check, append_event, read_run, sha256_of
from storqual.run.evidence import evidence_findings
from storqual.run.layout import dump_json
from storqual.run.turns import Turns, turns_of
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.attacks.before import KINDS
from tests.attacks.before.trials import TRIAL_KINDS
from tests.attacks.finished_run import copy_of, put
from tests.attacks.test_before_signing import seen
from tests.support.make_run import make_run
from tests.support.mixed_run import mixed_run
from tests.support.signing import make_person, sign, write_keys
from tests.support.turn_records import REQUEST, keep_turn, plan_campaign, record_by_hand

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mixed_run(tmp_path_factory.mktemp("runs") / "good")


def test_one_run_has_one_verdict_over_all_kinds_of_turn(mixed: Path) -> None:
    verdict = json.loads((mixed / "verdict.json").read_bytes())
    assert (verdict["outcome"], verdict["coverage"]["measured"]) == ("PASS", 2)
    decided = {entry["id"]: entry["outcome"] for entry in verdict["criteria"] if entry["required"]}
    assert {"iops", "trials.device_reset", "trials.power_cut", "external.conformance"} <= set(decided)
    assert set(decided.values()) == {"PASS"}
    # hand-written checks run whatever the run has
    assert {"pytest", "robot", "trials", "read back", ""} == {entry["source"] for entry in verdict["criteria"]}
    assert evidence_findings(read_run(mixed)) == []
    assert not [claim for claim in audit_files([mixed]) if claim.status.value == "inconsistent"]


def test_one_report_shows_points_trials_and_programs(mixed: Path) -> None:
    page = (mixed / "report.html").read_text(encoding="utf-8")
    for ident in ("changes", "trials", "programs", "coverage", "points"):
        assert f'id="{ident}"' in page, ident
    assert "Faults by adapter and arm" in page
    assert "Known: not passed in both arms: 1" in page
    # what is there is not listed as untested
    assert "no drive, cable or power was lost" not in page
    assert "are measured by a suite's workloads" not in page
    sections = {section.title for section in planned_tests(mixed).sections}
    assert {"What is measured", "What is tried", "Third-party programs"} <= sections
    titles = {section.title for section in customer_summary(read_material(mixed)).sections}
    assert {"What was tested", "Faults", "Third-party programs"} <= titles


def test_a_loss_of_its_launches_fails_the_run_whose_trials_pass(tmp_path: Path) -> None:
    run = mixed_run(tmp_path / "bad", loss=0.3)
    verdict = verdict_of(run)
    failed = {entry["id"] for entry in verdict["criteria"] if entry["outcome"] == "FAIL" and entry["required"]}
    assert (verdict["outcome"], failed) == ("FAIL", {"iops"})


def test_it_is_signed_and_verified_and_tampering_with_any_kind_is_found(mixed: Path, tmp_path: Path) -> None:
    run = copy_of(mixed, tmp_path)
    person = make_person(tmp_path, "Pat", "release-manager")
    keys = write_keys(tmp_path, person)
    sign(run, person, keys)
    assert verify_run(run, keys, allow_virtual=True).problems == ()
    for name in ("samples.jsonl", *_one_of_each(run)):
        kept = (run / name).read_bytes()
        put(run / name, kept[:-3] + b"x}\n")
        assert f"{name}: was changed" in verify_run(run, keys, allow_virtual=True).problems
        put(run / name, kept)


def _one_of_each(run: Path) -> list[str]:
    records = {record["kind"]: record for record in turns_of(read_run(run)).records}
    return [
        name
        for turn_record in records.values()
        for name in (f"turns/{turn_record['id']}.json", turn_record["raw"][0]["path"])
    ]


@pytest.mark.parametrize("number", range(24))
def test_tampering_before_it_is_signed_is_seen(mixed: Path, tmp_path: Path, number: int) -> None:
    source = random.Random(f"mixed/{number}")
    name = source.choice(sorted(TRIAL_KINDS if number % 2 else KINDS))
    run = copy_of(mixed, tmp_path)
    {**TRIAL_KINDS, **KINDS}[name](run, source)
    assert seen(run), name


def test_a_run_without_such_turns_has_nothing_to_follow(tmp_path: Path) -> None:
    turns = turns_of(read_run(make_run(tmp_path)))
    assert (turns.planned, turns.records, turns.findings(), turns.checks(), turns.sections()) == ((), (), [], [], [])
    assert [name for name, _ in turns.absent()] == ["Faults"]


def test_an_outcome_that_somebody_appended_for_a_trial_counts_for_nothing_and_is_found(tmp_path: Path) -> None:
    path = plan_campaign(REQUEST, tmp_path)
    where = {"bench": "vbench", "adapter": "fusion", "source": "trials", "reason": ""}
    append_check(path, {"id": "trials.device_reset", "outcome": "PASS", **where})
    sentences = [sentence for sentence in evidence_findings(read_run(path)) if sentence.startswith("checks.jsonl")]
    assert sentences == ["checks.jsonl: has outcomes that are counted from records, which nobody appends"]


CHANGES: list[Callable[[Path], Any]] = [lambda path: path.unlink(), lambda path: path.write_bytes(b"{}")]


@pytest.mark.parametrize("change", CHANGES, ids=["gone", "changed"])
def test_a_record_or_raw_file_that_was_changed_or_taken_away_makes_the_run_an_error(
    mixed: Path, tmp_path: Path, change: Callable[[Path], Any]
) -> None:
    for name in _one_of_each(mixed):
        run = copy_of(mixed, tmp_path)
        change(run / name)
        assert verdict_of(run)["outcome"] == "ERROR"
        assert any(name in sentence for sentence in evidence_findings(read_run(run)))


def test_a_record_that_was_made_again_from_other_raw_files_is_found(mixed: Path, tmp_path: Path) -> None:
    """It follows from what it names; only the event says that another one was made."""
    for path in sorted((mixed / "turns").glob("*.json")):
        run = copy_of(mixed, tmp_path)
        record = json.loads(path.read_bytes())
        for raw in record["raw"]:
            packed = gzip.compress(gzip.decompress((run / raw["path"]).read_bytes()), compresslevel=1, mtime=1)
            ending = raw["path"].partition(".")[2]
            raw["sha256"] = sha256_of(packed)
            raw["path"] = f"raw/{raw['sha256']}.{ending}"
            (run / raw["path"]).write_bytes(packed)
        (run / "turns" / path.name).write_bytes(dump_json(record))
        sentences = Turns(read_run(run)).problems
        assert sentences == [f"turns/{path.name}: is not the record that was made"]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plan_campaign(REQUEST, tmp_path_factory.mktemp("planned"))


def with_record(planned: Path, folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The run with one record, which is what `change` makes of a good one and agrees with the events."""
    run = folder / planned.name
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(planned, run)
    good = record_by_hand(run, 0)
    body = json.dumps(change(good)).encode()
    (run / "turns").mkdir(exist_ok=True)
    (run / "turns" / f"{good['id']}.json").write_bytes(body)
    _tell(run, good, body)
    return run


def _tell(run: Path, good: dict[str, Any], body: bytes) -> None:
    fields = {name: good[name] for name in ("bench", "session", "outcome", "boot_id")}
    fields |= {"block": f"{good['session']}-b001", "turn": good["id"], "turn_kind": "trial", "ends_session": False}
    append_event(run, "turn_finished", {**fields, "end": {"disks": {}}, "sha256": sha256_of(body)})


def problems(run: Path) -> list[str]:
    """What cannot be read; everything else that is read of turns is."""
    turns = Turns(read_run(run))
    turns.checks(), turns.sections(), turns.summary()
    return turns.problems


ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    st.lists(st.one_of(st.integers(), st.text(max_size=3), st.none()), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(RECORD)), value=ODD)
@example(name="session", value=math.inf)
@example(name="reasons", value=[math.nan])
def test_any_value_in_a_record_is_read_or_told(planned: Path, tmp_path: Path, name: str, value: Any) -> None:
    sentences = problems(with_record(planned, tmp_path, lambda good: {**good, name: value}))
    beginnings = (f"{name}: found", f"found {name}", "cannot be read", "reasons: found none", "is no record")
    assert all(
        sentence.startswith("turns/") and any(words in sentence for words in beginnings) for sentence in sentences
    )


@pytest.mark.parametrize("missing", sorted(RECORD))
def test_a_record_that_lacks_what_is_read_of_it_is_told_with_its_file(
    planned: Path, tmp_path: Path, missing: str
) -> None:
    run = with_record(planned, tmp_path, lambda good: {key: value for key, value in good.items() if key != missing})
    (sentence,) = problems(run)
    assert sentence.startswith("turns/")
    assert missing in sentence


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_record_with_a_number_that_json_has_not_is_told_with_its_file(
    planned: Path, tmp_path: Path, value: float
) -> None:
    (sentence,) = problems(with_record(planned, tmp_path, lambda good: {**good, "recovery_s": value}))
    assert sentence.startswith("turns/")
    assert "is no record" in sentence


@pytest.mark.parametrize("body", [[], None, "text", 3])
def test_what_is_no_record_at_all_is_told(planned: Path, tmp_path: Path, body: Any) -> None:
    (sentence,) = problems(with_record(planned, tmp_path, lambda _: body))
    assert "expected a mapping" in sentence


def test_a_failure_without_a_reason_is_told(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: {**good, "outcome": "failed", "reasons": []})
    (sentence,) = problems(run)
    assert "expected why it is failed" in sentence


def test_a_batch_file_that_is_damaged_is_refused_before_anything_is_written(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    next((run / "blocks").glob("*.json")).write_text("{}", encoding="utf-8")
    before = sorted(run.rglob("*")), (run / "events.jsonl").read_bytes()
    with pytest.raises(BadInputError) as refused:
        publish(run)
    assert refused.value.exit_code == 3
    assert (sorted(run.rglob("*")), (run / "events.jsonl").read_bytes()) == before


def test_a_turn_counts_once(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    with pytest.raises(StorqualError, match="has a record already"):
        keep_turn(run, record_by_hand(run, 0))
    keep_turn(run, record_by_hand(run, 1))
    assert len(turns_of(read_run(run)).records) == 2
    good = record_by_hand(run, 0)
    _tell(run, good, (run / "turns" / f"{good['id']}.json").read_bytes())
    (sentence,) = problems(run)
    assert "counted a second time" in sentence
