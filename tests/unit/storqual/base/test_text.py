# SPDX-License-Identifier: Apache-2.0
"""Tests of storqual.base.text: hostile text is only text on a terminal, in a spreadsheet, in XML, on a page."""

import csv
import io
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.base.text import csv_cell, telling_line, terminal_text, typeset_text, visible_text, xml_text

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


# DerivedCoreProperties.txt of Unicode 16.0, Default_Ignorable_Code_Point, as it is printed there
IGNORABLE = """\
00AD 034F 061C 115F..1160 17B4..17B5 180B..180D 180E 180F 200B..200F 202A..202E 2060..2064 2065 2066..206F 3164
FE00..FE0F FEFF FFA0 FFF0..FFF8 1BCA0..1BCA3 1D173..1D17A E0000 E0001 E0002..E001F E0020..E007F E0080..E00FF
E0100..E01EF E01F0..E0FFF"""
BLANK = {0x2800, 0x16FE4, 0x1D159, 0xFFFC}
EVERYTHING = [chr(code) for code in range(0x110000)]


def ignorable() -> set[int]:
    ends = [[int(end, 16) for end in one.split("..")] for one in IGNORABLE.split()]
    return {code for end in ends for code in range(end[0], end[-1] + 1)}


@pytest.mark.parametrize("write", [visible_text, terminal_text, xml_text, csv_cell])
def test_of_all_characters_only_those_pass_that_are_seen(write: Callable[[str], str]) -> None:
    """Behind a letter, so that a combining mark has something to stand on."""
    ignored = ignorable() | BLANK
    for character in EVERYTHING:
        shown = write("a" + character)[1:]
        assert shown.isprintable() or (shown in "\t\n" and write in (visible_text, xml_text))
        assert not any(ord(one) in ignored for one in shown)
        if shown != character:
            assert shown.startswith("\\")
            assert shown.isascii()


def test_all_that_is_drawn_is_left_as_it_is() -> None:
    """Letters, marks on a letter, digits, punctuation and symbols of every script."""
    ignored = ignorable() | BLANK
    kept = [one for one in EVERYTHING if one.isprintable() and ord(one) not in ignored]
    assert len(kept) > 130_000
    assert [one for one in kept if visible_text("a" + one) != "a" + one] == []


@pytest.mark.parametrize("before", ["", " ", "\n", "\t", "\u200b", "\u3164", "a "])
def test_a_combining_mark_on_nothing_is_written_out(before: str) -> None:
    assert visible_text(f"{before}\u0301x").endswith("\\u0301x")
    assert visible_text(f"{before}e\u0301\u0302x").endswith("e\u0301\u0302x")


def test_a_tied_unit_of_our_own_stays_on_a_page_and_no_other_wide_space() -> None:
    assert typeset_text("5\u00a0% and 3\u2009ms") == "5\u00a0% and 3\u2009ms"
    assert typeset_text("a\u00a0b 5\u2003x 5\u00a0 5\u00a0") == "a\\xa0b 5\\u2003x 5\\xa0 5\\xa0"


MARKS = [
    *"\ufeff\u200b\u2060\u00a0\u3000\u2800\u3164\t\r\n '\"\u201c\uff02\u0301\U000e0001\x00\x1b`\u00ab",
    "\r\n",
    "\ufeff \u200b'",
]


@pytest.mark.parametrize("start", [*"=+-@|%", *"\uff1d\uff0b\uff0d\uff20\uff5c\uff05\ufe66\ufe62\ufe63\ufe6b"])
@pytest.mark.parametrize("mark", ["", *MARKS])
def test_a_formula_behind_a_mark_gets_an_apostrophe(mark: str, start: str) -> None:
    for text in (f"{mark}{start}cmd|' /C calc'!A0", f"{mark}{start}1{start}1"):
        assert csv_cell(text).startswith("'")


@pytest.mark.parametrize("mark", MARKS)
def test_a_word_behind_a_mark_gets_none(mark: str) -> None:
    assert not csv_cell(f"{mark}a=1").startswith("'") or mark.startswith("'")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("storqual: bench start\n[ 2.3] Kernel panic - not syncing: VFS\n[ 2.4] Call Trace:\n", "Kernel panic"),
        ("[ 1.0] BUG: unable to handle page fault\n[ 1.2] Kernel panic - not syncing: Fatal", "Kernel panic"),
        ("[ 1.2] Kernel panic - not syncing: A\n[ 1.9] ---[ end Kernel panic - not syncing: A ]---", "syncing: A"),
        ("one\n[ 1.0] BUG: soft lockup\ntwo", "BUG: soft lockup"),
        ("\n\n  kernel 6.12 did not boot\nsecond line", "kernel 6.12 did not boot"),
    ],
)
def test_the_panic_is_told_before_what_led_to_it(text: str, line: str) -> None:
    assert telling_line(text).endswith(line) or line in telling_line(text)
    assert "end Kernel panic" not in telling_line(text)


def test_a_text_without_words_is_told_as_nothing() -> None:
    assert telling_line(" \n\n") == ""
