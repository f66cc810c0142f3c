# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log are data: each shipped one fits its example, and a bench may have its own."""

from __future__ import annotations

import re
import time

import pytest

from storqual_core.data import read_table
from storqual_core.host.log_findings import classify, errors_of, find_all
from storqual_core.host.log_rule import LinePatterns, Rule, read_rules, shipped_rules

RULES = shipped_rules()


def test_the_shipped_rules_are_held_to_what_a_bench_s_own_are() -> None:
    problems: list[str] = []
    rows = read_table("kernel_log")["rules"]
    # the shipped ones are more, and some are longer, than what a bench may bring
    read = [read_rules([row], "kernel_log.json", problems) for row in rows]
    # and a repetition without a bound is none that a hostile line can use: see below
    more = ("at most 400", "repetitions can take too long")
    assert [problem for problem in problems if not any(one in problem for one in more)] == []
    assert sum(map(len, read)) > 130


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_the_example_of_a_rule_fits_it_and_is_of_its_kind(rule: Rule) -> None:
    assert re.search(rule.pattern, rule.example, re.IGNORECASE)
    assert classify(rule.example) == (None if rule.severity == "none" else rule.kind)
    assert rule.source


def hostile_lines(example: str, length: int) -> list[str]:
    """What begins to fit a rule again and again: beginnings and words of its example, and what repetitions like."""
    words = example.split()
    units = {f"{' '.join(words[:count])} " for count in range(1, len(words) + 1)}
    units |= {example[:count] for count in range(1, len(example))}
    units |= {word + end for word in words for end in ("", " ")}
    same = [first + char * length for char in "a1 :.-_[({x" for first in ("", f"{words[0]} ")]
    return [line[:length] for line in (*(unit * length for unit in sorted(units)), *same)]


def spent(rule: LinePatterns, line: str) -> float:
    start = time.process_time()
    rule.fits(line)
    return time.process_time() - start


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_no_line_costs_more_than_its_length(rule: Rule) -> None:
    """Four times the length takes four times as long, and not sixteen; what takes less than 2 ms is not compared."""
    patterns = LinePatterns([rule.pattern])
    for line in hostile_lines(rule.example, 2048):
        taken = [(spent(patterns, line), spent(patterns, line[:512])) for _ in range(3)]
        assert min(whole for whole, _ in taken) < 0.002 or min(whole / part for whole, part in taken) < 10


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"\blpfc\d*\b.*Link (?:Up|Down).*DID:|other", "lpfc0: Link Down, Link Up, DID: 7"),
        (r"a[.*|]b.*c\.*d|x", "a|b c..d"),
        (r"a[]|]b", "a]b"),
        (r"a(?:b.*c|d)e.*?f", "ab---ce-f"),
        (r"\(.*\)", "( )"),
        (r"^a.*b$", "a-b"),
        ("", "anything"),
    ],
)
def test_a_rule_cut_at_any_text_fits_what_it_fits_as_a_whole(pattern: str, line: str) -> None:
    patterns = LinePatterns([pattern])
    for end in range(len(line) + 1):
        assert patterns.fits(line[:end]) == (re.search(pattern, line[:end], re.IGNORECASE) is not None)
    assert patterns.fits(line)


OWN = {"kind": "timeout", "pattern": r"^acme_sr: stuck", "example": "acme_sr: stuck", "source": "its own manual"}


def test_a_benchs_own_rules_decide_before_the_shipped_ones() -> None:
    problems: list[str] = []
    own = read_rules(
        [OWN, {**OWN, "pattern": "hard resetting link", "example": QUIET_ONE, "severity": "none"}], "r", problems
    )
    assert problems == []
    assert classify("acme_sr: stuck", own) == "timeout"
    assert classify(QUIET_ONE) == "adapter_reset"
    assert classify(QUIET_ONE, own) is None
    assert [finding.kind for finding in find_all(["acme_sr: stuck", QUIET_ONE], own)] == ["timeout"]


QUIET_ONE = "ata9: hard resetting link"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("text", "found no list"),
        ([7], "expected a mapping"),
        ([{**OWN, "kind": "odd"}], "kind: found 'odd'"),
        ([{**OWN, "severity": "odd"}], "severity: found 'odd'"),
        ([{**OWN, "pattern": "("}], "pattern: missing"),
        ([{**OWN, "pattern": "x" * 401}], "at most 400"),
        ([{**OWN, "pattern": r"(a+)+b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(?:\w+ ?)*b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(?:x|(?:\d{1,9}){2,3})b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"\d+\d+x"}], "can take too long"),
        ([{**OWN, "pattern": r"\w{1,99}\w{1,99}\w{1,99}x"}], "can take too long"),
        ([{**OWN, "example": "other"}], "the example does not fit the pattern"),
        ([{**OWN, "colour": "red"}], "found 'colour'"),
        ([{**OWN, "source": ""}], "no source is given"),
        ([{**OWN, "driver": 7}], "driver: found no text"),
    ],
)
def test_a_rule_that_is_wrong_is_told(entries: object, words: str) -> None:
    problems: list[str] = []
    assert read_rules(entries, "storqual_kernel_rules", problems) == ()
    assert words in problems[0]


def test_a_warning_is_shown_and_is_no_reason_to_doubt() -> None:
    lines = ["sd 1:0:0:1: alua: port group 01 state U non-preferred supports TolUsNA", "acme_sr: stuck", QUIET_ONE]
    problems: list[str] = []
    own = read_rules([{**OWN, "severity": "warning"}], "r", problems)
    assert [(finding.kind, finding.severity) for finding in find_all(lines, own)] == [
        ("adapter_reset", "error"),
        ("timeout", "warning"),
        ("path_failed", "warning"),
    ]
    assert [finding.kind for finding in errors_of(find_all(lines, own))] == ["adapter_reset"]
