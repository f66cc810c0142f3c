# SPDX-License-Identifier: Apache-2.0
"""A tool's text with one of its lists wrapped: at every width, in the ways of tools, terminals and mail."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

# a value of several words behind a label; a list in brackets behind an object; the devices of an array of md
_LABELLED = re.compile(r"^(?P<front>\s*[^\s:][^:\n]*(?::[^\s:]*)*?\s*:\s+)(?P<list>\S+ .*\S)\s*$")
_BRACKETS = re.compile(r"^(?P<front>\s*(?:physicaldrive|logicaldrive|array) \S+ +)(?P<list>\(.* .*\S)\s*$", re.I)
_DEVICES = re.compile(r"^(?P<front>md\S* : \S+ (?:\(\S+\) )?\S+ )(?P<list>\S+\[\d+\].* .*\S)\s*$")
_COUNTED = re.compile(r"^(?P<front>\s+\d+ blocks )(?P<list>.* \[\d+/\d+\] \[[U_]+\])\s*$")
_ROW = re.compile(r"^(?P<front>\s+(?:\d+|-)\s+\d+\s+\d+\s+(?:\d+|-)\s+\S+ )(?P<list>.*\s/\S+)\s*$")
_NODES = re.compile(r"^(?P<front>\[\S+\] .*?\S\s+)(?P<list>/dev/\S+\s+/dev/\S+)\s*$")


_OF_THE_KERNEL = re.compile(r"(?:md\S*|Personalities|unused devices|\s+bitmap) ?:")


@dataclass(frozen=True)
class WrappedList:
    """A text as it was, with single blanks in its list, and the same with the list wrapped; how, in words."""

    how: str
    plain: str
    wrapped: str


def lists_of(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    for place, line in enumerate(text.splitlines()):
        for pattern in (_DEVICES, _COUNTED, _ROW, _NODES, _BRACKETS, _LABELLED):
            match = pattern.match(line)
            if match is not None:
                yield place, match
                break


def wrappings(text: str, place: int, match: re.Match[str]) -> Iterator[WrappedList]:
    """The list of one line at every width, its further lines under its beginning, or a little further in."""
    lines = text.splitlines()
    front, words = match["front"], " ".join(match["list"].split())
    wide = front.expandtabs()
    indent = len(wide) - len(wide.lstrip())
    plain = "\n".join([*lines[:place], front + words, *lines[place + 1 :], ""])
    seen = set()
    for width in range(1, len(words)):
        parts = textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)
        if len(parts) == 1 or tuple(parts) in seen:
            continue
        seen.add(tuple(parts))
        for name, before in (
            ("under its beginning", " " * len(wide)),
            ("further in", " " * (indent + 4)),
            ("by tabs", "\t" * (indent // 8 + 1)),
            ("behind a colon", " " * max(len(wide) - 2, indent + 1) + ": "),
        ):
            if name == "behind a colon" and (match.re is not _LABELLED or _OF_THE_KERNEL.match(front)):
                continue
            new = [front + parts[0], *(before + part for part in parts[1:])]
            wrapped = "\n".join([*lines[:place], *new, *lines[place + 1 :], ""])
            yield WrappedList(f"line {place + 1} at width {width}, {name}: {parts}", plain, wrapped)
