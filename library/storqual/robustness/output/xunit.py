# SPDX-License-Identifier: Apache-2.0
"""xUnit's XML: assemblies of tests with a result each; what xfstests writes under this name is JUnit's shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from storqual.robustness.output.junit import of_suites, unknown_elements
from storqual.robustness.output.reading import OneTest, Outcome, Reading, one, told_count, with_own_names
from storqual.robustness.output.xml_tree import Element, read_xml

_KNOWN = ("assemblies", "assembly", "collection", "test", "failure", "message", "stack-trace", "reason", "output")
_BESIDE = ("traits", "trait", "errors", "error", "warnings", "warning")
_OUTCOMES: dict[str, Outcome] = {"Pass": "passed", "Fail": "failed", "Skip": "skipped", "NotRun": "skipped"}
_COUNTED = {"total": "total", "passed": "passed", "failed": "failed", "skipped": "skipped"}


def _tests(root: Element) -> Iterator[OneTest]:
    for test in root.named("test"):
        outcome = _OUTCOMES.get(test.attributes.get("result", ""), "missing")
        told = "\n".join(part.text.strip() for part in test.named("message", "stack-trace", "reason", "output"))
        yield one(test.attributes.get("name", ""), outcome, told)


def _problems(root: Element) -> Iterator[str]:
    for test in root.named("test"):
        result = test.attributes.get("result", "")
        if result not in _OUTCOMES:
            yield f"{test.attributes.get('name', '')} has the result {result[:40]!r}"
    for group in root.named("assembly", "collection"):
        found = list(_tests(group))
        kinds: Counter[str] = Counter(test.outcome for test in found)
        kinds["total"] = len(found)
        for name, kind in _COUNTED.items():
            told = group.attributes.get(name)
            if told is not None:
                what = f"{name} of {group.attributes.get('name') or group.name}"
                if told.isascii() and told.isdigit() and len(told) <= 9:
                    yield from told_count(what, int(told), kinds[kind])
                else:
                    yield f"{what}: {told[:40]!r} is no count"


def parse_xunit(text: str) -> Reading:
    """Read all of it; never raises."""
    root, problem = read_xml(text)
    if any(part.name in ("testsuite", "testsuites") for part in root.parts):
        return of_suites(root, problem)
    unread = unknown_elements(root, (*_KNOWN, *_BESIDE))
    problems = [problem] if problem else [*_problems(root)]
    if not problem and not any(part.name in ("assemblies", "assembly") for part in root.parts):
        problems.append("no element <assemblies>")
    return Reading(with_own_names(_tests(root)), tuple(unread), tuple(problems), complete=not problem)
