# SPDX-License-Identifier: Apache-2.0
"""sestatus: SELinux now and from the next boot on (the two differ often); and denials of the audit log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines

_LABEL = re.compile(r"(\S[^:]*?):\s+(\S.*)")
_BOOLEAN = re.compile(r"(\w+)\s+(on|off)")
_SECTION = re.compile(r"(?:Policy booleans|Process contexts|File contexts):")
_CONTEXT = re.compile(r"/\S+\s+\w+:\w+:\w+(?::\S+)?(?: -> \S+)?")
_MODES = ("enforcing", "permissive", "disabled")


@dataclass(frozen=True)
class SELinux:
    """`mode` is what the kernel does now, `configured` what the file says for the next boot; empty when not told."""

    enabled: bool
    mode: str = ""
    configured: str = ""
    policy: str = ""
    booleans: Mapping[str, bool] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)


def parse_status(text: str) -> SELinux:
    """`sestatus`, with or without `-b` and `-v`. Raises ToolError for another text and for one that is cut."""
    printed: dict[str, str] = {}
    booleans: dict[str, bool] = {}
    section = ""
    for number, line in numbered_lines(text):
        label, boolean = _LABEL.fullmatch(line.strip()), _BOOLEAN.fullmatch(line.strip())
        if _SECTION.fullmatch(line.strip()) and printed:
            section = line.strip()
        elif section.startswith("Policy booleans") and boolean:
            if booleans.setdefault(boolean.group(1), boolean.group(2) == "on") != (boolean.group(2) == "on"):
                raise line_error("sestatus", number, line, "the value that this boolean had before")
        elif "booleans" not in section and label and (printed or label.group(1) == "SELinux status"):
            if label.group(1) in printed:
                raise line_error("sestatus", number, line, f"another label than {label.group(1)!r} once more")
            printed[label.group(1)] = label.group(2)
        elif not (section.startswith("File contexts") and _CONTEXT.fullmatch(line.strip())):
            raise line_error("sestatus", number, line, "a label with a value, or a boolean with `on` or `off`")
    status, mode, configured = (
        printed.get(name, "").lower() for name in ("SELinux status", "Current mode", "Mode from config file")
    )
    if status == "disabled" and len(printed) == 1:
        return SELinux(enabled=False, mode="disabled", printed=printed)
    # of a file that cannot be read it prints `error (No such file or directory)`
    configured = "" if configured.startswith("error (") else configured
    if status != "enabled" or mode not in _MODES[:2] or configured not in (*_MODES, ""):
        raise ToolError(
            f"sestatus told no whole state of SELinux (status {status or 'missing'!r}, mode {mode or 'missing'!r}, "
            f"in its file {configured or 'missing'!r}): {first_line(text)}"
        )
    return SELinux(status == "enabled", mode, configured, printed.get("Loaded policy name", ""), booleans, printed)


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
