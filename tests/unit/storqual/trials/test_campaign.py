# SPDX-License-Identifier: Apache-2.0
"""Campaigns of trials without a bench: planned, told record by record, judged and reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual.cli.playbook.publish import publish
from storqual.report.documents import traceability
from storqual.report.material import read_material
from storqual.robustness.criteria import checks_of
from storqual.robustness.store import keep_record, read_trials
from storqual.run import append_check, append_event, read_run
from storqual.trials.campaign import TrialRequest, plan_campaign, run_campaign
from storqual_core.kit.errors import BadInputError, StorqualError

if TYPE_CHECKING:
    from storqual.run import Run

INVENTORY = Path(__file__).resolve().parents[4] / "inventories" / "virtual"
REQUEST = TrialRequest(
    inventories=(str(INVENTORY),),
    candidate="stable",
    baseline="stable",
    suite="robustness",
    profile="quick",
    gate=None,
    adapters=("fusion", "vscsi"),
    seed=5,
    limit=None,
    trial=None,
    repeat=20,
)


def record(run: Run, number: int, **fields: Any) -> dict[str, Any]:
    planned = read_trials(run).planned[number]
    return {
        **planned.to_json(),
        "bench": "vbench",
        "outcome": "passed",
        "reasons": [],
        "violations": [],
        "recovery_s": 1.0,
        "timeline": [[1.0, "fault", "begin"]],
        "disks": {},
        "boot_id": "b",
        **fields,
    }


def finished(tmp_path: Path, request: TrialRequest = REQUEST, **failures: dict[str, Any]) -> Path:
    """A campaign in which every trial was made; `failures` change records by the id's first word."""
    path = plan_campaign(request, tmp_path)
    run = read_run(path)
    for session, arm in read_trials(run).sessions:
        told = {"bench": "vbench", "session": session, "arm": arm, "boot_id": "b", "kernel": "6.1"}
        append_event(path, "session_started", told)
    for number, planned in enumerate(read_trials(run).planned):
        change = failures.get(f"{planned.fault}_{planned.arm}", {})
        keep_record(path, record(run, number, **change))
    files = read_trials(read_run(path))
    for check in checks_of(files.planned, files.records, bench="vbench", until_failure=False):
        append_check(path, check)
    return path


def test_a_campaign_whose_trials_pass_passes_and_its_report_has_the_matrix(tmp_path: Path) -> None:
    published = publish(finished(tmp_path))
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("PASS", 0)
    page = published.report.read_text(encoding="utf-8")
    assert "Faults by adapter and arm" in page
    assert "Every trial passed." in page
    assert "0 of 1 failed: less than 95.0 % at 95 %" in page or "0 of 1 failed: less than 95 % at 95 %" in page


def test_trials_answer_requirements_in_the_matrix(tmp_path: Path) -> None:
    suite = tmp_path / "mine.suite.yml"
    suite.write_text(
        "kind: robustness\n"
        "loads: {mine: {region: 8MiB}}\n"
        "trials:\n"
        "  - {fault: device_reset, load: mine, requirement: REQ-7}\n"
        "  - {fault: drive_unplug, load: mine, requirement: [REQ-7, REQ-8]}\n"
        "requirements: {REQ-8: {text: A drive that goes loses nothing}, REQ-9: {text: Nobody tries this}}\n",
        encoding="utf-8",
    )
    failures = {"drive_unplug_candidate": {"outcome": "failed", "reasons": ["lost sectors"], "violations": [{}]}}
    request = replace(REQUEST, suite=str(suite), profile=None)
    published = publish(finished(tmp_path / "runs", request, **failures))
    page = traceability(read_material(published.run))
    rows = [(row.cells[0], row.cells[2], row.outcome and row.outcome.word) for row in page.sections[0].table.rows]
    assert rows == [
        ("REQ-8", "trials.drive_unplug", "FAIL"),
        ("REQ-9", "nothing answers it", None),
        ("REQ-7", "trials.device_reset", "PASS"),
        ("REQ-7", "trials.drive_unplug", "FAIL"),
    ]
    assert page.sections[0].table.rows[0].cells[1] == "A drive that goes loses nothing"


def test_damaged_data_fails_the_campaign_and_the_report_tells_how_to_repeat_it(tmp_path: Path) -> None:
    damage = {
        "outcome": "failed",
        "reasons": ["lost: 2 sectors <b>"],
        "violations": [{"kind": "lost"}],
    }
    published = publish(finished(tmp_path, drive_unplug_candidate=damage))
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("FAIL", 1)
    page = published.report.read_text(encoding="utf-8")
    assert "--trial drive_unplug.fusion." in page
    assert "lost: 2 sectors &lt;b&gt;" in page
    assert "<b>" not in page.split("lost: 2 sectors")[1][:20]


def test_a_campaign_in_which_no_fault_was_proven_is_no_pass(tmp_path: Path) -> None:
    void = {"outcome": "void", "reasons": ["the fault is not proven: no command"], "recovery_s": None}
    published = publish(finished(tmp_path, device_reset_candidate=void))
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("ERROR", 2)


def test_a_record_that_was_changed_afterwards_is_refused(tmp_path: Path) -> None:
    path = finished(tmp_path)
    file = next((path / "trials").glob("*.json"))
    file.write_text(file.read_text(encoding="utf-8").replace("passed", "failed"), encoding="utf-8")
    with pytest.raises(StorqualError, match="not the record"):
        read_trials(read_run(path))


def test_one_trial_is_planned_as_often_as_it_is_to_be_repeated(tmp_path: Path) -> None:
    whole = read_trials(read_run(plan_campaign(REQUEST, tmp_path))).planned
    wanted = whole[3]
    path = plan_campaign(replace(REQUEST, trial=wanted.id, repeat=4), tmp_path)
    files = read_trials(read_run(path))
    assert files.until_failure
    assert [one.id for one in files.planned] == [f"{wanted.id}.r{number}" for number in range(1, 5)]
    assert {(one.seed, one.at_s, one.drive) for one in files.planned} == {(wanted.seed, wanted.at_s, wanted.drive)}


def test_a_trial_or_an_adapter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no trial 'x' in this plan"):
        plan_campaign(replace(REQUEST, trial="x"), tmp_path)
    with pytest.raises(BadInputError, match="did you mean 'fusion'"):
        plan_campaign(replace(REQUEST, adapters=("fussion",)), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("recap", "off"), [("ok=4 changed=1 ", True), ("ok=4 changed=0 ", False)])
def test_the_power_of_the_bench_is_left_as_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recap: str, off: bool
) -> None:
    path = finished(tmp_path)
    played = []

    def play(name: str, *, output: Path | None, **_: Any) -> int:
        played.append(name)
        if output is not None:
            output.write_text(f"vbench : {recap} unreachable=0\n", encoding="utf-8")
        return 0

    monkeypatch.setattr("storqual.trials.campaign.run_playbook", play)
    run_campaign(path, say=lambda _: None)
    assert played == ["bench_up.yml", "restore.yml", *(["bench_down.yml"] if off else [])]
