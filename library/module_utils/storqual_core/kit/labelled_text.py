# SPDX-License-Identifier: Apache-2.0
"""What tools print: JSON with notes around it, and tables of `Label   : value` lines with headings, notes and sizes.

The readers of a value (`as_mapping` and its kin) are total, because a tool's next release may print something else.

Releases of one tool write one label in several ways (`Reported Channel,Device(T:L)`, `Reported channel, device`), so
labels are compared without case, blanks, punctuation and what stands in brackets (`Fields`). A size is printed
rounded, and stands for every size that it can mean (`size_range`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Match, Sequence

from .errors import ToolError

_OPENING = re.compile(r"^\{", re.MULTILINE)
_TRIES = 64
_MOST = 10**40
# what printf makes of numbers that are none
_NO_NUMBER = re.compile(r":\s*(-?(?:nan|inf(?:inity)?))\b", re.IGNORECASE)
_COMPLAINTS = ("error", "errors", "message", "errmsg")
BYTE_ORDER_MARK = "\ufeff"
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,40}(?:\.0*)?\s*\Z")


class Repeated(Dict[str, Any]):
    """An object in which the same key stands more than once: which value is meant is not known. The last is kept."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    return body if len(body) == len(pairs) else Repeated(body)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def find_spans(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Every complete JSON object that begins at the start of a line, with its first place and the one behind it.

    An object with a key twice is a `Repeated`.
    A few dozen beginnings are tried, or a text of braces would take for ever.
    """
    end = 0
    for match in islice(_OPENING.finditer(text), _TRIES):
        if match.start() < end:
            continue
        try:
            body, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield body, match.start(), end


def find_objects(text: str) -> tuple[list[dict[str, Any]], str]:
    """Every complete JSON object that begins at the start of a line, and all the text that is no part of one."""
    text = text.lstrip(BYTE_ORDER_MARK)
    spans = list(find_spans(text))
    ends = [0, *(end for _, _, end in spans)]
    starts = [*(start for _, start, _ in spans), len(text)]
    return [body for body, _, _ in spans], "\n".join(text[end:start] for end, start in zip(ends, starts))


def the_object(text: str, tool: str, key: str = "") -> dict[str, Any]:
    """The first object in `text` (with `key` the first that has it). Raises ToolError with what was said instead."""
    objects, rest = find_objects(text)
    for body in objects:
        if not key or key in body:
            return body
    if objects:
        complaint = next((as_text(objects[0][name]) for name in objects[0] if plain_label(name) in _COMPLAINTS), "")
        reason = complaint or f"but one with {', '.join(objects[0]) or 'nothing in it'}"
        raise ToolError(f"{tool} printed no JSON object with {key!r}, {reason}"[:300])
    raise ToolError(f"{tool} printed no JSON object: {why_unread(rest)}")


def first_line(text: str) -> str:
    """The beginning of the first line that is not empty; `nothing` where there is none: what a tool said instead."""
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "nothing")


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not empty, each with its number, without blanks at their ends."""
    for number, line in enumerate(text.lstrip(BYTE_ORDER_MARK).splitlines(), start=1):
        if line.strip():
            yield number, line.rstrip()


def line_error(tool: str, number: int, line: str, expected: str) -> ToolError:
    """The refusal of a line: what was expected of it, and what stands there."""
    shown = "".join(char if char.isprintable() else "?" for char in line.strip()[:120])
    return ToolError(f"{tool}: line {number} is not {expected}: {shown!r}")


def why_unread(text: str) -> str:
    """Why the JSON of a text cannot be read: where it stops being JSON, and what stands there; or what was said."""
    start = _OPENING.search(text)
    if start is None:
        return first_line(text)
    try:
        _DECODER.raw_decode(text, start.start())
    except json.JSONDecodeError as problem:
        if not text[problem.pos :].strip() or "Unterminated" in problem.msg:
            last = text.rstrip().rpartition("\n")[2].strip()
            return f"it ends before it is whole, after {last[-120:]!r}"
        line = text.splitlines()[problem.lineno - 1].strip() if problem.lineno <= len(text.splitlines()) else ""
        word = _NO_NUMBER.search(line)
        what = f"{word.group(1)} is no number" if word else "no JSON"
        return f"line {problem.lineno} is not JSON ({what}): {line[:200]}"
    except (ValueError, RecursionError):
        return "it has numbers that are too long, or is nested too deeply"
    return "nothing"


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value as text without blanks and NULs at its end; `` for null, lists and objects."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    return str(value).rstrip("\0 ")


