# SPDX-License-Identifier: Apache-2.0
"""kdumpctl of EL and Fedora: whether a crash kernel is loaded. It may say so while its service has failed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, numbered_lines

_PREFIX = re.compile(r"(?:.*\bkdumpctl\[[0-9]+\]: )?(?:kdump: )?")
_STATES = {"kdump is operational": True, "kdump is not operational": False}
_ACTION = re.compile(r"(?:Starting|Stopping|Restarting|Reloading) kdump: \[\s*(OK|FAILED)\s*\]", re.IGNORECASE)
_MODE = re.compile(r"Dump mode is (kdump|fadump)", re.IGNORECASE)
_PROBLEM = re.compile(
    r"(?:no memory reserved|no space left|failed|cannot|can't|could not|unable|error|invalid|missing|not found|"
    r"not reserved|not enough|insufficient)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Kdump:
    """`operational` is None where a start or stop was told and no state; `mode` empty where it is not told."""

    operational: bool | None
    mode: str = ""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def parse_status(text: str) -> Kdump:
    """`kdumpctl status`, `start` and `stop`. Raises ToolError for another text, and for two states at once."""
    states: set[bool] = set()
    modes: set[str] = set()
    problems, notes = [], []
    known = 0
    for _, printed in numbered_lines(text):
        line = _PREFIX.sub("", printed.strip(), count=1)
        state, action, mode = _STATES.get(line.lower().rstrip(".")), _ACTION.fullmatch(line), _MODE.fullmatch(line)
        if state is not None:
            states.add(state)
        elif mode:
            modes.add(mode.group(1).lower())
        elif (action and action.group(1).upper() == "FAILED") or _PROBLEM.search(line):
            problems.append(line)
        elif not action:
            notes.append(line)
        known += bool(state is not None or mode or action or printed.strip() != line)
    if not known or len(states) > 1 or len(modes) > 1:
        raise ToolError(f"kdumpctl told no state of kdump, or two at once: {first_line(text)}")
    return Kdump(next(iter(states), None), next(iter(modes), ""), tuple(problems), tuple(notes))
