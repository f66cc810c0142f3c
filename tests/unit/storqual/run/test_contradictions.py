# SPDX-License-Identifier: Apache-2.0
"""A chain of events that somebody made anew agrees with the files; what they say of each other still has to."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from storqual.base.files import project_root
from storqual.signoff.findings import run_findings
from tests.attacks.before import KINDS
from tests.attacks.before.tampering import made_anew
from tests.attacks.finished_run import copy_of
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS
from tests.support.turn_records import REQUEST, plan_campaign

NAMES = (
    *("what_was_measured_is_skipped_by_the_plan_or_not_in_it", "launches_of_batches_that_ended_are_left_out"),
    *("a_launch_before_another_is_left_out_of_a_batch_that_was_lost", "a_session_lacks_a_batch_that_was_measured"),
    *("run_json_says_otherwise_than_its_inputs", "a_virtual_bench_is_called_hardware"),
    "a_point_is_said_to_be_of_another_workload_or_level",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("whole"), points=POINTS[:2], adapters=("sym",))


def test_a_run_whose_chain_was_made_anew_is_whole(whole: Path, tmp_path: Path) -> None:
    run = copy_of(whole, tmp_path)
    made_anew(run)
    assert run_findings(run) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_contradicts_itself_is_found(whole: Path, tmp_path: Path, name: str) -> None:
    for number in range(6):
        run = copy_of(whole, tmp_path)
        KINDS[name](run, random.Random(number))
        assert run_findings(run), number


def test_a_suite_without_a_name_is_called_as_the_file_that_was_planned(tmp_path: Path) -> None:
    shipped = (project_root() / "suites" / "robustness.suite.yml").read_text(encoding="utf-8")
    suite = tmp_path / "nameless.suite.yml"
    suite.write_text(re.sub(r"(?m)^name: .*\n", "", shipped), encoding="utf-8")
    run = plan_campaign(replace(REQUEST, suite=str(suite)), tmp_path / "runs")
    assert not [finding for finding in run_findings(run) if "suite" in finding]
