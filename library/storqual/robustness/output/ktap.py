# SPDX-License-Identifier: Apache-2.0
"""KTAP, as kselftest and KUnit print it: tests in tests, named by their path; kernel timestamps are left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from storqual.robustness.output.reading import OneTest, Reading, one, told_count, with_own_names
from storqual.robustness.output.tap import RESULT, result_of

_STAMP = re.compile(r"\A\[\s*[0-9]+\.[0-9]+\](?:\[[^]]*\])? ?")
_LINE = re.compile(r"( *)(.*)\Z")
_PLAN = re.compile(r"1\.\.([0-9]{1,9})(?:\s*#.*)?\Z")
_TOTALS = re.compile(r"#\s*Totals:((?:\s+[a-z]+:[0-9]{1,9})+)\s*\Z")
_KINDS = {"pass": "passed", "fail": "failed", "error": "failed", "xfail": "skipped", "skip": "skipped"}


@dataclass
class _Level:
    """The tests of one level that have not been closed by a result of the level above."""

    indent: int
    plan: int | None = None
    tests: list[OneTest] = field(default_factory=list)
    results: int = 0
    name: str = ""
    beside: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self) -> None:
        self.levels = [_Level(0)]
        self.unread: list[str] = []
        self.problems: list[str] = []
        self.totals: dict[str, int] = {}

    def take(self, line: str) -> None:
        """One line without its timestamp."""
        match = _LINE.match(line)
        indent, rest = (len(match.group(1)), match.group(2)) if match else (0, line)
        planned, result, totals = _PLAN.match(rest), RESULT.match(rest), _TOTALS.match(rest)
        if re.match(r"(KTAP|TAP) version [0-9]+", rest):
            self._level(indent)
        elif planned:
            level = self._level(indent)
            if level.plan is not None:
                self.problems.append(f"a second plan: {rest}")
            level.plan = int(planned.group(1))
        elif result:
            self._result(indent, result)
        elif rest.startswith("# Subtest:"):
            self._level(indent).name = rest.partition(":")[2].strip()
        elif totals and indent == 0:
            self.totals = {name: int(number) for name, number in re.findall(r"([a-z]+):([0-9]+)", totals.group(1))}
        elif rest.startswith("Bail out!"):
            self.problems.append(rest)
        elif rest.startswith("#"):
            self.levels[-1].beside.append(rest)
        else:
            self.unread.append(line)

    def _level(self, indent: int) -> _Level:
        """The level of that indentation, begun if it is deeper than all."""
        if indent > self.levels[-1].indent:
            self.levels.append(_Level(indent))
        return next((one for one in reversed(self.levels) if one.indent <= indent), self.levels[0])

    def _result(self, indent: int, match: re.Match[str]) -> None:
        below: list[_Level] = []
        while len(self.levels) > 1 and self.levels[-1].indent > indent:
            below.append(self.levels.pop())
        level = self._level(indent)
        level.results += 1
        name, outcome, reason = result_of(match)
        number = int(match.group(2)) if match.group(2) else level.results
        if number != level.results:
            self.problems.append(f"test {level.results} of a level has the number {number}")
        name = name or f"test {level.results}"
        inner = [test for deep in reversed(below) for test in self._closed(deep)]
        if not inner:
            level.tests.append(one(name, outcome, "\n".join([reason, *level.beside])))
        else:
            level.tests += [OneTest(f"{name}.{test.name}", test.outcome, test.text) for test in inner]
            failed = any(test.outcome == "failed" for test in inner)
            if failed and outcome == "passed":
                self.problems.append(f"{name} is ok, and a test of it is not")
            if outcome == "failed" and not failed:
                level.tests.append(one(name, outcome, reason))
        level.beside = []

    def _closed(self, level: _Level) -> list[OneTest]:
        if level.plan is not None:
            self.problems += told_count(f"1..N{' of ' + level.name if level.name else ''}", level.plan, level.results)
        return level.tests

    def read(self) -> Reading:
        """What there is at the end; a level that was never closed is a test under way."""
        complete = len(self.levels) == 1 and self.levels[0].plan is not None
        current = ".".join(level.name for level in self.levels[1:] if level.name)
        tests = self._closed(self.levels[0])
        prefix = ""
        for level in self.levels[1:]:
            prefix += f"{level.name or 'test'}."
            tests = [*tests, *(OneTest(prefix + test.name, test.outcome, test.text) for test in level.tests)]
        self.problems += self._wrong_totals(tests)
        return Reading(with_own_names(tests), tuple(self.unread), tuple(self.problems), current, complete)

    def _wrong_totals(self, tests: list[OneTest]) -> Iterator[str]:
        """Contradictions with the line of totals, which counts the tests of the outermost level where it is flat."""
        if not self.totals or len(tests) != self.levels[0].results:
            return
        told: Counter[str] = Counter()
        for name, number in self.totals.items():
            told[_KINDS.get(name, "passed")] += number
        found = Counter(test.outcome for test in tests)
        for outcome in ("passed", "failed", "skipped"):
            yield from told_count(f"totals, {outcome}", told[outcome], found[outcome])


def parse_ktap(text: str) -> Reading:
    """Read all of it; never raises."""
    reader = _Reader()
    for line in text.splitlines():
        bare = _STAMP.sub("", line).rstrip()
        if bare:
            reader.take(bare)
    return reader.read()
