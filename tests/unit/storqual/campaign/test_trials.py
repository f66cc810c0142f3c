# SPDX-License-Identifier: Apache-2.0
"""Campaigns of trials without a bench: planned, told record by record, judged and reported."""

import random
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.base.files import project_root
from storqual.campaign.pipeline import publish
from storqual.cli.plan import plan_command
from storqual.kinds.trial_shown import repeat_command
from storqual.report.documents import customer_summary, planned_tests, traceability, write_document
from storqual.report.material import read_material
from storqual.run import append_event, read_run
from storqual.run.collect import finish_streamed
from storqual_core.kit.errors import BadInputError
from tests.support.turn_records import (
    INVENTORY,
    REQUEST,
    batch_of,
    finished,
    keep_turn,
    plan_campaign,
    record_by_hand,
    turns_planned,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("records_by_hand")]


def test_arms_of_which_no_driver_was_read_are_not_called_the_same_build(tmp_path: Path) -> None:
    def published(name: str, **builds: str | None) -> tuple[str, list[str]]:
        path = plan_campaign(REQUEST, tmp_path / name)
        for session in read_run(path).plan.sessions:
            drivers = {driver: {"srcversion": builds[session.arm]} for driver in ("mptsas", "virtio_scsi") if builds}
            told = {"bench": "vbench", "session": session.id, "arm": session.arm, "boot_id": "b", "kernel": "6.1"}
            append_event(path, "session_started", {**told, "provisioned": {"drivers": drivers, "settings": []}})
        for number in range(len(turns_planned(path))):
            keep_turn(path, record_by_hand(path, number))
        done = publish(path)
        return done.report.read_text(encoding="utf-8"), list(done.verdict["warnings"])

    page, warnings = published("unread")
    assert "same build" not in page
    assert "both arms ran the same kernel; no driver build was read" in warnings
    page, warnings = published("none", baseline=None, candidate=None)
    assert "same build" not in page
    alike = "builds of mptsas, virtio_scsi have no srcversion to tell them apart"
    assert f"both arms ran the same kernel; {alike}" in warnings
    page, warnings = published("same", baseline="A1", candidate="A1")
    assert "both arms ran the same kernel with the same driver builds" in warnings
    page, warnings = published("other", baseline="A1", candidate="B2")
    assert "same build" not in page
    assert not [one for one in warnings if "same kernel" in one]


def test_a_campaign_whose_trials_pass_passes_and_its_report_has_the_matrix(tmp_path: Path) -> None:
    published = publish(finished(tmp_path))
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("PASS", 0)
    page = published.report.read_text(encoding="utf-8")
    assert "Faults by adapter and arm" in page
    assert "Every trial passed." in page
    assert "Expected length" in page
    assert "Launches per point and session" not in page
    assert "0 of 1 failed: less than 95.0 % at 95 %" in page or "0 of 1 failed: less than 95 % at 95 %" in page


