# SPDX-License-Identifier: Apache-2.0
"""The engineers' log of a verdict: one item per criterion, errors as JUnit errors, waived failures expected."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from storqual.pytest_plugin import publish_log
from tests.support.hostile_payloads import PAYLOADS, infect
from tests.support.judged_reports import QUICK, judged

HOSTILE = "<img src=x onerror=alert(1)>"
WORDS = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    marginal = {item.attrib["name"]: item.attrib["value"] for item in cases[1].iter("property")}
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


ROW = {"tbody", "tr", "td", "div", "span", "br", "a"}
"""What pytest-html itself writes for a test."""


class Elements(HTMLParser):
    """The elements of a piece of a page, with their attributes."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@pytest.fixture(scope="module")
def hostile_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a run with every payload in every field: failures, what could not be judged, a check, a waiver."""
    run = judged(
        tmp_path_factory.mktemp("hostile"),
        points=QUICK[:2],
        noise=0.002,
        effect={"sym": -0.1},
        statuses={f"mpt/{QUICK[1]}": "refused"},
        waived=[f"iops@sym/{QUICK[0]}"],
        checks=[{"id": "link_rate", "outcome": "FAIL", "reason": "3 Gb/s", "adapter": "mpt"}],
    )
    infect(run, PAYLOADS)
    publish_log(run)
    return run


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def test_junit_is_valid_xml_and_tells_the_outcomes(hostile_log: Path) -> None:
    source = (hostile_log / "junit.xml").read_text(encoding="utf-8")
    assert "<!DOCTYPE" not in source
    tree = ET.fromstring(source)  # noqa: S314 - own output
    names = {node.tag for node in tree.iter()}
    assert names <= {"testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped"}
    assert {"failure", "error"} <= names
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", source)


def test_the_rows_of_the_log_hold_no_element_of_a_device(hostile_log: Path) -> None:
    source = (hostile_log / "pytest.html").read_text(encoding="utf-8")
    blob = next(fields["data-jsonblob"] for tag, fields in Elements(source).found if "data-jsonblob" in fields)
    rows = [text for text in texts(json.loads(blob)) if "<" in text]
    assert rows
    for row in rows:
        for tag, attributes in Elements(row).found:
            assert tag in ROW, row[:200]
            assert not any(name.startswith("on") for name in attributes), attributes
            assert not attributes.get("href", "").strip().lower().startswith(("javascript", "data")), attributes


def test_the_page_around_them_holds_only_its_own(hostile_log: Path) -> None:
    """One script and one style sheet, both pytest-html's; nothing else is active."""
    elements = Elements((hostile_log / "pytest.html").read_text(encoding="utf-8")).found
    names = [tag for tag, _ in elements]
    assert names.count("script") == 1
    assert names.count("style") == 1
    assert not {"iframe", "object", "embed", "svg", "math", "base", "form"} & set(names)
    assert not [
        attributes
        for _, attributes in elements
        if any(name in attributes for name in ("onerror", "onload", "onmouseover", "onfocus"))
    ]
