# SPDX-License-Identifier: Apache-2.0
"""Tests of storqual.base.text: hostile text is only text on a terminal, in a spreadsheet, in XML, on a page."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.base.text import csv_cell, terminal_text, visible_text, xml_text

anything = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=40)


def test_an_escape_sequence_is_shown_and_not_sent() -> None:
    assert terminal_text("\x1b[31mST336607LW\x9b0m") == "\\x1b[31mST336607LW\\x9b0m"


def test_a_text_stays_on_its_line() -> None:
    assert terminal_text("A1\nPASS\t1") == "A1\\nPASS\\t1"


def test_direction_and_zero_width_characters_are_written_out() -> None:
    assert visible_text("a\u202eb\u200bc\ud800") == "a\\u202eb\\u200bc\\ud800"


def test_ordinary_text_in_any_script_is_left_alone() -> None:
    for text in ("Grüße, 東京 — 10 µs ≤ 5 %", "tab\tand\nline", "\ufffd"):
        assert visible_text(text) == text


@pytest.mark.parametrize(
    "text", ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "  =1", "\t=1", "\uff1d1", '"=1', "'=1", "%0A=1", "|x"]
)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert csv_cell(text).startswith("'")


def test_numbers_stay_numbers_in_a_cell() -> None:
    assert [csv_cell(value) for value in (-1.5, 3, "-1.5e3", None, True, "ok")] == [
        "-1.5",
        "3",
        "-1.5e3",
        "",
        "true",
        "ok",
    ]


@given(anything)
def test_no_character_that_acts_reaches_a_terminal(text: str) -> None:
    """Whatever a device says, no C0, C1 or lone surrogate is sent."""
    sent = terminal_text(text)
    sent.encode("utf-8")
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in sent)


@given(anything)
def test_any_text_is_valid_in_xml(text: str) -> None:
    node = ET.Element("a", {"b": xml_text(text)})
    node.text = xml_text(text)
    assert ET.fromstring(ET.tostring(node, "unicode")).text == (xml_text(text) or None)  # noqa: S314 - own output


@given(st.lists(anything, min_size=1, max_size=4))
def test_any_text_survives_a_csv_file_as_one_cell(texts: list[str]) -> None:
    out = io.StringIO()
    csv.writer(out).writerow([csv_cell(text) for text in texts])
    rows = list(csv.reader(io.StringIO(out.getvalue())))
    assert rows == [[csv_cell(text) for text in texts]]
    assert not any(cell.lstrip()[:1] in tuple("=@") for cell in rows[0] if cell)
