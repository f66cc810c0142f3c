# SPDX-License-Identifier: Apache-2.0
"""JUnit's XML: suites of test cases; the counts of each suite are held against the cases in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from storqual.robustness.output.reading import OneTest, Outcome, Reading, one, told_count, with_own_names
from storqual.robustness.output.xml_tree import Element, read_xml

_SUITES = ("testsuites", "testsuite")
_BESIDE = ("properties", "property", "system-out", "system-err", "failure", "error", "skipped", "rerunFailure")
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def cases_of(root: Element) -> Iterator[OneTest]:
    """The test cases below an element."""
    for case in root.named("testcase"):
        outcome: Outcome = "passed"
        told = []
        for part in case.parts:
            if part.name in ("failure", "error", "skipped"):
                # a case that failed stays failed, whatever else is told of it
                outcome = "failed" if part.name != "skipped" or outcome == "failed" else "skipped"
                told.append(" ".join(filter(None, (part.attributes.get("message", ""), part.text.strip()))))
        names = (case.attributes.get("classname", ""), case.attributes.get("name", ""))
        yield one(".".join(filter(None, names)), outcome, "\n".join(told))


def suite_problems(root: Element) -> Iterator[str]:
    """Contradictions between a suite's attributes and the cases in it."""
    for suite in root.named(*_SUITES):
        cases = list(suite.named("testcase"))
        kinds: Counter[str] = Counter(kind for case in cases for kind in {part.name for part in case.parts})
        kinds["testcase"] = len(cases)
        for name, kind in _COUNTED.items():
            told = suite.attributes.get(name)
            if told is None:
                continue
            what = f"{name} of {suite.attributes.get('name') or suite.name}"
            if not told.isascii() or not told.isdigit() or len(told) > 9:
                yield f"{what}: {told[:40]!r} is no count"
            else:
                yield from told_count(what, int(told), kinds[kind])


def unknown_elements(root: Element, known: Iterable[str]) -> Iterator[str]:
    """Elements that the format does not have."""
    names = set(known)
    for part in root.parts:
        if part.name not in names:
            yield f"<{part.name}>{part.text.strip()}"
        yield from unknown_elements(part, names)


def of_suites(root: Element, problem: str) -> Reading:
    """What was read of suites of test cases."""
    unread = unknown_elements(root, (*_SUITES, "testcase", *_BESIDE))
    problems = [problem] if problem else [*suite_problems(root)]
    if not problem and not any(part.name in _SUITES for part in root.parts):
        problems.append("no element <testsuite>")
    return Reading(with_own_names(cases_of(root)), tuple(unread), tuple(problems), complete=not problem)


def parse_junit(text: str) -> Reading:
    """Read all of it; never raises."""
    return of_suites(*read_xml(text))
