# SPDX-License-Identifier: Apache-2.0
"""The engineers' log of a verdict: one item per criterion, errors as JUnit errors, waived failures expected."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from storqual.pytest_plugin import publish_log
from tests.support.judged_reports import QUICK, judged

HOSTILE = "<img src=x onerror=alert(1)>"
WORDS = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a criterion of each outcome, one of them waived, and hostile texts."""
    run = judged(tmp_path_factory.mktemp("log"), points=QUICK, noise=0.002)
    verdict = json.loads((run / "verdict.json").read_text())
    rows = [row for row in verdict["criteria"] if row["metric"] == "iops"][: len(WORDS) + 1]
    for row, word in zip(rows, [*WORDS, "FAIL"], strict=True):
        row.update(outcome=word, reason=f"{word} because of {HOSTILE}")
    rows[-1]["waiver"] = {"owner": "J. Ortega", "expiry": "2027-03-31"}
    verdict["criteria"] = rows
    (run / "verdict.json").write_text(json.dumps(verdict))
    publish_log(run)
    return run


def test_each_outcome_is_shown_as_the_design_says(log: Path) -> None:
    cases = ElementTree.parse(log / "junit.xml").getroot().findall(".//testcase")  # noqa: S314 - ours
    shown = [next((child.tag for child in case if child.tag != "properties"), "pass") for case in cases]
    assert shown == ["pass", "pass", "failure", "error", "error", "skipped", "skipped"]
    marginal = {one.attrib["name"]: one.attrib["value"] for one in cases[1].iter("property")}
    assert marginal["outcome"] == "MARGINAL"
    assert marginal["metric"] == "iops"


def test_names_are_unique_and_say_metric_and_place(log: Path) -> None:
    cases = ElementTree.parse(log / "junit.xml").getroot().findall(".//testcase")  # noqa: S314 - ours
    names = [case.attrib["name"] for case in cases]
    assert len(set(names)) == len(names)
    assert names[0] == f"iops@sym/{QUICK[0]}"


def test_the_page_holds_no_markup_of_a_device(log: Path) -> None:
    """pytest-html writes ids and extras as they are; so none arrives there."""
    page = (log / "pytest.html").read_text(encoding="utf-8")
    assert HOSTILE not in page
