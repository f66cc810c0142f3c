# SPDX-License-Identifier: Apache-2.0
"""Answers of the tools of RPM benches, changed in 10,000 ways: refused, or no value that was not there before.

Lines that are lost, doubled or cut off must not make up a value; other changes must leave each value standing in the
text as it is told.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import TOOLS
from tests.support.mangle import lost_lines, noisy
from tests.support.tool_fixtures import fixture_texts
from tests.unit.storqual_core.tools.test_conformance import parsers

NAMES = ("rpm", "dnf", "zypper", "mokutil", "kdumpctl", "sestatus", "lsinitrd", "weak_modules")
EACH = 10
# what a parser says in its own words
OWN = {
    *("complete", "nothing", "aborted", "process", "another program", "enforcing", "disabled", "permissive"),
    *("x86_64",),
}


def leaves(value: object) -> Iterator[str]:
    """The texts in what a parser gives, line by line, and its numbers as text."""
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            # notes are lines that are kept as they are
            yield from leaves(getattr(value, each.name)) if each.name != "notes" else ()
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list | tuple | set):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, str):
        yield from (line for line in value.splitlines() if line)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


STRANGE = [line for name in NAMES for text in fixture_texts(name) for line in text.splitlines(keepends=True)]


def answer(parse: Any, text: str) -> set[str] | None:
    try:
        return set(leaves(parse(text)))
    except ToolError as problem:
        assert len(str(problem).split()) > 3  # noqa: PT017 - one of many
        return None


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_answer_is_refused_or_tells_nothing_that_is_not_in_it(name: str) -> None:
    texts = [text for text in fixture_texts(name) if not text.startswith("{")]
    known = [(parse, text, answer(parse, text)) for parse in parsers(TOOLS[name]()) for text in texts]
    own = [each for each in known if each[2] is not None]

    @settings(max_examples=10_000 // EACH // len(NAMES), deadline=None, derandomize=True)
    @given(st.integers(0, 1 << 40))
    def check(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(EACH):
            parse, text, right = chance.choice(own)
            found = answer(parse, lost_lines(text, chance))
            assert found is None or right is None or joined(found) <= joined(right) | OWN
            changed = noisy(text, chance, STRANGE)
            plain = changed.replace(":", "").replace(".x86_64", "").replace(".noarch", "").lower()
            assert [each for each in joined(answer(parse, changed) or set()) - OWN if each.lower() not in plain] == []

    check()


def joined(found: set[str]) -> set[str]:
    """The values without numbers (which may be bytes); what is put together of columns is taken apart again."""
    words = (word.replace(":", "") for value in found for word in value.split())
    parts = (part for word in words for part in ([word] if "/" in word else word.split("-")))
    return {part.replace(".x86_64", "").replace(".noarch", "") for part in parts if not part.isdigit()}
