# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log are data: each shipped one fits its example, and a bench may have its own."""

from __future__ import annotations

import re

import pytest

from storqual_core.data import read_table
from storqual_core.host.kernel_log import LogRule, classify, errors_of, find_all, read_rules, shipped_rules

RULES = shipped_rules()


def test_the_shipped_rules_are_held_to_what_a_bench_s_own_are() -> None:
    problems: list[str] = []
    rows = read_table("kernel_log")["rules"]
    # the shipped ones are more, and some are longer, than what a bench may bring
    read = [read_rules([row], "kernel_log.json", problems) for row in rows]
    assert [problem for problem in problems if "at most 400" not in problem] == []
    assert sum(map(len, read)) > 150


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_the_example_of_a_rule_fits_it_and_is_of_its_kind(rule: LogRule) -> None:
    assert re.search(rule.pattern, rule.example, re.IGNORECASE)
    assert classify(rule.example) == (None if rule.severity == "none" else rule.kind)
    assert rule.source


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
