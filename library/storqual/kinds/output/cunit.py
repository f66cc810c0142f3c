# SPDX-License-Identifier: Apache-2.0
"""CUnit's text output (basic interface), as iscsi-test-cu prints it: suites, tests, failures, the summary table."""

import re
from collections import Counter
from collections.abc import Iterator

from storqual.kinds.output.reading import ProgramTest, Reading, count_problems, program_test, with_own_names

_SUITE = re.compile(r"Suite: (.*)\Z")
_TEST = re.compile(r"  Test: (.*?) ?\.\.\.(.*)\Z")
_RESULT = re.compile(r"(passed|FAILED)[ \t]*((?:\n[ \t]+[0-9]+\. .*)*)\s*\Z")
_SUMMARY = re.compile(r"\s*tests\s+([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*\Z")
_HEAD = re.compile(r"\s*(CUnit - A [Uu]nit testing framework.*|https?://cunit\.\S+)\Z")
_TAIL = re.compile(r"(Run Summary:.*|\s*(suites|asserts)(\s+(n/a|[0-9]+)){5}|Elapsed time = .*)\s*\Z")
_SKIPPED = "[SKIPPED]"


class _Reader:
    def __init__(self) -> None:
        self.suite = ""
        self.tests: list[ProgramTest] = []
        self.unread: list[str] = []
        self.problems: list[str] = []
        self.summary: tuple[int, ...] = ()
        self._name = ""
        self._block: list[str] = []

    def take(self, line: str) -> None:
        """One line; what stands between the beginning of a test and the next is what the test printed."""
        suite, test, summary = _SUITE.match(line), _TEST.match(line), _SUMMARY.match(line)
        if suite:
            self.close()
            self.suite = suite.group(1).strip()
        elif test:
            self.close()
            self._name, self._block = f"{self.suite}.{test.group(1)}".lstrip("."), [test.group(2)]
        elif summary:
            self.close()
            self.summary = tuple(map(int, summary.groups()))
        elif _TAIL.match(line) or line.startswith("WARNING - "):
            self.close()
            if line.startswith("WARNING - "):
                self.problems.append(line.strip())
        elif self._name:
            self._block.append(line)
        elif not _HEAD.match(line) and line.strip():
            self.unread.append(line)

    def close(self, *, at_end: bool = False) -> str:
        """End the test that is open; its name when it has no result and the output ends here."""
        name, text = self._name, "\n".join(self._block)
        self._name, self._block = "", []
        if not name:
            return ""
        result = _RESULT.search(text)
        if result is None and at_end:
            return name
        if result is None:
            self.problems.append(f"{name} has no result")
            self.tests.append(program_test(name, "missing", text))
        elif result.group(1) == "FAILED":
            self.tests.append(program_test(name, "failed", text))
        else:
            output = text[: result.start()]
            self.tests.append(program_test(name, "skipped" if _SKIPPED in output else "passed", output))
        return ""

    def wrong_counts(self) -> Iterator[str]:
        """Contradictions between the summary and the tests; CUnit counts a skipped test as passed."""
        if self.summary:
            _, ran, passed, failed, _ = self.summary
            counts = Counter(test.outcome for test in self.tests)
            yield from count_problems("tests ran", ran, len(self.tests))
            yield from count_problems("tests passed", passed, counts["passed"] + counts["skipped"])
            yield from count_problems("tests failed", failed, counts["failed"])


def parse_cunit(text: str) -> Reading:
    """Read all of it; never raises."""
    reader = _Reader()
    for line in text.splitlines():
        reader.take(line)
    current = reader.close(at_end=True)
    reader.problems += reader.wrong_counts()
    tests = with_own_names(reader.tests)
    return Reading(tests, tuple(reader.unread), tuple(reader.problems), current, bool(reader.summary))
