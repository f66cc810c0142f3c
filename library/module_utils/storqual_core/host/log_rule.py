# SPDX-License-Identifier: Apache-2.0
"""Rules for lines of the kernel's log: the shipped ones (`data/kernel_log.json`) and those of a bench."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Mapping, Sequence

from ..data import read_table

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
        fits = re.search(pattern, str(entry["example"]), re.IGNORECASE) is not None
    except re.error as problem:
        return [*said, f"pattern: {problem}"]
    return said if fits else [*said, "the example does not fit the pattern"]
