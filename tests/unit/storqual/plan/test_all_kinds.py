# SPDX-License-Identifier: Apache-2.0
"""One suite with a workload, a trial and a program: one plan, on as many benches as there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign import Provision, RunBatch, Stop
from storqual.campaign.further import planned_pattern
from storqual.campaign.next_step import next_step
from storqual.inputs import load_suite
from storqual.kinds.trial_shown import show_trials
from storqual.plan import PlannedCampaign, make_plan
from storqual.plan.make import plan_run
from storqual.run import append_event, read_batch, read_run
from storqual.run.turns import turns_of
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from tests.support.make_lab import KERNEL, OTHER, lab_hosts, make_lab

SUITE = """\
name: all
workloads:
  seq_read: {rw: read, factors: {bs: [4k, 64k]}}
criteria:
  - {metric: iops, against: baseline}
loads:
  mine: {region: 2MiB, time: 2s}
trials:
  - {fault: device_reset, load: mine, requirement: REQ-1}
programs:
  scsi: {run: [a-test, "{sg}"], reads: tap}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, sessions: 4, repeats: 2}
"""
WITHOUT_WORKLOADS = (
    SUITE.partition("workloads:")[0]
    + "loads:"
    + SUITE.partition("\nloads:")[2].replace("cells: all, runtime: 2s, ramp: 500ms, ", "")
)
TWO = {**lab_hosts({"sym": 2, "mpt": 2}, bench="b1"), **lab_hosts({"sym": 2}, bench="b2")}


def plan(folder: Path, **changes: Any) -> PlannedCampaign:
    return make_plan(make_lab(folder, **{"hosts": TWO, "suite": SUITE, **changes}))


def refused(folder: Path, **changes: Any) -> list[str]:
    with pytest.raises(BadInputError) as told:
        plan(folder, **changes)
    return list(told.value.problems)


def test_each_bench_has_the_launches_trials_and_programs_of_its_own_adapters(tmp_path: Path) -> None:
    campaign = plan(tmp_path)
    planned = campaign.document["plan"]
    benches = {session["id"]: session["bench"] for session in planned["sessions"]}
    assert {(point["bench"], point["adapter"]) for point in planned["points"]} == {
        ("b1", "sym"), ("b1", "mpt"), ("b2", "sym"),
    }  # fmt: skip
    for kind in ("trials", "external"):
        turns = planned[kind]
        assert {(benches[turn["session"]], turn["adapter"], turn["arm"]) for turn in turns} == {
            (bench, adapter, arm)
            for bench, adapter in (("b1", "sym"), ("b1", "mpt"), ("b2", "sym"))
            for arm in ("baseline", "candidate")
        }
        assert len({turn["id"] for turn in turns}) == len(turns) == 2 * 2 * 3


def test_sessions_of_launches_come_first_and_a_batch_has_turns_of_one_mode(tmp_path: Path) -> None:
    campaign = plan(tmp_path, baseline=KERNEL, candidate=OTHER)
    for bench in ("b1", "b2"):
        sessions = [one for one in campaign.document["plan"]["sessions"] if one["bench"] == bench]
        assert [one.get("purpose", "") for one in sessions] == [*[""] * 4, *["trials"] * 4]
        assert [one["arm"] for one in sessions] == ["baseline", "candidate", "candidate", "baseline"] * 2
        assert [int(one["id"][-2:]) for one in sessions] == list(range(1, 9))
        batches = {batch["block"]: batch for batch in campaign.batches if batch["bench"] == bench}
        assert list(batches) == [block for one in sessions for block in one["blocks"]]
        for session in sessions:
            own = [batches[block] for block in session["blocks"]]
            kinds = {turn["kind"] for batch in own for turn in batch["turns"]}
            assert kinds == ({"trial", "program"} if session.get("purpose") else {"launch"})
            assert {batch["spool"] for batch in own} == ({"streamed"} if session.get("purpose") else {"durable"})
            for batch in own:
                attempt = {"turn": batch["turns"][0]["id"], "part": "all", "tag": "0" * 16}
                text = json.dumps({**batch, **({"attempt": attempt} if session.get("purpose") else {})})
                assert parse_batch(text).block == batch["block"]


def test_a_bench_goes_from_its_launches_to_its_trials_and_its_programs(tmp_path: Path) -> None:
    path = plan_run(make_lab(tmp_path, hosts=TWO, suite=SUITE), tmp_path / "runs").path
    assert path is not None
    run = read_run(path)
    assert {(turn.kind, turn.point) for turn in turns_of(run).planned} == {
        ("trial", "device_reset"),
        ("program", "scsi"),
    }
    assert run.suite.profile == "quick"
    done: list[str] = []
    while not isinstance(step := next_step(read_run(path), "b2"), Stop):
        if isinstance(step, Provision):
            assert step.spec["configuration"] == step.session.configuration
            append_event(path, "session_started", {"bench": "b2", "session": step.session.id, "boot_id": "x"})
        else:
            assert isinstance(step, RunBatch)
            done += [turn["kind"] for turn in read_batch(path, step.batch)["turns"]]
            named = {"bench": "b2", "session": step.session, "block": step.batch}
            append_event(path, "block_started", named)
            append_event(path, "block_finished", {**named, "outcome": "done", "samples": 0, "sha256": "0" * 64})
    assert list(dict.fromkeys(done)) == ["launch", "trial", "program"]
    assert (done.count("trial"), done.count("program")) == (4, 4)


def test_further_launches_are_made_of_launches_and_never_of_trials(tmp_path: Path) -> None:
    suite = SUITE.replace("sessions: 4", "sessions: 4, until: decided")
    path = plan_run(make_lab(tmp_path, hosts=TWO, suite=suite), tmp_path / "runs").path
    assert path is not None
    pattern = planned_pattern(read_run(path), "b1")
    assert pattern.common["spool"] == "durable"
    assert {point for (_, point), _ in pattern.launches} == {"seq_read[bs=4k]", "seq_read[bs=64k]"}


def test_trials_are_made_on_the_drops_as_they_are_whatever_a_suite_varies(tmp_path: Path) -> None:
    campaign = plan(tmp_path, suite=f"{SUITE}vary: {{drive.WCE: [0, 1]}}\n")
    sessions = {one["id"]: one for one in campaign.document["plan"]["sessions"]}
    specs = campaign.document["provision"]["b1"]
    assert set(specs) == {"baseline", "candidate", *(f"{a}[drive.WCE={n}]" for a in ("baseline", "candidate") for n in "01")}  # fmt: skip # noqa: E501
    assert {one["configuration"] for one in sessions.values() if one.get("purpose")} == {"baseline", "candidate"}
    assert not specs["candidate"]["drive"]
    assert all(names == ["WCE"] for names in specs["candidate"]["as_found"]["drive"].values())


def test_one_trial_is_repeated_alone_on_the_bench_that_has_it(tmp_path: Path) -> None:
    trials = plan(tmp_path).document["plan"]["trials"]
    wanted = next(trial for trial in trials if ".b2." in trial["id"])
    alone = plan(tmp_path, trial=wanted["id"], repeat=3)
    assert ([bench.bench.name for bench in alone.benches], len(alone.left_out)) == (["b2"], 1)
    assert alone.left_out[0].startswith("bench b1: nothing of suite all can be run on this bench")
    (problem,) = refused(tmp_path, trial=f"{wanted['id']}x", repeat=3)
    assert f"did you mean '{wanted['id']}'?" in problem
    document = plan(tmp_path, hosts=lab_hosts({"sym": 2}, bench="b2"), trial=wanted["id"], repeat=3).document
    again = document["plan"]["trials"]
    assert [trial["id"] for trial in again] == [f"{wanted['id']}.r{number}" for number in (1, 2, 3)]
    assert [(trial["seed"], trial["at_s"]) for trial in again] == [(wanted["seed"], wanted["at_s"])] * 3
    assert (document["plan"]["points"], document["plan"]["external"]) == ([], [])
    assert document["plan"]["until_failure"]


def test_a_report_repeats_a_trial_on_its_bench_with_the_adapters_of_that(tmp_path: Path) -> None:
    path = plan_run(make_lab(tmp_path, hosts=TWO, suite=SUITE), tmp_path / "runs").path
    assert path is not None
    run = read_run(path)
    planned = [turn for turn in turns_of(run).planned if turn.kind == "trial"]
    records = [
        {"id": turn.id, "bench": turn.bench, "fault": turn.point, "adapter": turn.adapter, "arm": turn.arm}
        | {"outcome": "failed", "reasons": ["lost"], "timeline": [], "recovery_s": None}
        for turn in planned
        if turn.adapter == "sym"
    ]
    shown = show_trials(planned, records, run.document)
    commands = {folded.command for part in shown.parts for folded in part.folded}
    assert {"--adapters sym --limit b2" in command for command in commands if ".b2." in command} == {True}
    assert {"--adapters mpt,sym --limit b1" in command for command in commands if ".b1." in command} == {True}
    assert {row[1] for part in shown.parts if part.table for row in part.table.rows} == {"b1 sym", "b2 sym"}


def test_points_that_are_asked_for_are_measured_alone(tmp_path: Path) -> None:
    document = plan(tmp_path, points=("seq_read[bs=4k]",)).document
    assert "trials" not in document["plan"]
    assert {point["point"] for point in document["plan"]["points"]} == {"seq_read[bs=4k]"}
    told = refused(tmp_path, points=("seq_read[bs=4k]",), trial="x")
    assert told == ["--trial repeats one trial, and --point measures points alone; leave one of them out"]


def test_a_run_without_trials_and_programs_says_nothing_of_them(tmp_path: Path) -> None:
    whole = plan(tmp_path).document["plan"]
    suite = SUITE.partition("\nloads:")[0] + "\n" + "profiles: {quick: {cells: all, runtime: 2s}}\n"
    alone = plan(tmp_path, suite=suite).document["plan"]
    assert whole.keys() - alone.keys() == {"trials", "external", "left_out", "until_failure", "evidence"}


def test_time_of_trials_is_part_of_the_one_budget(tmp_path: Path) -> None:
    whole = plan(tmp_path)
    (bench,) = (one for one in whole.benches if one.bench.name == "b1")
    seconds = {line.what: line.seconds for line in bench.time}
    assert seconds["trials"] > sum(trial.load_s for trial in bench.turns.trials)
    assert bench.seconds == pytest.approx(sum(seconds.values()))
    (problem,) = refused(tmp_path, suite=WITHOUT_WORKLOADS, budget=20.0)
    assert "the budget of 20 s is too small: its trials alone are expected to take" in problem


def test_a_bench_of_files_measures_and_leaves_trials_out_and_is_refused_where_it_has_nothing_else(
    tmp_path: Path,
) -> None:
    local = lab_hosts({"sym": 2}, kind="local", bench="b2")
    for number, drive in enumerate(local["b2"]["storqual_adapters"]["sym"]["drives"]):
        drive.clear()
        drive.update({"file": f"/var/lib/storqual/targets/{number}", "size": "1GiB", "claim": True})
    hosts = {**lab_hosts({"sym": 2}, bench="b1"), **local}
    planned = plan(tmp_path, hosts=hosts).document["plan"]
    assert planned["left_out"] == ["b2: this bench has files for drives; trials and programs need adapters"]
    assert {session["bench"] for session in planned["sessions"] if session.get("purpose")} == {"b1"}
    suite = WITHOUT_WORKLOADS
    (problem,) = refused(tmp_path, hosts=hosts, suite=suite)
    assert problem.startswith("b2: nothing of suite all can be run on this bench: this bench has files for drives")


def test_requirements_of_trials_are_answered_by_their_checks(tmp_path: Path) -> None:
    suite = tmp_path / "all.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    assert load_suite(suite).requirements["REQ-1"].checks == ("trials.device_reset",)
