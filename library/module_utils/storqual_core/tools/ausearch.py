# SPDX-License-Identifier: Apache-2.0
"""ausearch: what SELinux denied, by the audit log."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines


@dataclass(frozen=True)
class Denial:
    """What was denied to which program, the file where one is named, and the types of both sides."""

    permissions: tuple[str, ...]
    program: str
    path: str
    source: str
    target: str
    permissive: bool


_AVC = re.compile(r"avc:\s+denied\s+\{ ([\w ]+) \} for\s+(.*)")
_WORD = re.compile(r"""\b(\w+)=("[^"]*"|\S+)""")


def parse_denials(text: str) -> tuple[Denial, ...]:
    """The denials of an audit log or `ausearch`. Raises ToolError for a text without one, or with one that is cut."""
    denials = []
    for number, line in numbered_lines(text):
        match = _AVC.search(line)
        if match is None:
            continue
        words = {key: value.strip('"') for key, value in _WORD.findall(match.group(2))}
        types = [words.get(side, "").split(":") for side in ("scontext", "tcontext")]
        if any(len(context) < 3 for context in types) or "tclass" not in words:
            raise line_error("audit log", number, line, "a denial with both contexts and its class")
        path = words.get("path") or words.get("name", "")
        permissive = words.get("permissive") == "1"
        denials.append(
            Denial(tuple(match.group(1).split()), words.get("comm", ""), path, types[0][2], types[1][2], permissive)
        )
    if not denials:
        raise ToolError(f"no denial in what should be an audit log: {first_line(text)}")
    return tuple(denials)
