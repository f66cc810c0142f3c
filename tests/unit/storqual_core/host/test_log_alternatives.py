# SPDX-License-Identifier: Apache-2.0
"""Words that stand beside each other in a rule: each is what a kernel prints, and is found by itself."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from storqual_core.host.kernel_log import classify, shipped_rules
from tests.support.log_lines import read_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storqual_core.host.kernel_log import LogRule

LINES = read_all()
RULES = shipped_rules()
SEVERAL = [rule for rule in RULES if "|" in rule.pattern]


@pytest.mark.parametrize(
    ("kind", "line"), LINES, ids=[f"{number}-{line[-40:]}" for number, (_, line) in enumerate(LINES)]
)
def test_a_line_is_of_its_kind(kind: str, line: str) -> None:
    assert (classify(line) or "none") == kind


def without(pattern: str) -> Iterator[tuple[str, str]]:
    """Each alternative of a pattern, with the pattern without it; those of what must not follow are left out."""
    # where a group begins (-1: the pattern itself), whether it must not match, where its alternatives begin
    groups: list[tuple[int, bool, list[int]]] = [(-1, False, [0])]
    place, in_class = 0, False
    while place <= len(pattern):
        letter = pattern[place : place + 1]
        if letter == "\\":
            place += 2
            continue
        if in_class:
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
            place += pattern[place + 1 : place + 2] in ("]", "^")
        elif letter == "(":
            head = re.match(r"\((?:\?(?:[:=!]|<[=!]|[a-z-]+:))?", pattern[place:])
            assert head
            groups.append((place, "!" in head.group() or groups[-1][1], [place + head.end()]))
            place += head.end()
            continue
        elif letter == "|":
            groups[-1][2].append(place + 1)
        elif letter in (")", ""):
            _, never, begins = groups.pop()
            ends = [*(begin - 1 for begin in begins[1:]), place]
            if len(begins) > 1 and not never:
                for begin, end in zip(begins, ends, strict=True):
                    rest = pattern[: begin - (begin != begins[0])] + pattern[end + (begin == begins[0]) :]
                    yield pattern[begin:end], rest
        place += 1


def test_a_pattern_is_taken_apart_at_its_bars() -> None:
    assert list(without(r"a(?:b|[|)]c|\|d)(?!e|f)|g")) == [
        ("b", r"a(?:[|)]c|\|d)(?!e|f)|g"),
        ("[|)]c", r"a(?:b|\|d)(?!e|f)|g"),
        (r"\|d", r"a(?:b|[|)]c)(?!e|f)|g"),
        (r"a(?:b|[|)]c|\|d)(?!e|f)", "g"),
        ("g", r"a(?:b|[|)]c|\|d)(?!e|f)"),
    ]


@cache
def known_lines() -> tuple[str, ...]:
    """Every line that a test holds to its kind."""
    return (*(rule.example for rule in RULES), *(line for _, line in LINES))


@pytest.mark.parametrize("rule", SEVERAL, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(SEVERAL)])
def test_each_alternative_of_a_rule_has_a_line_that_fits_by_it_alone(rule: LogRule) -> None:
    """One that no line needs is misspelled, or says what another says already."""
    whole = re.compile(rule.pattern, re.IGNORECASE)
    fitting = [line for line in known_lines() if whole.search(line)]
    idle = [
        words
        for words, rest in without(rule.pattern)
        if all(re.search(rest, line, re.IGNORECASE) for line in fitting)
    ]
    assert idle == []
