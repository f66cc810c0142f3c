# SPDX-License-Identifier: Apache-2.0
"""What the `check` of blktests prints: a line when a test begins, one with its result, indented lines about it."""

from __future__ import annotations

import re

from storqual.kinds.output.reading import OneTest, Outcome, Reading, one, with_own_names

_LINE = re.compile(r"([\w-]+/[0-9]{3,})(?: => (\S+))?(?: \((.*)\))?(?:\s+\[(passed|failed|not run)\])?\s*\Z")
_OUTCOMES: dict[str, Outcome] = {"passed": "passed", "failed": "failed", "not run": "skipped"}


def parse_blktests(text: str) -> Reading:
    """Read all of it; never raises. A device's name is text: it may be another one after the next boot."""
    tests: list[OneTest] = []
    unread: list[str] = []
    current = ""
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            if line[:1] in " \t" and line.strip() and tests and not current:
                tests[-1] = one(tests[-1].name, tests[-1].outcome, f"{tests[-1].text}\n{line.strip()}")
            elif line.strip() and not (line[:1] in " \t" and current):
                unread.append(line)
            continue
        name, device, _, result = match.groups()
        if current and current != name:
            tests.append(one(current, "missing", "another test began before it had a result"))
        if result is None:
            current = name
        else:
            current = ""
            tests.append(one(name, _OUTCOMES[result], f"on {device}" if device else ""))
    problems = tuple(f"{test.name} has no result" for test in tests if test.outcome == "missing")
    return Reading(with_own_names(tests), tuple(unread), problems, current)
