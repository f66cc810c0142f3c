# SPDX-License-Identifier: Apache-2.0
"""Lines `Label : value`, the way most adapter tools print, and the sizes in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Line", "printed_size", "read_line"]

# the first colon with a blank or nothing behind it: labels and values have colons of their own (`(T:L)`, `0:0`)
_LABEL = re.compile(r"^(?P<label>[^\s:][^\n]*?)\s*:(?:\s+(?P<value>.*))?$")
_SIZE = re.compile(r"^\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[KMGTP])(?:i?B)?\s*$", re.IGNORECASE)


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
