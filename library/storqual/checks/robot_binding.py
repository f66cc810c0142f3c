# SPDX-License-Identifier: Apache-2.0
"""Robot tests that are bound: tags `suite:<pattern>` and `workload:<pattern>` say of which runs a test is one."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from robot.api import SuiteVisitor
from robot.running import TestSuite


class OfThisRun(SuiteVisitor):  # type: ignore[misc] # untyped base
    """Leave out tests of other suites and of workloads that were not planned; a test without such a tag stays."""

    def __init__(self, suite: str, *workloads: str) -> None:
        self._names = {"suite:": (suite,), "workload:": workloads}

    def start_suite(self, suite: TestSuite) -> None:
        """Take the tests out before anything of the file is run."""
        suite.tests = [test for test in suite.tests if self._fits([str(tag) for tag in test.tags])]

    def end_suite(self, suite: TestSuite) -> None:
        """A file of which no test is left is not set up either."""
        suite.suites = [inner for inner in suite.suites if inner.test_count]

    def visit_test(self, test: object) -> None:
        """What a test does is not looked at."""

    def _fits(self, tags: Iterable[str]) -> bool:
        for prefix, names in self._names.items():
            patterns = [tag[len(prefix) :] for tag in tags if tag.lower().startswith(prefix)]
            if patterns and not any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
                return False
        return True
