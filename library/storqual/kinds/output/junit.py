# SPDX-License-Identifier: Apache-2.0
"""JUnit's XML: suites of test cases; the counts of each suite are held against the cases in it.

No library reads it here: of a program that hung, what came before the end of its file counts, and a foreign file may
hold anything. So there are no document types, no entities and no depths, and an error keeps what stands before it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from storqual.kinds.output.reading import Outcome, ProgramTest, Reading, count_problems, program_test, with_own_names

_DEEPEST = 100


@dataclass
class Element:
    """One element, its text without that of the elements in it."""

    name: str
    attributes: dict[str, str]
    parts: "list[Element]" = field(default_factory=list)
    text: str = ""

    def named(self, *names: str) -> "Iterator[Element]":
        for part in self.parts:
            if part.name in names:
                yield part
            yield from part.named(*names)


class _RefusedError(Exception):
    """The document has what no report of tests needs."""


def read_xml(text: str) -> tuple[Element, str]:
    """A root above all that was read, and why the reading ended early, empty when it did not."""
    root = Element("", {})
    open_elements = [root]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > _DEEPEST:
            raise _RefusedError(f"more than {_DEEPEST} levels")
        element = Element(name, attributes)
        open_elements[-1].parts.append(element)
        open_elements.append(element)

    def doctype(*_: object) -> None:
        raise _RefusedError("a document type, which a report of tests does not need")

    def data(text: str) -> None:
        open_elements[-1].text += text

    # the text was decoded already: what its first line says of an encoding is no longer so
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _name: open_elements.pop() and None
    parser.CharacterDataHandler = data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)  # noqa: FBT003 - it takes no names
    except (expat.ExpatError, _RefusedError) as problem:
        return root, f"XML: {problem}"
    return root, ""


_SUITES = ("testsuites", "testsuite")
_BESIDE = ("properties", "property", "system-out", "system-err", "failure", "error", "skipped", "rerunFailure")
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def cases_of(root: Element) -> Iterator[ProgramTest]:
    for case in root.named("testcase"):
        outcome: Outcome = "passed"
        texts = []
        for part in case.parts:
            if part.name in ("failure", "error", "skipped"):
                # a case that failed stays failed, whatever else is told of it
                outcome = "failed" if part.name != "skipped" or outcome == "failed" else "skipped"
                texts.append(" ".join(filter(None, (part.attributes.get("message", ""), part.text.strip()))))
        names = (case.attributes.get("classname", ""), case.attributes.get("name", ""))
        yield program_test(".".join(filter(None, names)), outcome, "\n".join(texts))


def suite_problems(root: Element) -> Iterator[str]:
    """Contradictions between a suite's attributes and the cases in it."""
    for suite in root.named(*_SUITES):
        cases = list(suite.named("testcase"))
        kinds: Counter[str] = Counter(kind for case in cases for kind in {part.name for part in case.parts})
        kinds["testcase"] = len(cases)
        for name, kind in _COUNTED.items():
            stated = suite.attributes.get(name)
            if stated is None:
                continue
            what = f"{name} of {suite.attributes.get('name') or suite.name}"
            if not stated.isascii() or not stated.isdigit() or len(stated) > 9:
                yield f"{what}: {stated[:40]!r} is no count"
            else:
                yield from count_problems(what, int(stated), kinds[kind])


def unknown_elements(root: Element, expected: Iterable[str]) -> Iterator[str]:
    names = set(expected)
    for part in root.parts:
        if part.name not in names:
            yield f"<{part.name}>{part.text.strip()}"
        yield from unknown_elements(part, names)


def of_suites(root: Element, problem: str) -> Reading:
    unread = unknown_elements(root, (*_SUITES, "testcase", *_BESIDE))
    problems = [problem] if problem else [*suite_problems(root)]
    if not problem and not any(part.name in _SUITES for part in root.parts):
        problems.append("no element <testsuite>")
    return Reading(with_own_names(cases_of(root)), tuple(unread), tuple(problems), complete=not problem)


def parse_junit(text: str) -> Reading:
    """Read all of it; never raises."""
    return of_suites(*read_xml(text))
