# SPDX-License-Identifier: Apache-2.0
"""Rules for lines of the kernel's log: the shipped ones (`data/kernel_log.json`) and those of a bench."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Iterable, Mapping, Pattern, Sequence

from ..data import read_table

try:
    from re import _parser  # type: ignore[attr-defined] # Python 3.11
except ImportError:
    import sre_parse as _parser

KINDS: Mapping[str, str] = {
    "kernel_bug": "the kernel found a fault in itself",
    "memory_short": "the kernel ran out of memory",
    "hung_task": "a task waited too long",
    "aer": "PCI Express or machine-check error",
    "file_system_error": "a file system reported an error",
    "adapter_reset": "an adapter or link was reset",
    "task_abort": "commands were aborted",
    "timeout": "commands timed out",
    "medium_error": "a drive could not read or write its medium",
    "sense_error": "a drive reported an error",
    "device_removed": "a device went away",
    "md_degraded": "an array lost a member or is not whole",
    "path_failed": "a path to a drive failed",
    "link_event": "a link or a port went down or up",
    "adapter_fault": "an adapter reported a fault of its own",
    "io_error": "I/O failed",
}
"""Kinds of findings with their meaning, the most serious first."""

SEVERITIES = ("error", "warning", "none")
"""error: a reason to doubt a launch; warning: shown only; none: an ordinary line, whatever other rules match."""

_MOST = 200
_LONGEST = 400
_MOST_TRIES = 1 << 17
"""Ways in which the repetitions between two `.*` of a bench's own rule may share a line of 2 KiB among them."""
_UNBOUNDED = 1 << 12


@dataclass(frozen=True)
class Rule:
    """Lines that match `pattern` (a regular expression, without regard to case) are of `kind`; `example` is one.

    `driver` prints them, in the kernel versions `kernels` (`4.9-`, `-5.13`; empty: all that are known); `source` says
    where that is known from.
    """

    kind: str
    pattern: str
    example: str
    driver: str = ""
    severity: str = "error"
    kernels: str = ""
    source: str = ""


class LinePatterns:
    """Regular expressions, of which one must fit a line.

    Each is cut at every `.*` outside of brackets, and its parts are searched one behind the other. To search it as a
    whole would take the square of a line, because each place where it begins to fit is tried with the whole rest.
    Raises re.error.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        cut = [parts for pattern in patterns for parts in cut_pattern(pattern)]
        self._sequences = [[re.compile(part, re.IGNORECASE) for part in parts] for parts in cut]
        # most lines fit the beginning of none
        self._beginnings: Pattern[str] = re.compile("|".join(f"(?:{parts[0]})" for parts in cut), re.IGNORECASE)

    def fits(self, line: str) -> bool:
        """Whether one of them fits."""
        return self._beginnings.search(line) is not None and any(_in_order(parts, line) for parts in self._sequences)


def _in_order(parts: Sequence[Pattern[str]], line: str) -> bool:
    behind = 0
    for part in parts:
        match = part.search(line, behind)
        if match is None:
            return False
        behind = match.end()
    return True


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\.\*\??|.", re.DOTALL)


def cut_pattern(pattern: str) -> list[list[str]]:
    """The alternatives of a pattern, each as its parts between `.*`; what is in brackets stays whole."""
    alternatives, depth = [[""]], 0
    for piece in _PIECE.findall(pattern):
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece == "|":
            alternatives.append([""])
        elif depth == 0 and piece.startswith(".*"):
            alternatives[-1].append("")
        else:
            alternatives[-1][-1] += piece
    return alternatives


def _tries(tree: Any, *, inside: bool = False) -> int:  # noqa: ANN401 - of a module without types
    """In how many ways the repetitions of a parsed expression can share what they fit; 0 for one within another."""
    ways = 1
    for operation, argument in tree:
        name = str(operation)
        if name.endswith("REPEAT"):
            fewest, most, inner = argument
            varies = fewest != most and most > 1
            ways *= 0 if varies and inside else min(most, _UNBOUNDED) if varies else 1
            ways *= _tries(inner, inside=inside or varies)
        elif name == "BRANCH":
            counted = [_tries(branch, inside=inside) for branch in argument[1]]
            ways *= max(counted) if all(counted) else 0
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
            ways *= _tries(argument[-1], inside=inside)
        elif name == "ATOMIC_GROUP":
            ways *= _tries(argument, inside=inside)
    return ways


@lru_cache(maxsize=1)
def shipped_rules() -> tuple[Rule, ...]:
    """The rules of `data/kernel_log.json`. Raises StorqualError where it is not shipped."""
    return tuple(Rule(**row) for row in read_table("kernel_log")["rules"])


def read_rules(entries: object, where: str, problems: list[str]) -> tuple[Rule, ...]:
    """A bench's own rules from lists and mappings; everything that is wrong with them is added to `problems`."""
    if entries is None:
        return ()
    if not isinstance(entries, Sequence) or isinstance(entries, str) or len(entries) > _MOST:
        problems.append(f"{where}: found no list of at most {_MOST} rules")
        return ()
    found = []
    for number, entry in enumerate(entries):
        place = f"{where}[{number}]"
        if not isinstance(entry, Mapping):
            problems.append(f"{place}: found {str(entry)[:60]!r}, expected a mapping")
            continue
        wrong = _wrong(entry)
        problems += [f"{place}: {problem}" for problem in wrong]
        if not wrong:
            found.append(Rule(**{str(name): str(value) for name, value in entry.items()}))
    return tuple(found)


def _wrong(entry: Mapping[object, object]) -> list[str]:
    """What is wrong with one rule; its example must be one."""
    known = {each.name for each in fields(Rule)}
    said = [f"found {name!r}, expected one of {', '.join(sorted(known))}" for name in entry if name not in known]
    said += [f"no {name} is given" for name in ("kind", "pattern", "example", "source") if not entry.get(name)]
    said += [f"{name}: found no text" for name, value in entry.items() if not isinstance(value, str)]
    if said:
        return said
    if entry["kind"] not in KINDS:
        said.append(f"kind: found {entry['kind']!r}, expected one of {', '.join(KINDS)}")
    if entry.get("severity", "error") not in SEVERITIES:
        said.append(f"severity: found {entry['severity']!r}, expected one of {', '.join(SEVERITIES)}")
    pattern = str(entry["pattern"])
    if len(pattern) > _LONGEST:
        return [*said, f"pattern: found {len(pattern)} characters, expected at most {_LONGEST}"]
    try:
        fits = LinePatterns([pattern]).fits(str(entry["example"]))
        tries = [_tries(_parser.parse(part)) for parts in cut_pattern(pattern) for part in parts]
    except (re.error, RecursionError, OverflowError) as problem:
        return [*said, f"pattern: {problem}"]
    if 0 in tries:
        said.append("pattern: found a repetition within another one; write it without")
    elif max(tries) > _MOST_TRIES:
        said.append("pattern: its repetitions can take too long; bound them, such as \\d{1,9}")
    return said if fits else [*said, "the example does not fit the pattern"]
