# SPDX-License-Identifier: Apache-2.0
"""Plans and records of trials as other versions, or damage, may have left them: one clear error, never another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.base.files import NoJsonError
from storqual.cli.playbook.publish import publish
from storqual.report.parts.trials import trials_of
from storqual.robustness.criteria import checks_of
from storqual.robustness.store import _RECORD, has_trials, read_trials
from storqual.run import append_event, read_run, sha256_of
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.trial_campaign import REQUEST, plan_campaign, record
from tests.support.turn_records import keep_turn

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(), st.text(max_size=3), st.none()), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plan_campaign(REQUEST, tmp_path_factory.mktemp("runs"))


def with_record(planned: Path, folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The run with one record, which is what `change` makes of a good one and agrees with the events."""
    run = folder / planned.name
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(planned, run)
    good = record(read_run(run), 0)
    body = json.dumps(change(good)).encode()
    (run / "trials").mkdir(exist_ok=True)
    (run / "trials" / f"{good['id']}.json").write_bytes(body)
    tell(run, good, body)
    return run


def tell(run: Path, good: dict[str, Any], body: bytes) -> None:
    """The event of a record."""
    told = {name: good[name] for name in ("bench", "session", "outcome", "boot_id")}
    told |= {"block": "s01-b001", "turn": good["id"], "turn_kind": "trial", "ends_session": False}
    told |= {"end": {"disks": {}}}
    append_event(run, "turn_finished", {**told, "sha256": sha256_of(body)})


def read_all(run: Path) -> None:
    """Everything that is read of trials."""
    opened = read_run(run)
    files = read_trials(opened)
    list(checks_of(files.planned, files.records, bench="vbench", until_failure=False))
    trials_of(opened)


def refusal(run: Path) -> str:
    """Why the run is refused; empty when it is not."""
    try:
        read_all(run)
    except (BadInputError, NoJsonError) as problem:
        return str(problem)
    return ""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(_RECORD)), value=ODD)
def test_any_value_in_a_record_is_read_or_told_in_one_error(
    planned: Path, tmp_path: Path, name: str, value: Any
) -> None:
    run = with_record(planned, tmp_path, lambda good: {**good, name: value})
    told = refusal(run)
    assert not told or f"{name}: found" in told or "reasons: found none" in told or "found no JSON" in told


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 5), data=st.data())
def test_any_value_in_a_planned_trial_is_read_or_told_in_one_error(
    planned: Path, tmp_path: Path, number: int, data: st.DataObject
) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    trial = document["plan"]["trials"][number]
    name = data.draw(st.sampled_from(sorted(trial)))
    trial[name] = data.draw(ODD)
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    told = refusal(run)
    wanted = ("run.json: not JSON", "run.json: plan.trials", "is of no planned trial")
    assert not told or any(one in told for one in wanted)


@pytest.mark.parametrize("missing", ["load_s", "fault", "session"])
def test_a_plan_of_a_former_version_is_refused_before_anything_is_written(
    planned: Path, tmp_path: Path, missing: str
) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for trial in document["plan"]["trials"]:
        del trial[missing]
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    before = sorted(run.rglob("*")), (run / "events.jsonl").read_bytes()
    with pytest.raises(BadInputError) as refused:
        publish(run)
    assert refused.value.exit_code == 3
    assert len(refused.value.problems) == len(document["plan"]["trials"])
    assert refused.value.problems[0].endswith(f"run.json: plan.trials[0]: {missing}: is missing")
    assert (sorted(run.rglob("*")), (run / "events.jsonl").read_bytes()) == before


@pytest.mark.parametrize("missing", sorted(_RECORD))
def test_a_record_that_lacks_what_is_read_of_it_is_refused_with_its_file(
    planned: Path, tmp_path: Path, missing: str
) -> None:
    run = with_record(planned, tmp_path, lambda good: {key: value for key, value in good.items() if key != missing})
    with pytest.raises(BadInputError, match=rf"\.json: {missing}: is missing"):
        read_all(run)


@pytest.mark.parametrize("body", [[], None, "text", 3])
def test_what_is_no_record_at_all_is_refused(planned: Path, tmp_path: Path, body: Any) -> None:
    run = with_record(planned, tmp_path, lambda _: body)
    with pytest.raises(BadInputError, match="expected a record"):
        read_all(run)


def test_a_failure_without_a_reason_is_refused(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: {**good, "outcome": "failed", "reasons": []})
    with pytest.raises(BadInputError, match="expected why it is failed"):
        read_all(run)


def test_a_plan_without_trials_or_of_unknown_sessions_is_refused(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for plan, told in (
        ({**document["plan"], "trials": None}, "found no list"),
        ({**document["plan"], "sessions": []}, "found session 's01'"),
        ({**document["plan"], "trials": ["text"]}, "expected a planned trial"),
    ):
        (run / "run.json").write_text(json.dumps({**document, "plan": plan}), encoding="utf-8")
        with pytest.raises(BadInputError, match=told.replace("[", r"\[")):
            read_all(run)
    assert not has_trials({"plan": None})


def test_a_trial_that_is_counted_twice_is_refused(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    keep = record(read_run(run), 0)
    body = (run / "trials" / f"{keep['id']}.json").read_bytes()
    tell(run, keep, body)
    with pytest.raises(BadInputError, match="counted a second time"):
        read_all(run)


def test_a_record_is_kept_once(planned: Path, tmp_path: Path) -> None:
    run = with_record(planned, tmp_path, lambda good: good)
    with pytest.raises(StorqualError, match="has a record already"):
        keep_turn(run, record(read_run(run), 0))
    keep_turn(run, record(read_run(run), 1))
    assert len(read_trials(read_run(run)).records) == 2
