# SPDX-License-Identifier: Apache-2.0
"""What a format's parser gives: tests by name, lines that it did not understand, contradictions in the text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "skipped", "hung", "missing"]
"""`skipped`: the program itself did not run it; `hung`: under way at the limit; `missing`: announced, no result."""
_MOST_TEXT = 2000


@dataclass(frozen=True)
class ProgramTest:
    """One test of a foreign program; `text` is what the program said of it."""

    name: str
    outcome: Outcome
    text: str = ""


@dataclass(frozen=True)
class Reading:
    """All that was read of an output.

    `current` is the test that was under way when the output ended, empty when none was. `complete` says that the
    format's own end was there, or that it has none. `problems` are contradictions between counts and tests.
    """

    tests: tuple[ProgramTest, ...]
    unread: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    current: str = ""
    complete: bool = True


def program_test(name: str, outcome: Outcome, text: str = "") -> ProgramTest:
    """A test; a long text keeps its beginning, and its end where failures are told."""
    text = text.strip()
    if len(text) > _MOST_TEXT:
        text = f"{text[: _MOST_TEXT // 2]}\n…\n{text[-_MOST_TEXT // 2 :]}"
    return ProgramTest(" ".join(name.split()) or "(no name)", outcome, text)


def with_own_names(tests: Iterable[ProgramTest]) -> tuple[ProgramTest, ...]:
    """The same with a number behind a name that came before, so that each is a test of its own."""
    seen: Counter[str] = Counter()
    names: set[str] = set()
    named = []
    for test in tests:
        seen[test.name] += 1
        name, number = test.name, seen[test.name]
        while name in names:
            name, number = f"{test.name} ({max(2, number)})", max(2, number) + 1
        names.add(name)
        named.append(ProgramTest(name, test.outcome, test.text))
    return tuple(named)


def count_problems(what: str, stated: int, read: int) -> Iterable[str]:
    """A contradiction between a count in the text and what was read, if there is one."""
    if stated != read:
        yield f"{what}: the text counts {stated}, {read} were read"
