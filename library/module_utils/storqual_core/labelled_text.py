# SPDX-License-Identifier: Apache-2.0
"""Tables that vendor tools print for people: `Label   : value` lines, with headings and notes between them."""

from __future__ import annotations

import re
from typing import Iterable, Mapping

__all__ = ["labelled", "normal_label", "pci_of", "whole_number"]

# the first colon that a blank or the line's end follows: values may hold colons of their own (times, WWNs)
_LINE = re.compile(r"^\s*(\S(?:.*?\S)?)\s*:(?:\s+(.*?))?\s*$")
_UNIT = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"\s*(-?\d+)\b")


def labelled(lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Labels and values in order, and the lines that are neither rule nor label; the first of a label holds."""
    found: dict[str, str] = {}
    notes = []
    for line in lines:
        match = _LINE.match(line)
        if match and match.group(1) not in found:
            found[match.group(1)] = match.group(2) or ""
        elif line.strip("-=* \t\r"):
            notes.append(line.rstrip())
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
