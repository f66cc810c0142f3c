# SPDX-License-Identifier: Apache-2.0
"""A bench that hung: whose failure that is, and how much more is needed before anybody is accused."""

from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.run import read_run
from storqual.run.hangs import ANSWERS, hang_checks
from tests.support.make_run import make_run

pytestmark = pytest.mark.slow


def hung(arm: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    where = {"bench": "vbench", "session": "s02", "arm": arm, "block": f"s02-b{number:02d}"}
    told = {"ended_by": "watchdog i6300ESB timer", "seconds": 95.0, "text": "it stopped answering"}
    return {"kind": "bench_hung", **where, **told, **fields}


def entry(path: Path) -> dict[str, Any]:
    verdict = judge_run(path)
    [found] = [one for one in verdict["criteria"] if one["id"] == ANSWERS]
    return {**found, "exit_code": verdict["exit_code"], "run": verdict["outcome"]}


def first_of(path: Path, arm: str) -> str:
    return next(sample.id for sample in read_run(path).samples if sample.arm == arm)


def test_a_run_without_a_hang_has_no_such_criterion(tmp_path: Path) -> None:
    assert hang_checks(read_run(make_run(tmp_path))) == []


def test_one_hang_fails_a_candidate_whose_baseline_did_as_much_without_one(tmp_path: Path) -> None:
    turn = first_of(make_run(tmp_path / "a"), "candidate")
    found = entry(make_run(tmp_path / "b", events=[hung("candidate", turn=turn)]))
    assert (found["outcome"], found["run"], found["exit_code"]) == ("FAIL", "FAIL", 1)
    assert "ended after 95 s by watchdog i6300ESB timer" in found["reason"]
    assert turn in found["reason"]


def test_a_baseline_that_did_less_decides_nothing_and_it_is_said_how_much_is_missing(tmp_path: Path) -> None:
    # three turns that hung and left no sample: the candidate made three more than the baseline
    events = [hung("candidate", number, turn=f"lost/{number}") for number in (1, 2, 3)]
    found = entry(make_run(tmp_path, events=events))
    assert found["outcome"] == "INCONCLUSIVE"
    assert "not decided" in found["reason"]
    assert ", 3 more of it are needed" in found["reason"]


def test_a_bench_that_hangs_in_both_arms_is_an_error_of_the_rig(tmp_path: Path) -> None:
    found = entry(make_run(tmp_path, events=[hung("candidate"), hung("baseline", 2)]))
    assert (found["outcome"], found["exit_code"]) == ("ERROR", 2)


def test_a_hang_of_the_baseline_alone_does_not_fail_the_candidate(tmp_path: Path) -> None:
    [check] = hang_checks(read_run(make_run(tmp_path, events=[hung("baseline")])))
    assert (check.id, check.bench, check.outcome) == (ANSWERS, "vbench", "PASS")


def test_the_line_that_names_the_driver_is_shown_and_does_not_replace_the_count(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a")
    driver = next(one["driver"] for one in read_run(path).benches["vbench"]["adapters"].values() if one.get("driver"))
    step = {"kind": "recovery_step", "bench": "vbench", "session": "s02", "arm": "candidate", "block": "s02-b01"}
    step |= {"step": "look", "seconds": 40.0, "text": "", "evidence": f"x\n[9.1] {driver}_wait+0x12/0x40 [{driver}]"}
    events = [step, hung("candidate", turn="lost/1")]
    [check] = hang_checks(read_run(make_run(tmp_path / "b", events=events)))
    assert f"[9.1] {driver}_wait" in check.reason
    assert check.outcome == "INCONCLUSIVE"


def test_a_candidate_that_hangs_in_its_boot_fails_and_the_rig_is_not_blamed_for_its_session(tmp_path: Path) -> None:
    where = {"bench": "vbench", "session": "s02", "arm": "candidate"}
    failed = {"kind": "provision_failed", **where, "reason": "no start"}
    panic = {"kind": "kernel_panic", **where, "text": "Kernel panic - not syncing: x"}
    boot = {name: value for name, value in hung("candidate").items() if name != "block"}
    assert judge_run(make_run(tmp_path / "a", events=[failed]))["outcome"] == "ERROR"
    [check] = hang_checks(read_run(make_run(tmp_path / "b", events=[boot, failed])))
    assert "first in the preparation of session s02" in check.reason
    verdict = judge_run(make_run(tmp_path / "c", events=[boot, failed, panic]))
    assert not [word for word in ("could not be provisioned", "panicked") if word in verdict["reason"]]
    # a hang of the baseline takes nothing back: its criterion passes
    for number, event in enumerate((failed, panic)):
        other = make_run(tmp_path / f"d{number}", events=[{**boot, "arm": "baseline"}, event])
        assert judge_run(other)["outcome"] == "ERROR"