def test_the_documents_of_a_campaign_of_trials_tell_of_faults_and_not_of_launches(tmp_path: Path) -> None:
    failed = {"write_error_candidate": {"outcome": "failed", "reasons": ["lost: 2 sectors"], "violations": [{}]}}
    run = finished(tmp_path, **failed)
    plan = write_document(planned_tests(run), tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "write error" in plan
    assert "the drive answers one write with an error, and accepts the next one" in plan
    assert "recovery within 60 s, no I/O longer than 60 s, I/O errors while it lasts" in plan
    assert "drive_exchange on fusion: no way with mptsas on a virtual bench." in plan
    assert "launch" not in plan.partition("<body")[2]
    publish(run)
    told = write_document(customer_summary(read_material(run)), tmp_path / "customer.html").read_text(
        encoding="utf-8"
    )
    assert "kinds of faults were caused under load" in told
    assert "1 trial failed." in told
    assert "required criteria failed" in told
    body = told.partition("<body")[2]
    assert not any(words in body for words in ("could not be judged", "Workloads", "interval", "vbench"))


def test_trials_answer_requirements_in_the_matrix(tmp_path: Path) -> None:
    suite = tmp_path / "mine.suite.yml"
    suite.write_text(
        "loads: {mine: {region: 8MiB}}\n"
        "trials:\n"
        "  - {fault: device_reset, load: mine, requirement: REQ-7}\n"
        "  - {fault: drive_unplug, load: mine, requirement: [REQ-7, REQ-8]}\n"
        "requirements: {REQ-8: {text: A drive that goes loses nothing}, REQ-9: {text: Nobody tries this}}\n",
        encoding="utf-8",
    )
    failures = {"drive_unplug_candidate": {"outcome": "failed", "reasons": ["lost: 2 sectors"], "violations": [{}]}}
    request = replace(REQUEST, suite=str(suite), profile=None)
    published = publish(finished(tmp_path / "runs", request, **failures))
    page = traceability(read_material(published.run))
    table = page.sections[0].table
    assert table is not None
    assert [(row[0], row[2], getattr(row[-1], "word", row[-1])) for row in table.rows] == [
        ("REQ-8", "trials.drive_unplug", "FAIL"),
        ("REQ-9", "not covered", "no result"),
        ("REQ-7", "trials.device_reset", "PASS"),
        ("REQ-7", "trials.drive_unplug", "FAIL"),
    ]
    assert table.rows[0][1] == "A drive that goes loses nothing"


def test_damaged_data_fails_the_campaign_and_the_report_tells_how_to_repeat_it(tmp_path: Path) -> None:
    damage = {"outcome": "failed", "reasons": ["lost: 2 sectors <b>"], "violations": [{"kind": "lost"}]}
    published = publish(finished(tmp_path, write_error_candidate=damage))
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("FAIL", 1)
    page = published.report.read_text(encoding="utf-8")
    assert "--trial write_error.vbench." in page
    assert "lost: 2 sectors &lt;b&gt;" in page
    assert "<b>" not in page.split("lost: 2 sectors")[1][:20]


def test_a_campaign_in_which_no_fault_was_proven_is_no_pass(tmp_path: Path) -> None:
    void = {"outcome": "void", "reasons": ["the fault is not proven: no command"], "recovery_s": None}
    published = publish(finished(tmp_path, device_reset_candidate=void))
    assert (published.verdict["outcome"], published.verdict["exit_code"]) == ("ERROR", 2)


def test_a_trial_that_was_cut_short_is_told_in_the_report(tmp_path: Path) -> None:
    path = finished(tmp_path)
    first = turns_planned(path)[0].id
    lost = {"lost": {"turn": first, "rebooted": False}}
    finish_streamed(path, batch_of(path, first), "lost", "no <answer>", lost)
    page = publish(path).report.read_text(encoding="utf-8")
    assert f"<li>{first}: no &lt;answer&gt;</li>" in page


@pytest.mark.parametrize("profile", ["quick", "full", None, "no profiles"])
def test_the_command_of_the_report_makes_that_very_trial_again(tmp_path: Path, profile: str | None) -> None:
    drop = tmp_path / "elsewhere" / "own.drop.yml"
    drop.parent.mkdir()
    stable = (INVENTORY / "drops" / "stable.yml").read_text(encoding="utf-8")
    drop.write_text(stable.replace("name: stable", "name: own"), encoding="utf-8")
    suite = tmp_path / "own.suite.yml"
    text = (project_root() / "suites" / "robustness.suite.yml").read_text(encoding="utf-8")
    if profile == "no profiles":
        text, profile = text.partition("\nprofiles:")[0].replace("default_profile: quick\n", ""), None
    suite.write_text(text, encoding="utf-8")
    asked = replace(REQUEST, candidate=str(drop), suite=str(suite), profile=profile, seed=None, limit="vbench")
    run = read_run(plan_campaign(asked, tmp_path / "runs"))
    wanted = random.Random(1).choice(turns_planned(run))
    words = shlex.split(
        repeat_command(run.document, "vbench", [turn.adapter for turn in turns_planned(run)], f"{wanted.id}.r3", 2)
    )
    assert words[:2] == ["storqual", "qualify"]
    ended = CliRunner().invoke(plan_command, [*words[2:], "--runs", str(tmp_path / "again")])
    assert ended.exit_code == 0, ended.output
    (again,) = (tmp_path / "again").iterdir()
    made = turns_planned(again)
    assert [one.id for one in made] == [f"{wanted.id}.r1", f"{wanted.id}.r2"]
    for one in made:
        request = {**one.request, "pair": wanted.request["pair"]}
        same = replace(one, run=wanted.run, id=wanted.id, session=wanted.session, request=request)
        assert same == wanted


def test_a_trial_or_an_adapter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no trial 'x' in this plan"):
        plan_campaign(replace(REQUEST, trial="x"), tmp_path)
    with pytest.raises(BadInputError, match="did you mean 'fusion'"):
        plan_campaign(replace(REQUEST, adapters=("fussion",)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_suite_that_names_adapters_which_the_bench_lacks_is_refused_with_all_of_them(tmp_path: Path) -> None:
    suite = tmp_path / "own.suite.yml"
    suite.write_text(
        "loads: {mine: {region: 2MiB}}\n"
        "trials:\n"
        "  - {fault: device_reset, load: mine, adapters: [fusion, vscs]}\n"
        "profiles:\n"
        "  quick: {leave_out: {device_reset: adapter_of_another_lab}}\n",
        encoding="utf-8",
    )
    with pytest.raises(BadInputError, match="--adapters: unknown adapter 'sim'"):
        plan_campaign(replace(REQUEST, suite=str(suite), adapters=("sim",)), tmp_path / "runs")
    with pytest.raises(BadInputError, match=r"own.suite.yml:3: unknown adapter 'vscs' \(did you mean 'vscsi'"):
        plan_campaign(replace(REQUEST, suite=str(suite), profile=None), tmp_path / "runs")


def test_the_suite_in_the_documents_has_a_fault_a_load_and_an_expectation_in_twelve_lines(tmp_path: Path) -> None:
    page = (project_root() / "docs" / "how-to" / "lead" / "robustness.md").read_text(encoding="utf-8")
    text = page.partition('title="suites/removal.suite.yml"\n')[2].partition("```")[0]
    assert 0 < len(text.splitlines()) <= 12
    suite = tmp_path / "removal.suite.yml"
    suite.write_text(text, encoding="utf-8")
    path = plan_campaign(replace(REQUEST, suite=str(suite), profile=None), tmp_path)
    planned = turns_planned(path)
    assert {trial.point for trial in planned} == {"drive_removal"}
    assert len(planned) == 60 * len(REQUEST.adapters or ()) * 2
    assert planned[0].request["expect"]["recovery"] == 30


def test_a_dump_of_the_kernel_is_planned_when_the_drop_reserves_memory_for_it(tmp_path: Path) -> None:
    for name, cmdline in (("with", "os: {cmdline: [quiet, crashkernel=192M]}\n"), ("without", "")):
        drop = tmp_path / f"{name}.yml"
        drop.write_text(f"name: {name}\n{cmdline}", encoding="utf-8")
        request = replace(REQUEST, candidate=str(drop), baseline="", profile="full")
        planned = turns_planned(plan_campaign(request, tmp_path / "runs"))
        assert any(trial.point == "crash_dump" for trial in planned) is (name == "with")