def as_int(value: object) -> int | None:
    """A whole number, printed as a number or in a text; None for anything else, a localised number included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        # NaN and what is larger than any size or count are none
        return int(value) if abs(value) < _MOST and value == int(value) else None
    if isinstance(value, str) and _WHOLE.match(value):
        return int(value.strip().partition(".")[0])
    return None


# the first colon with a blank or nothing behind it: labels and values have colons of their own (`(T:L)`, `0:0`)
_LABEL = re.compile(r"^(?P<label>[^\s:][^\n]*?)\s*:(?:\s+(?P<value>.*))?$")
_SIZE = re.compile(
    r"^\s*(?P<number>[0-9]{1,18}(?:\.(?P<fraction>[0-9]{1,9}))?)\s*(?P<prefix>[KMGTP])(?P<binary>i)?B?\s*$",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\([^()]*\)")
_UNIT = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"\s*(-?[0-9]{1,19})\b")


@dataclass(frozen=True)
class PrintedLine:
    """One line that is not empty: blanks in front of it, its text, and label and value where it has a colon."""

    indent: int
    text: str
    label: str = ""
    value: str = ""

    @property
    def labelled(self) -> bool:
        return bool(self.label)


_NO_VALUE = frozenset(
    ("", "-", "--", "---", "?", "n/a", "na", "none", "unknown", "not available", "not applicable", "not reported")
)


def printed_value(text: str) -> str:
    """A value, or nothing for the words with which tools say that there is none."""
    return "" if text.strip().lower() in _NO_VALUE else text.strip()


def goes_on(before: PrintedLine | None, line: PrintedLine) -> bool:
    """Whether a line is the rest of the value of the labelled line right before it.

    Values are wrapped with the rest further in than the label and without one, in brackets, or behind a colon alone;
    what has an open bracket or a comma at its end is not ended, whatever the rest looks like.
    """
    if before is None or not (before.value or line.text.startswith(":")):
        return False
    if line.text.startswith(":") or (line.text.startswith("(") and line.indent > before.indent):
        return True
    unended = before.value.endswith(",") or before.value.count("(") > before.value.count(")")
    deeper = line.indent > before.indent
    return (deeper and (unended or not line.labelled)) or (unended and not line.labelled)


def joined(before: PrintedLine, line: PrintedLine) -> PrintedLine:
    """A labelled line with the rest of its value."""
    rest = line.text.lstrip(": ")
    value = f"{before.value} {rest}".strip()
    return PrintedLine(before.indent, f"{before.text} {rest}", before.label or before.text, value)


def read_lines(text: str, ended: Callable[[PrintedLine], bool] | None = None) -> Iterator[PrintedLine]:
    """The lines of a text that are not empty, values that are wrapped as one line each.

    `ended`: whether a line begins something of its own, or ends what is before it, however it is indented.
    """
    before: PrintedLine | None = None
    for line in map(read_line, text.lstrip(BYTE_ORDER_MARK).splitlines()):
        if line is not None and before is not None and not (ended and ended(line)) and goes_on(before, line):
            before = joined(before, line)
            continue
        if before is not None:
            yield before
        before = line
    if before is not None:
        yield before


def read_line(line: str) -> PrintedLine | None:
    """A line taken apart; None when nothing is on it."""
    text = line.strip()
    if not text:
        return None
    wide = line.expandtabs()
    indent = len(wide) - len(wide.lstrip())
    match = _LABEL.match(text)
    if match is None:
        return PrintedLine(indent, text)
    return PrintedLine(indent, text, match.group("label").strip(), (match.group("value") or "").strip())


def printed_size(text: str, *, base: int) -> int | None:
    """Bytes of `4.55 TB` or `953869 MB`, as far as it was printed; None when it is no size.

    `base` is what the tool means by a prefix: 1000 as on a drive's label, 1024 as most tools count; `TiB` says so.
    """
    match = _SIZE.match(text)
    return None if match is None else round(float(match.group("number")) * _unit(match, base))


def size_range(text: str, *, base: int, off: int = 1) -> tuple[int, int] | None:
    """The least and the greatest size in bytes that `960 GB` or `457862 MB` can mean; None when it is no size.

    Tools round up, down or to the nearest without saying which, so the last digit can be one off either way, or
    `off` where a tool is known to round twice.
    """
    match = _SIZE.match(text)
    if match is None:
        return None
    unit, digits = _unit(match, base), len(match.group("fraction") or "")
    number = round(float(match.group("number")) * 10**digits)
    low, high = max(number - off, 0) * unit // 10**digits, -(-(number + off) * unit // 10**digits)
    return low, high


def _unit(match: Match[str], base: int) -> int:
    power = "kmgtp".index(match.group("prefix").lower()) + 1
    unit: int = (1024 if match.group("binary") else base) ** power
    return unit


@lru_cache(maxsize=8192)
def plain_label(label: str) -> str:
    """A label as `Fields` compares it: `reportedchanneldevice` for `Reported Channel,Device(T:L)`."""
    bare = "".join(char for char in _BRACKETS.sub("", label).lower() if char.isalnum())
    return bare or label.strip().lower()


def respelt(value: object, names: Mapping[str, str]) -> object:
    """Parsed JSON with the names of its objects in the spelling of `names`, which are by their plain form.

    A name that would come twice in an object stays as it was printed.
    """
    if isinstance(value, list):
        return [respelt(inner, names) for inner in value]
    if not isinstance(value, dict):
        return value
    fields: dict[str, object] = {}
    for key, inner in value.items():
        printed = str(key)
        name = names.get(plain_label(printed), printed)
        fields[printed if name in value and name != printed else name] = respelt(inner, names)
    return fields


class Fields:
    """Labels and values of one object, looked up by any spelling of a label.

    A label that comes twice keeps both values: the first under its name, a later one as `label #2`.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._printed: dict[str, str] = {}
        self._plain: dict[str, str] = {}
        for label, value in (given or {}).items():
            self.add(label, value)

    def add(self, label: str, value: str) -> None:
        number, name = 1, label
        while name in self._printed:
            number += 1
            name = f"{label} #{number}"
        self._printed[name] = value
        self._plain.setdefault(plain_label(label), value)

    def get(self, *labels: str) -> str:
        """The value under the first of `labels` that is there, in any spelling; empty when none is."""
        for label in labels:
            if plain_label(label) in self._plain:
                return self._plain[plain_label(label)]
        return ""

    def __contains__(self, label: str) -> bool:
        return plain_label(label) in self._plain

    def __iter__(self) -> Iterator[str]:
        return iter(self._printed)

    def __len__(self) -> int:
        return len(self._printed)

    def printed(self) -> dict[str, str]:
        return dict(self._printed)

    def without(self, *labels: str) -> dict[str, str]:
        known = {plain_label(label) for label in labels}
        return {name: value for name, value in self._printed.items() if plain_label(name) not in known}


