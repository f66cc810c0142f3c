# SPDX-License-Identifier: Apache-2.0
r"""Text from devices, drops and people made safe for a terminal, a spreadsheet, XML and a page: it stays only text.

Device strings (INQUIRY, VPD, serials) are hostile input: nothing here drops a character silently, a character that
is not seen or could act is written out as an escape such as `\x1b`, so that a reader sees that it was there.
"""

import re
import unicodedata
from fnmatch import fnmatchcase

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt (Unicode 16.0; 15.0 has the same): drawn as nothing, also
# those that have the category of a letter or a mark. What the last line has is drawn as a blank.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u2800\ufffc\U00016fe4\U0001d159]"
)
# below the first of them and of the combining marks all letters and signs are drawn; others are looked at each
_RUNS = re.compile("([\t\n -~\u00a1-\u00ac\u00ae-\u02ff]+)|(.)", re.DOTALL)
MINUS = "\u2212"
"""The sign of a negative number in what people read: reports, documents, terminals. Files for programs have `-`."""
_LINE_BREAKS = re.compile("[\t\n]")
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = "=+-@|%"
"""What spreadsheets take for the start of a formula, also in its full-width and small forms."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_drawn(character: str) -> bool:
    """Whether something is to be seen of it: no control, format, private, unassigned or wide blank character."""
    return character.isprintable() and not _UNSEEN.match(character)


def visible_text(text: str) -> str:
    """`text` with all that is not drawn (but space, tab and newline) written as its escape; for pages.

    That is what Unicode does not call printable, what it calls ignorable, and a combining mark that has no letter.
    """
    parts, has_base = [], False
    for seen, odd in _RUNS.findall(text):
        mark = unicodedata.category(odd).startswith("M") if odd else False
        drawn = bool(seen) or (_is_drawn(odd) and (has_base or not mark))
        parts.append(seen or (odd if drawn else _escape(odd)))
        has_base = drawn and not parts[-1][-1].isspace()
    return "".join(parts)


_TIED = re.compile("(?<=[0-9])([\u00a0\u2009])(?=[^\\s])")


def typeset_text(text: str) -> str:
    """The same for text of our own pages, in which a no-break or thin space ties a number to its unit."""
    return "".join(part if place % 2 else visible_text(part) for place, part in enumerate(_TIED.split(text)))


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
    return _NEGATIVE_OF_PAGE.sub(lambda match: match[0] if match[0].startswith("<") else MINUS, page)


def terminal_text(text: str) -> str:
    """`text` for a terminal: no escape sequence survives, and it stays on one line."""
    return _LINE_BREAKS.sub(lambda match: "\\t" if match.group(0) == "\t" else "\\n", visible_text(text))


def csv_cell(value: object) -> str:
    """`value` as a cell that no spreadsheet runs as a formula: such a text gets a leading apostrophe; None is empty.

    A number, also one written as text, is no formula and stays as it is. Quoting of commas is the CSV writer's; with
    semicolons between cells, what is behind one begins a cell too.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    parts = [(part, terminal_text(part)) for part in str(value).split(";")]
    formulas = (_begins_formula(raw) and not _NUMBER.fullmatch(text) for raw, text in parts)
    return ";".join("'" * formula + text for formula, (_, text) in zip(formulas, parts, strict=True))


def _begins_formula(text: str) -> bool:
    """Whether the first character that counts begins a formula: marks, blanks and quotes before it do not protect."""
    for character in text:
        category = unicodedata.category(character)
        plain = unicodedata.normalize("NFKC", character)
        if _is_drawn(character) and category[0] not in "MZ" and category not in _QUOTES and plain not in "\"'`":
            return plain[:1] in _FORMULA
    return False


_QUOTES = ("Pi", "Pf")


def xml_text(text: str) -> str:
    """`text` with only the characters that XML 1.0 can carry; `<`, `&` and quotes are left to the XML writer."""
    return _NOT_XML.sub(lambda match: _escape(match.group(0)), visible_text(text))


def fits_name(name: str, pattern: str) -> bool:
    """Whether a pattern of `*` and `?` means a name: brackets of a point or a check are no sets of letters."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


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


def plural(number: int, word: str) -> str:
    """`1 pair`, `3 pairs`, `2 launches`."""
    several = "es" if word.endswith("ch") else "s"
    return f"{number} {word}{'' if number == 1 else several}"
