# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log are data: each shipped one fits its example, and a bench may have its own."""

from __future__ import annotations

import re

import pytest

from storqual_core.host.log_findings import RULES, classify, find_all
from storqual_core.host.log_rule import Rule, read_rules


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_the_example_of_a_rule_fits_it_and_is_of_its_kind(rule: Rule) -> None:
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
