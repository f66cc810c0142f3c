# SPDX-License-Identifier: Apache-2.0
"""TAP, versions 12 to 14, and what the `check` of blktests prints; what is no result is text of the next test."""

import re

from storqual.kinds.output.reading import Outcome, ProgramTest, Reading, count_problems, program_test, with_own_names

_PLAN = re.compile(r"1\.\.([0-9]{1,9})(?:\s*#\s*(.*))?\Z")
RESULT = re.compile(r"(not )?ok\b(?:\s+([0-9]{1,9})\b)?\s*(?:-\s*)?(.*)\Z")
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)\S*\s*(.*)\Z", re.IGNORECASE)


def result_of(match: re.Match[str]) -> tuple[str, Outcome, str]:
    """Name (`` where the line has none), outcome and reason of a matched line of RESULT."""
    bad, _, rest = match.groups()
    directive = _DIRECTIVE.search(rest)
    name = rest[: directive.start()].strip() if directive else rest.strip()
    if directive is None:
        return name, "failed" if bad else "passed", ""
    word, reason = directive.group(1).lower(), directive.group(2)
    # what is still to be done is expected to fail
    return name, "skipped" if word == "skip" or bad else "passed", f"{word.upper()} {reason}".strip()


def parse_tap(text: str) -> Reading:
    """Read all of it; never raises."""
    tests: list[ProgramTest] = []
    unread: list[str] = []
    problems: list[str] = []
    plan: int | None = None
    beside: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        planned, result = _PLAN.match(line), RESULT.match(line)
        if line[0] in " \t#":
            beside.append(line)
        elif planned:
            if plan is not None:
                problems.append(f"a second plan: {line}")
            plan = int(planned.group(1))
        elif result:
            name, outcome, reason = result_of(result)
            number = int(result.group(2)) if result.group(2) else len(tests) + 1
            if number != len(tests) + 1:
                problems.append(f"test {len(tests) + 1} has the number {number}")
            tests.append(program_test(name or f"test {len(tests) + 1}", outcome, "\n".join([reason, *beside])))
            beside = []
        elif line.startswith("Bail out!"):
            problems.append(line.strip())
        elif not re.match(r"(TAP version [0-9]+|pragma [+-])", line):
            unread.append(line)
    if beside and tests:
        tests[-1] = program_test(tests[-1].name, tests[-1].outcome, "\n".join([tests[-1].text, *beside]))
    if plan is not None:
        problems += count_problems("1..N", plan, len(tests))
    return Reading(with_own_names(tests), tuple(unread), tuple(problems), complete=plan is not None)


_LINE = re.compile(r"([\w-]+/[0-9]{3,})(?: => (\S+))?(?: \((.*)\))?(?:\s+\[(passed|failed|not run)\])?\s*\Z")
_OUTCOMES: dict[str, Outcome] = {"passed": "passed", "failed": "failed", "not run": "skipped"}


def parse_blktests(text: str) -> Reading:
    """Read all of it; never raises. A device's name is text: it may be another one after the next boot."""
    tests: list[ProgramTest] = []
    unread: list[str] = []
    current = ""
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            if line[:1] in " \t" and line.strip() and tests and not current:
                tests[-1] = program_test(tests[-1].name, tests[-1].outcome, f"{tests[-1].text}\n{line.strip()}")
            elif line.strip() and not (line[:1] in " \t" and current):
                unread.append(line)
            continue
        name, device, _, result = match.groups()
        if current and current != name:
            tests.append(program_test(current, "missing", "another test began before it had a result"))
        if result is None:
            current = name
        else:
            current = ""
            tests.append(program_test(name, _OUTCOMES[result], f"on {device}" if device else ""))
    problems = tuple(f"{test.name} has no result" for test in tests if test.outcome == "missing")
    return Reading(with_own_names(tests), tuple(unread), problems, current)
