# SPDX-License-Identifier: Apache-2.0
"""The declared formats, and one reading of a program's output together with how the program ended."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from storqual.kinds.output.cunit import parse_cunit
from storqual.kinds.output.junit import parse_junit
from storqual.kinds.output.reading import Reading, program_test, with_own_names
from storqual.kinds.output.tap import parse_blktests, parse_tap

FORMATS: Mapping[str, Callable[[str], Reading]] = {
    "tap": parse_tap,
    "junit": parse_junit,
    "cunit": parse_cunit,
    "blktests": parse_blktests,
}
STATUS = "status"
"""The format of programs that say nothing but by their exit status, such as fsx: one test."""
PROGRAM = "(program)"
"""The test that a program is as a whole, where it hung between tests, or has none."""
_MOST_LINES = 20


def read_output(form: str, text: str, *, status: int | None, hung: bool) -> Reading:
    """The tests of a program that ended with `status`, or was killed at its limit. Raises KeyError for no format."""
    if form == STATUS:
        last = "\n".join(text.splitlines()[-_MOST_LINES:])
        outcome = program_test(PROGRAM, "hung" if hung else "passed" if status == 0 else "failed", last)
        return Reading((outcome,))
    reading = FORMATS[form](text)
    problems = list(reading.problems)
    tests = list(reading.tests)
    if hung:
        # a text that was cut by the limit cannot agree with its counts
        problems = []
        tests.append(program_test(reading.current or PROGRAM, "hung", "it was under way when the limit came"))
    elif reading.current:
        ending = f"the program ended in the middle of it, with status {status}"
        tests.append(program_test(reading.current, "failed", ending))
    elif not reading.complete:
        problems.append(f"the text ends before its end; the program ended with status {status}")
    elif status is not None and status < 0:
        problems.append(f"signal {-status} ended the program after its last test")
    elif not tests:
        problems.append(f"no test was read; the program ended with status {status}")
    return replace(reading, tests=with_own_names(tests), problems=tuple(problems))
