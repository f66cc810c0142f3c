# SPDX-License-Identifier: Apache-2.0
"""Tables that vendor tools print for people: `Label   : value` lines, with headings, notes and sizes in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Mapping

# the first colon with a blank or nothing behind it: labels and values have colons of their own (`(T:L)`, `0:0`)
_LABEL = re.compile(r"^(?P<label>[^\s:][^\n]*?)\s*:(?:\s+(?P<value>.*))?$")
_SIZE = re.compile(r"^\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[KMGTP])(?:i?B)?\s*$", re.IGNORECASE)
_UNIT = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"\s*(-?\d+)\b")


@dataclass(frozen=True)
class Line:
    """One line that is not empty: blanks in front of it, its text, and label and value where it has a colon."""

    indent: int
    text: str
    label: str = ""
    value: str = ""

    @property
    def labelled(self) -> bool:
        """Whether it has a label."""
        return bool(self.label)


def read_line(line: str) -> Line | None:
    """A line taken apart; None when nothing is on it."""
    text = line.strip()
    if not text:
        return None
    indent = len(line) - len(line.lstrip())
    match = _LABEL.match(text)
    if match is None:
        return Line(indent, text)
    return Line(indent, text, match.group("label").strip(), (match.group("value") or "").strip())


def printed_size(text: str, *, base: int) -> int | None:
    """Bytes of `4.55 TB` or `953869 MB`, as far as it was printed; None when it is no size.

    `base` is what the tool means by a prefix: 1000 as on a drive's label, 1024 as most tools count.
    """
    match = _SIZE.match(text)
    if match is None:
        return None
    power = "kmgtp".index(match.group("prefix").lower()) + 1
    size: int = base**power
    return round(float(match.group("number")) * size)


def labelled(lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Labels and values in order, and the lines that are neither rule nor label; the first of a label holds."""
    found: dict[str, str] = {}
    notes = []
    for text in lines:
        line = read_line(text)
        if line is not None and line.labelled and line.label not in found:
            found[line.label] = line.value
        elif text.strip("-=* \t\r"):
            notes.append(text.rstrip())
    return found, notes


def normal_label(label: str) -> str:
    """A label without its unit, in small letters with single blanks: builds differ in these."""
    return " ".join(_UNIT.sub("", label).lower().split())


def whole_number(text: str) -> int | None:
    """The whole number that a value begins with (`2 - Loop preferred`, `30`); None when it begins with none."""
    match = _NUMBER.match(text)
    return int(match.group(1)) if match else None


def pci_of(values: Mapping[str, str], bus: str, device: str, function: str, domain: str = "") -> str:
    """`0000:ad:00.0` from decimal numbers under these labels; empty when one of them is no number.

    A label that the tool does not print at all counts as 0 when it is given as empty.
    """
    numbers = []
    for label in (domain, bus, device, function):
        number = whole_number(values.get(label, "")) if label else 0
        if number is None or number < 0:
            return ""
        numbers.append(number)
    return f"{numbers[0]:04x}:{numbers[1]:02x}:{numbers[2]:02x}.{numbers[3]:x}"
