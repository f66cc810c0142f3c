# SPDX-License-Identifier: Apache-2.0
"""Tests that each hostile string, alone in its field, arrives in every output, and arrives as text.

A formula acts only where it begins a cell, a command only where it begins a line: here nothing stands before it.
"""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from storqual.base.text import terminal_text, visible_text, xml_text
from storqual.pytest_plugin import publish_log
from storqual.report import build_report
from storqual.report.export import criteria_csv, github_annotations, gitlab_code_quality, open_metrics, write_ocp
from storqual.report.material import read_material
from storqual.report.summary import print_summary
from storqual.report.trend import build_trend
from tests.support.hostile_payloads import PAYLOADS, chunks, infect
from tests.support.judged_reports import QUICK, judged
from tests.support.report_pages import read_page
from tests.unit.storqual.report.test_hostile import assert_inert

pytestmark = pytest.mark.slow

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def together(text: str) -> str:
    """As a page shows it: white space put together."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a criterion for each payload, which is its name and its reason; the payload is also its waiver's."""
    run = judged(tmp_path_factory.mktemp("alone"), points=QUICK[:1], noise=0.002, effect={"sym": -0.1})
    verdict = json.loads((run / "verdict.json").read_text())
    first = next(row for row in verdict["criteria"] if row["outcome"] == "FAIL")
    verdict["criteria"] = [
        {
            **first,
            "id": payload,
            "reason": payload,
            "waiver": {"owner": payload, "reason": payload, "reference": payload, "expiry": "2027-03-31"}
            if number % 2
            else None,
        }
        for number, payload in enumerate(PAYLOADS)
    ]
    (run / "verdict.json").write_text(json.dumps(verdict))
    return run


def test_in_the_report(run: Path) -> None:
    page = read_page(build_report(run))
    assert_inert(page)
    told = {together(cell.all("p")[0].text()) for cell in page.section("criteria").all("td", "why")}
    for number, payload in enumerate(PAYLOADS):
        shown = together(visible_text(payload))
        expected = together(f"{shown} waived by {visible_text(payload)} until 2027-03-31") if number % 2 else shown
        assert expected in told, payload
    owners = {
        together(row.children[1].text()) for row in page.section("coverage").all("tr") if len(row.children) == 5
    }
    assert {together(visible_text(payload)) for payload in PAYLOADS[1::2]} <= owners


def test_in_a_spreadsheet(run: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(criteria_csv(read_material(run)), newline="")))
    assert len(rows) == len(PAYLOADS)
    for row, payload in zip(rows, PAYLOADS, strict=True):
        for cell in (row["id"], row["reason"]):
            assert cell.removeprefix("'") == terminal_text(payload).removeprefix("'"), payload
            assert not re.match(r"\s*[=+@|%\t\r]|-\D", cell), cell
            assert not CONTROL.search(cell)


def test_in_lines_for_machines(run: Path) -> None:
    lines = [json.loads(line) for line in write_ocp(run).read_text(encoding="utf-8").splitlines()]
    diagnoses = [line["testStepArtifact"]["diagnosis"] for line in lines if "diagnosis" in str(line)]
    assert [one["message"].partition(" (waived by ")[0] for one in diagnoses] == list(map(visible_text, PAYLOADS))
    text = open_metrics(read_material(run))
    for payload in PAYLOADS:
        label = visible_text(payload).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        assert f'criterion="{label}"' in text, payload
    found = json.loads(gitlab_code_quality(read_material(run), Path.cwd()))
    assert len(found) >= len(PAYLOADS)
    told = "\n".join(one["description"] for one in found)
    assert not [payload for payload in PAYLOADS if terminal_text(payload) not in told]
    commands = github_annotations(read_material(run), Path.cwd()).splitlines()
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in commands)


def test_in_the_log_of_the_engineers(run: Path) -> None:
    publish_log(run)
    source = (run / "junit.xml").read_text(encoding="utf-8")
    assert not CONTROL.search(source)
    told = together(" ".join(text for node in ET.fromstring(source).iter() for text in _texts(node)))  # noqa: S314
    assert not [payload for payload in PAYLOADS if together(xml_text(payload)) not in told]


def _texts(node: ET.Element) -> list[str]:
    return [node.text or "", *node.attrib.values()]


def test_on_a_terminal(run: Path) -> None:
    out = io.StringIO()
    print_summary(
        json.loads((run / "verdict.json").read_text()), json.loads((run / "run.json").read_text()), file=out
    )
    assert not CONTROL.search(out.getvalue())
    assert sum(terminal_text(payload) in out.getvalue() for payload in PAYLOADS) >= 40


@pytest.mark.parametrize("payloads", chunks(8))
def test_in_the_trend_of_a_lab(payloads: tuple[str, ...], tmp_path: Path) -> None:
    run = judged(tmp_path / "lab", points=QUICK[:1], effect={"sym": -0.1}, waived=[f"iops@sym/{QUICK[0]}"])
    infect(run, payloads)
    page = read_page(build_trend([tmp_path / "lab"], tmp_path / "trend.html"))
    assert not CONTROL.search((tmp_path / "trend.html").read_text(encoding="utf-8"))
    told = together(visible_text("".join(payloads)))
    for section in ("campaigns", "waivers", "drops"):
        assert told in page.section(section).text(), section
    active = {"script", "img", "iframe", "object", "embed", "form", "base", "math"}
    assert not active & {node.name for node in page.root.walk()}
    assert not [name for node in page.root.walk() for name in node.attributes if name.startswith("on")]
    hrefs = {node.attributes.get("href", "#") for node in page.root.walk()}
    assert all(re.fullmatch(r"#[a-z0-9-]*|data:,|lab/[0-9TZa-z-]+/report\.html", href) for href in hrefs), hrefs