def labelled(lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Labels and values in order, and the lines that are neither rule nor label.

    A label that comes again is kept as `label #2`.
    """
    fields = Fields()
    notes = []
    for line in read_lines("\n".join(lines)):
        if line.labelled:
            fields.add(line.label, line.value)
        elif line.text.strip("-=* \t\r"):
            notes.append(line.text)
    return fields.printed(), notes


def normal_label(label: str) -> str:
    """A label without its unit, in small letters with single blanks: builds differ in these."""
    return " ".join(_UNIT.sub("", label).lower().split())


def whole_number(text: str) -> int | None:
    """The whole number that a value begins with (`2 - Loop preferred`, `30`); None when it begins with none."""
    match = _NUMBER.match(text)
    return int(match.group(1)) if match else None


def pci_of(values: Mapping[str, str] | Fields, bus: str, device: str, function: str, domain: str = "") -> str:
    """`0000:ad:00.0` from decimal numbers under these labels; empty when one of them is no number.

    A label that the tool does not print at all counts as 0 when it is given as empty.
    """
    numbers = []
    for label in (domain, bus, device, function):
        value = (values.get(label) if isinstance(values, Fields) else values.get(label, "")) if label else "0"
        number = whole_number(value)
        if number is None or number < 0:
            return ""
        numbers.append(number)
    return f"{numbers[0]:04x}:{numbers[1]:02x}:{numbers[2]:02x}.{numbers[3]:x}"
