# SPDX-License-Identifier: Apache-2.0
"""Hand-written suites in Python: the README's own example, and what becomes of each way a test can end."""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from storqual.checks import pytest_fixtures
from storqual.judge.verdict import judge_run
from storqual.pytest_plugin import run_checks
from storqual.run import append_event, finish_run, read_run
from storqual.run.closing import close_run
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

README = Path(__file__).resolve().parents[4] / "suites" / "README.md"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    (block,) = re.findall(r"```python check\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "test_example.py"
    file.write_text(block)
    return file


def test_the_documented_example_becomes_checks_of_the_verdict(example: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, finished=False, noise=0.002, cpu_effect=0.5)
    added = run_checks(run, [example])
    checks = read_run(run).checks
    assert len(checks) == added
    counted = Counter((check.id, check.outcome) for check in checks)
    # two adapters; two of the four points are random with a queue depth of 16
    assert counted == {
        ("no_launch_stalls", "PASS"): 4,
        ("test_example.py::test_service_demand_at_this_point", "FAIL"): 8,
        ("test_example.py::test_every_bench_was_looked_at_before_and_after", "PASS"): 1,
    }
    stalls = {(check.adapter, check.point) for check in checks if check.id == "no_launch_stalls"}
    assert stalls == {(adapter, point) for adapter in ("sym", "mpt") for point in POINTS[1:3]}
    append_event(run, "run_finished", {})
    finish_run(run)
    close_run(run)
    verdict = judge_run(run)
    judged = {row["id"]: row["required"] for row in verdict["criteria"] if row["against"] == "check"}
    assert judged == {
        "no_launch_stalls": True,
        "test_example.py::test_service_demand_at_this_point": False,
        "test_example.py::test_every_bench_was_looked_at_before_and_after": True,
    }
    assert verdict["outcome"] in ("PASS", "MARGINAL"), "an informative check decides nothing"


ENDS = Path(__file__).with_suffix(".ends").read_text(encoding="utf-8")


def test_each_way_to_end_has_its_outcome(tmp_path: Path) -> None:
    run = make_run(tmp_path, finished=False)
    suite = tmp_path / "test_ends.py"
    suite.write_text(ENDS)
    run_checks(run, [suite])
    outcomes = {check.id.partition("::")[2]: (check.outcome, check.reason) for check in read_run(run).checks}
    assert outcomes["test_passes"] == (
        "PASS",
        'it holds; it records no details (a test can: record_property("looked_at", ...))',
    )
    assert outcomes["test_fails"] == ("FAIL", "another run")
    assert outcomes["test_breaks"] == ("ERROR", "KeyError: 'nothing'")
    assert outcomes["test_cannot_start"] == ("ERROR", "OSError: the archive is not mounted")
    assert outcomes["test_is_skipped"] == ("SKIPPED", "Skipped: no drive of that kind".removeprefix("Skipped: "))


NOTHING = {"samples": 0, "sha256": "0" * 64}
"""What was collected of a batch without samples."""


def test_a_block_that_was_stopped_leaves_the_kernel_log_unjudged(tmp_path: Path) -> None:
    run = make_run(tmp_path, finished=False)
    suite = README.parent / "test_kernel_log.py"
    stopped = {
        "bench": "vbench",
        "session": "s01",
        "block": "s01-b09",
        "outcome": "stopped",
        "message": "drive gone",
    } | NOTHING
    run_checks(run, [suite])
    append_event(run, "block_finished", stopped)
    run_checks(run, [suite])
    before, after = ((check.outcome, check.reason) for check in read_run(run).checks)
    assert before[0] == "PASS"
    assert after[0] == "ERROR"
    assert "batch s01-b09 was stopped: drive gone" in after[1]


def test_a_block_that_a_reset_ended_is_judged_once_the_rest_of_it_was_measured(tmp_path: Path) -> None:
    suite = README.parent / "test_kernel_log.py"
    reset = {"bench": "vbench", "session": "s01", "block": "s01-b01", "outcome": "lost", "message": "reset"} | NOTHING
    whole = make_run(tmp_path / "whole", finished=False)
    append_event(whole, "block_finished", reset)
    run_checks(whole, [suite])
    assert [check.outcome for check in read_run(whole).checks] == ["PASS"]
    rest = make_run(tmp_path / "rest", finished=False, missing=[POINTS[0]], missing_in=("baseline", "candidate"))
    append_event(rest, "block_finished", reset)
    run_checks(rest, [suite])
    assert ["batch s01-b01 was lost: reset" in check.reason for check in read_run(rest).checks] == [True]


def test_a_misspelt_marker_breaks_the_suite_instead_of_running_everywhere(tmp_path: Path) -> None:
    run = make_run(tmp_path, finished=False)
    suite = tmp_path / "test_typo.py"
    suite.write_text("import pytest\n\n@pytest.mark.pionts(workload='x')\ndef test_it(run): pass\n")
    run_checks(run, [suite])
    (check,) = read_run(run).checks
    assert (check.outcome, "'pionts' not found" in check.reason) == ("ERROR", True)


LIVE = Path(__file__).with_suffix(".live").read_text(encoding="utf-8")


def test_benches_of_an_inventory_are_handed_to_tests_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[str | None] = []

    def answer(playbook: str, _: object, *, limit: str, variables: object) -> dict[str, Any]:
        limits.append(limit)
        assert (playbook, variables) == ("facts.yml", {"look_depths": {}})
        return {limit: {"facts": {"kernel": {"release": "6.1.0-47-amd64"}}, "kernel_log": ["quiet"]}}

    monkeypatch.setattr(pytest_fixtures, "ask_benches", answer)
    pytest_fixtures.live_bench.cache_clear()
    suite = tmp_path / "test_live.py"
    suite.write_text(LIVE)
    words = ["-p", "storqual.pytest_plugin", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={tmp_path}"]
    inventory = str(README.parents[1] / "inventories" / "local")
    assert pytest.main([str(suite), "-q", *words, "--storqual-inventory", inventory]) == pytest.ExitCode.OK
    assert limits == ["this_machine"]
