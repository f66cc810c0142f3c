# SPDX-License-Identifier: Apache-2.0
"""The first screen's limits, odds and error rate, and what it says was not tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.report import build_report
from tests.attacks.before.tampering import chained
from tests.support.judged_reports import QUICK, judged
from tests.support.report_pages import Page, read_page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    run = judged(tmp_path_factory.mktemp("limits"), points=QUICK[:2], adapters=("sym",), noise=0.002)
    verdict = json.loads((run / "verdict.json").read_text())
    for row in verdict["criteria"]:
        row |= {"indifference_percent": 1.0, "bound_percent": row["shift_percent"] - 0.5}
    (run / "verdict.json").write_text(json.dumps(verdict))
    document = json.loads((run / "run.json").read_text())
    document["plan"]["alpha"] = 0.05
    document["benches"]["vbench"]["adapters"]["spare"] = {
        "model": "Tekram DC-390",
        "driver": "am53c974",
        "drives": [],
    }
    (run / "run.json").write_text(json.dumps(document))
    return read_page(build_report(run))


def test_both_limits_are_named_with_the_odds_of_a_loss_between_them(page: Page) -> None:
    text = page.section("limits").text()
    assert "IOPS: acceptable loss 1 %, a candidate shown to lose more fails; unacceptable loss 3 %" in text
    # half way is one percent from the limit, twice the reach of a one-sided bound: 1.645 standard errors to spare
    assert "a true loss of 2 % passes in about 95 of 100 such campaigns" in text


def test_the_error_rate_of_the_gate_and_the_noise_of_the_bench_are_told(page: Page) -> None:
    text = page.section("limits").text()
    assert "at most 5 % of campaigns pass a candidate with the unacceptable loss" in text
    assert "Between sessions, the baseline's IOPS vary by 0." in text


def test_what_was_not_tested_is_told_by_name(page: Page) -> None:
    text = page.section("untested").text()
    assert "Adapters: spare (Tekram DC-390)" in text
    assert "Tail latency: no required criterion is about a percentile of latency" in text
    assert "Cost per I/O: CPU time per I/O does not affect the outcome" in text
    assert "Endurance: no launch ran longer than 2 s" in text
    assert "Points of the suite: " in text
    assert "Faults: " in text
    assert "Steady state: drives were measured as they were found" in text


def test_why_cycles_were_not_counted_is_told(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], adapters=("sym",))
    assert "cycles" not in read_page(build_report(run)).section("untested").text().lower()
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    for event in events:
        if "start" in event:
            event["start"]["no_cycles"] = "no <counter>"
    chained(run / "events.jsonl", events)
    text = read_page(build_report(run)).section("untested").text()
    assert "CPU time per I/O does not affect the outcome; CPU cycles per I/O were not counted: no <counter>" in text


def test_drives_that_were_brought_to_a_steady_state_are_not_told_as_untested(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], adapters=("sym",))
    document = json.loads((run / "run.json").read_text())
    steady = {"steady": True, "rounds": 5, "drift": None, "snia": None}
    document["preconditioned"] = [{"bench": "vbench", "report": {"steady": steady}}]
    (run / "run.json").write_text(json.dumps(document))
    assert "Steady state" not in read_page(build_report(run)).section("untested").text()


def test_a_waived_failure_is_in_the_sentence_of_the_outcome(pages: dict[str, Page]) -> None:
    assert pages["waived"].root.all("p", "sentence")[0].text() == (
        "Passes with 1 waiver: BUG-4711 of J. Ortega through 2027-03-31. "
        "13 of 14 required measurements pass; 1 failed and is waived."
    )
