# SPDX-License-Identifier: Apache-2.0
r"""Text from devices, drops and people made safe for a terminal, a spreadsheet, XML and a page: it stays only text.

Device strings (INQUIRY, VPD, serials) are hostile input: nothing here drops a character silently, a character that
could act is written out as an escape such as `\x1b`, so that a reader sees that it was there.
"""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1; soft hyphen; zero-width and direction-changing characters that make a text read
# as another one; line and paragraph separators; lone surrogates and noncharacters, which UTF-8 or XML cannot carry;
# the tag characters, which are invisible.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff"
    "\ufff0-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
MINUS = "\u2212"
"""The sign of a negative number in what people read: reports, documents, terminals. Files for programs have `-`."""
_REPLACEMENT = "\ufffd"
_LINE_BREAKS = re.compile("[\t\n]")
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# what spreadsheets take for the start of a formula, full-width forms included; white space and quotes in front of it
# do not protect
_FORMULA = re.compile("^[\\s'\"]*[=+\\-@|%\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")


def _escape(match: re.Match[str]) -> str:
    character = match.group(0)
    if character == _REPLACEMENT:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_text(text: str) -> str:
    """`text` with every control, invisible or direction-changing character written as its escape; for pages."""
    # nearly every text: what Unicode calls printable holds none of the characters above
    return text if text.isprintable() else _INVISIBLE.sub(_escape, text)


# a whole number with its sign: what only begins like one is somebody's text
_NUMBER_AHEAD = r"(?=\d[\d,.]*(?:e[+-]?\d+)?(?![\w+*/=@|-]))"
_NEGATIVE = re.compile(rf"(?<![^\s(\[\u00a0])-{_NUMBER_AHEAD}")
# what is quoted letter by letter stays, and so does what stands inside of a tag
_NEGATIVE_OF_PAGE = re.compile(
    rf"<(pre|code|style|script)\b.*?</\1>|<[^>]*>|(?<![^\s(\[\u00a0>])-{_NUMBER_AHEAD}", re.DOTALL
)


def with_minus(text: str) -> str:
    """`text` with a true minus sign before each negative number; a hyphen inside a word, a name or a date stays."""
    return _NEGATIVE.sub(MINUS, text)


def page_with_minus(page: str) -> str:
    """An HTML page whose text has true minus signs; quoted programs, logs, styles and attributes stay."""
    return _NEGATIVE_OF_PAGE.sub(lambda found: found[0] if found[0].startswith("<") else MINUS, page)


def terminal_text(text: str) -> str:
    """`text` for a terminal: no escape sequence survives, and it stays on one line."""
    return _LINE_BREAKS.sub(lambda match: "\\t" if match.group(0) == "\t" else "\\n", visible_text(text))


def csv_cell(value: object) -> str:
    """`value` as a cell that no spreadsheet runs as a formula: such a text gets a leading apostrophe; None is empty.

    A number, also one written as text, is no formula and stays as it is. Quoting of commas is the CSV writer's.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    raw = str(value)
    text = terminal_text(raw)
    formula = _FORMULA.match(raw) or _FORMULA.match(text)
    return "'" + text if formula and not _NUMBER.match(text) else text


def xml_text(text: str) -> str:
    """`text` with only the characters that XML 1.0 can carry; `<`, `&` and quotes are left to the XML writer."""
    return _NOT_XML.sub(_escape, visible_text(text))


_TELLING = ("Kernel panic", "BUG:", "Oops", "panic")


def telling_line(text: str) -> str:
    """The line of a console's or log's end that says most: the panic before what led to it, else the first one.

    Empty for a text without words.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for word in _TELLING for line in lines if word in line), lines[0] if lines else "")


OUTCOME_COLOURS = {
    "PASS": "green",
    "MARGINAL": "yellow",
    "FAIL": "bold red",
    "INCONCLUSIVE": "magenta",
    "ERROR": "bold magenta",
    "SKIPPED": "dim",
}
