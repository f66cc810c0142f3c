# SPDX-License-Identifier: Apache-2.0
"""Tests that the report reads what the judge writes: the two were built apart and meet in verdict.json."""

from pathlib import Path
from typing import Any

import pytest

from storqual.base.text import with_minus
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from tests.support.judged_reports import QUICK
from tests.support.judged_run import suite_with
from tests.support.make_run import make_run
from tests.support.report_pages import read_page

CAMPAIGNS: dict[str, dict[str, Any]] = {
    "no difference": {},
    "a regression": {"effect": {"sym": -0.3}},
    "a refused launch": {"statuses": {f"sym/{QUICK[0]}": "refused"}},
    "noise": {"noise": 0.2, "session_effect": 0.1},
    "missing": {"missing": QUICK},
}


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=list(CAMPAIGNS))
def test_a_judged_run_makes_a_report_of_the_same_outcome(campaign: dict[str, Any], tmp_path: Path) -> None:
    run = make_run(tmp_path, points=QUICK[:3], **campaign)
    verdict = judge_run(run)
    page = read_page(build_report(run))
    assert verdict["outcome"] in page.section("outcome").text()
    assert f"Exit code {verdict['exit_code']}," in page.section("outcome").text()
    for index, row in enumerate(verdict["criteria"]):
        shown = page.find(f"c{index}").text()
        assert row["outcome"] in shown
        assert with_minus(" ".join(row["reason"].split())) in shown


def test_a_criterion_that_a_document_states_names_it_in_its_table(tmp_path: Path) -> None:
    criterion = "{id: floor, metric: iops, against: absolute, min: 1, source: 'contract 7, section <3>'}"
    run = make_run(tmp_path, points=QUICK[:1], suite=suite_with("{metric: iops}", criterion))
    judge_run(run)
    assert "; source: contract 7, section &lt;3&gt;</span></caption>" in build_report(run).read_text(encoding="utf-8")
