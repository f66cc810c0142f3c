# SPDX-License-Identifier: Apache-2.0
"""A user's own checks: found, planned with, run from where they are written, and bound to suites and workloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.base.resources import suites_folder
from storqual.checks.own import allow_checks, find_checks
from storqual.plan.make import plan_run
from storqual.pytest_plugin import run_checks
from storqual.robot_library import publish_suites
from storqual.run import read_run, sha256_of
from storqual.run.evidence import evidence_findings, missing_checks
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import make_lab
from tests.support.make_run import make_run
from tests.support.robot_benches import fingerprint
from tests.support.sealed_run import chained, lines_of

pytestmark = pytest.mark.slow

PYTHON = """
import pytest

@pytest.mark.points(workload="rand_*")
def test_mine(candidate, record_property):
    record_property("looked_at", f"{len(candidate)} samples")
    assert candidate

@pytest.mark.points(workload="no_such_*")
def test_of_a_workload_that_was_not_planned(candidate):
    assert candidate

@pytest.mark.suites("another", "more-*")
def test_of_another_suite(run):
    raise RuntimeError("not of this run")
"""
ROBOT = """\
*** Settings ***
Library    storqual.robot_library.StorqualLibrary    run=${RUN}    bench=${BENCH}

*** Variables ***
${RUN}      ${EMPTY}
${BENCH}    ${EMPTY}

*** Test Cases ***
Nothing Is Untested
    [Tags]    suite:synth*    workload:rand_*
    Every Planned Point Should Be Measured

Of Another Suite
    [Tags]    suite:another
    Fail    not of this run

Of A Workload That Was Not Planned
    [Tags]    suite:*    workload:no_such
    Fail    not of this run
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "suites" / "robot").mkdir(parents=True)
    (folder / "suites" / "test_mine.py").write_text(PYTHON, encoding="utf-8")
    (folder / "suites" / "robot" / "mine.robot").write_text(ROBOT, encoding="utf-8")
    return folder


def with_checks(run: Path, files: tuple[Path, ...]) -> Path:
    """The run as if it had been planned with these checks."""
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for file in files:
        data = file.read_bytes()
        (run / "inputs" / file.name).write_bytes(data)
        entry = {"file": f"inputs/{file.name}", "source": str(file), "sha256": sha256_of(data)}
        document["inputs"][f"check:{file.name}"] = entry
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    allow_checks(read_run(run), files)
    return run


def test_checks_of_the_current_folder_and_those_that_are_named_are_found(own: Path, tmp_path: Path) -> None:
    more = tmp_path / "more" / "test_more.py"
    more.parent.mkdir()
    more.write_text("", encoding="utf-8")
    assert [path.name for path in find_checks(folder=own)] == ["test_mine.py", "mine.robot"]
    assert [path.name for path in find_checks([more], own)] == ["test_mine.py", "mine.robot", "test_more.py"]
    assert [path.name for path in find_checks([more.parent], tmp_path)] == ["test_more.py"]


def test_the_projects_own_checks_are_none_of_the_users() -> None:
    assert find_checks(folder=suites_folder().parent) == ()


def test_what_is_no_check_or_has_the_name_of_another_is_refused(own: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    twin = tmp_path / "test_kernel_log.py"
    twin.write_text("", encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        find_checks([tmp_path / "nosuch", tmp_path / "notes.txt", twin], own)
    first, second, third = refused.value.problems
    assert "nosuch: no such file" in first
    assert "notes.txt: a check is a file test_*.py (pytest) or *.robot" in second
    assert "has the same file name, by which a check is known" in third


def test_a_plan_keeps_a_copy_of_each_check(own: Path, tmp_path: Path) -> None:
    planned = plan_run(make_lab(tmp_path, checks=find_checks(folder=own)), tmp_path / "runs")
    assert planned.path is not None
    run = read_run(planned.path)
    assert run.input_file("check:test_mine.py").read_text(encoding="utf-8") == PYTHON
    assert run.input_file("check:mine.robot").read_text(encoding="utf-8") == ROBOT
    assert run.verify_inputs() == []


def test_own_checks_run_with_a_campaign_and_those_of_other_suites_do_not(own: Path, tmp_path: Path) -> None:
    run = with_checks(
        make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), find_checks(folder=own)
    )
    run_checks(run)
    publish_suites(run)
    checks = [check for check in read_run(run).checks if "mine." in check.id]
    assert {check.id for check in checks} == {
        "test_mine.py::test_mine",
        "test_mine.py::test_of_a_workload_that_was_not_planned",
        "mine.robot::Nothing Is Untested",
    }
    assert {check.outcome for check in checks if check.id.endswith(("test_mine", "Untested"))} == {"PASS"}
    (skipped,) = [check for check in checks if check.outcome == "SKIPPED"]
    assert skipped.reason == "no point of this run fits points(workload='no_such_*')"


@pytest.mark.parametrize("kept", ["none", "all but one", "all but one, and no plan"])
def test_planned_robot_checks_without_an_outcome_are_an_error(own: Path, tmp_path: Path, kept: str) -> None:
    files = [file for file in find_checks(folder=own) if file.suffix == ".robot"]
    run = with_checks(make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), files)
    if kept != "none":
        publish_suites(run)
        lines = (run / "checks.jsonl").read_bytes().splitlines(keepends=True)
        (run / "checks.jsonl").write_bytes(b"".join(line for line in lines if b'"id":"mine.' not in line))
    if kept.endswith("no plan"):
        events = lines_of(run / "events.jsonl")
        chained(run / "events.jsonl", [event for event in events if event["kind"] != "checks_planned"])
    opened = read_run(run)
    missing = [check.id for check in missing_checks(opened)]
    told = [one for one in evidence_findings(opened) if one.startswith("checks.jsonl: has no outcome of mine.robot")]
    assert (missing, len(told)) == ((["mine.robot::Nothing Is Untested"], 0) if kept == "all but one" else ([], 1))


def test_a_check_that_was_changed_or_is_gone_is_an_error_and_a_copy_in_the_run_never_runs(
    own: Path, tmp_path: Path
) -> None:
    files = find_checks(folder=own)
    run = with_checks(make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), files)
    files[0].write_text("def test_mine(): pass\n", encoding="utf-8")
    files[1].unlink()
    run_checks(run)
    publish_suites(run)
    found = {check.id: check for check in read_run(run).checks if "mine." in check.id}
    assert set(found) == {"test_mine.py", "mine.robot"}
    assert {check.outcome for check in found.values()} == {"ERROR"}
    assert "was changed after the plan" in found["test_mine.py"].reason
    assert "cannot be read" in found["mine.robot"].reason
