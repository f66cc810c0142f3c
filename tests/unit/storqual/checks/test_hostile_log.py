# SPDX-License-Identifier: Apache-2.0
"""junit.xml and pytest.html of a run whose every text is hostile: valid XML, no element that a device brought in."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from storqual.pytest_plugin import publish_log
from tests.support.hostile_payloads import PAYLOADS, infect
from tests.support.judged_reports import QUICK, judged

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
        """Keep an element."""
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    """All texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def test_junit_is_valid_xml_and_tells_the_outcomes(log: Path) -> None:
    source = (log / "junit.xml").read_text(encoding="utf-8")
    assert "<!DOCTYPE" not in source
    tree = ET.fromstring(source)  # noqa: S314 - own output
    names = {node.tag for node in tree.iter()}
    assert names <= {"testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped"}
    assert {"failure", "error"} <= names
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", source)


def test_the_rows_of_the_log_hold_no_element_of_a_device(log: Path) -> None:
    source = (log / "pytest.html").read_text(encoding="utf-8")
    blob = next(own["data-jsonblob"] for tag, own in Elements(source).found if "data-jsonblob" in own)
    rows = [text for text in texts(json.loads(blob)) if "<" in text]
    assert rows
    for row in rows:
        for tag, attributes in Elements(row).found:
            assert tag in ROW, row[:200]
            assert not any(name.startswith("on") for name in attributes), attributes
            assert not attributes.get("href", "").strip().lower().startswith(("javascript", "data")), attributes


def test_the_page_around_them_holds_only_its_own(log: Path) -> None:
    """One script and one style sheet, both pytest-html's; nothing else is active."""
    found = Elements((log / "pytest.html").read_text(encoding="utf-8")).found
    names = [tag for tag, _ in found]
    assert names.count("script") == 1
    assert names.count("style") == 1
    assert not {"iframe", "object", "embed", "svg", "math", "base", "form"} & set(names)
    assert not [
        own for _, own in found if any(name in own for name in ("onerror", "onload", "onmouseover", "onfocus"))
    ]
