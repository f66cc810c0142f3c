# SPDX-License-Identifier: Apache-2.0
"""Tests of reading published files: strict, every problem at once, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.audit import audit, exit_code
from storqual_core.kit.errors import BadInputError
from tests.support.audit_reports import published, report_text

FIGURES = "- {id: a, page: 1, what: a figure, value: 1}\n"


def problems(figures: str, assertions: str) -> list[str]:
    """What is told about a file."""
    with pytest.raises(BadInputError) as told:
        published(report_text(figures, assertions))
    return told.value.problems


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        ("stated: 1", "says no way to check it; it needs exactly one of computed, same"),
        ("stated: 1, computed: a, not_checkable: no", "has computed and not_checkable; it needs exactly one of"),
        ("computed: a", "this assertion needs `stated`"),
        ("stated: 1, computed: b", "no figure 'b' in this file"),
        ("stated: b, same: a", "no figure 'b' in this file"),
        ("stated: 1, computed: 'a[2]'", "no '2' in 'a' in this file"),
        ("stated: one two, computed: a", "expected an expression of figures"),
        ("stated: 1, computed: open(a)", "instead of open()"),
        ("stated: 1, computed: a, relation: nearly", "expected one of is, about"),
        ("linear: {series: a}", "the labels of a are not whole numbers of units"),
        ("linear: {total: a, units: 2}", "needs either series, or total, single and units"),
        ("linear: {total: a, single: a, units: 1}", "expected more than 1"),
        ("falling: [a, b]", "no figure 'b'"),
        ("ranking: {there: [a], here: [a, a]}", "the two lists differ in length"),
        ("course: {series: a, over: [1, 2], is: rises}", "no '1' in 'a'"),
        ("stated: yes, computed: a", "no figure 'yes'"),
        ("stated: 1, computed: a, colour: red", "unknown key 'colour'"),
    ],
)
def test_a_wrong_assertion_is_told_with_its_line(assertion: str, said: str) -> None:
    told = problems(FIGURES, f"- {{id: claim, page: 1, text: it says so, {assertion}}}\n")
    assert any(said in one and one.startswith("paper.yml:6:") for one in told), told


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ("id: a, page: 1, what: x", "figure 'a' needs exactly one of `value` and `values`"),
        (
            "id: a, page: 1, what: x, value: 1, values: [1], at: [x]",
            "figure 'a' needs exactly one of `value` and `values`",
        ),
        (
            "id: a, page: 1, what: x, values: [1, 2], at: [x]",
            "has 2 values and 1 labels; it needs one value for each label",
        ),
        ("id: a, page: 1, what: x, values: [1]", "figure 'a' needs both `values` and `at`, or neither"),
        ("id: a, page: 1, what: x, values: [1, 2], at: [x, x]", "labels, each once"),
        ("id: A-1, page: 1, what: x, value: 1", "a name such as read.superdome"),
        ("id: a, page: true, what: x, value: 1", "a page number, or the name of a section"),
        ("id: a, page: 1, what: x, value: [1]", "a number, with the digits that are printed"),
        ("id: a, page: 1, what: x, value: .inf", "is not a number"),
        ("id: a, page: 1, what: x, value: 1, configuration: none", "unknown configuration 'none'"),
    ],
)
def test_a_wrong_figure_is_told_with_its_line(figure: str, said: str) -> None:
    told = problems(f"- {{{figure}}}\n", "- {id: claim, page: 1, text: it, not_checkable: no}\n")
    assert any(said in one and one.startswith("paper.yml:4:") for one in told), told


def test_an_id_that_is_there_twice_is_told_at_both_places() -> None:
    """Two figures of one name would hide one of them."""
    told = problems(FIGURES + FIGURES, "- {id: claim, page: 1, text: it, not_checkable: no}\n")
    assert [one.split(":")[1] for one in told] == ["4", "5"]


def test_all_problems_are_told_at_once() -> None:
    wrong = "- {id: one, page: 1, text: it, stated: 1, computed: b}\n- {id: two, page: 1, text: it, stated: 1}\n"
    assert len(problems(FIGURES, wrong)) == 2


def test_an_unknown_text_is_refused_with_what_to_do(tmp_path: Path) -> None:
    text = tmp_path / "report.txt"
    text.write_text("our adapter is 13 % faster: 2721 against 2425\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"found a text whose figures have no names, expected a file such as"):
        audit([text])


def test_the_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as told:
        audit([tmp_path / "one.yml", tmp_path / "two.txt", tmp_path])
    assert len(told.value.problems) == 3
    for name, problem in zip(("one.yml", "two.txt", ""), told.value.problems, strict=True):
        assert problem.startswith(f"{tmp_path / name}: ")


def test_the_exit_code_is_that_of_a_check(tmp_path: Path) -> None:
    """0 when all is well, 1 when anything is inconsistent, never a count."""
    paper = tmp_path / "paper.yml"
    for stated, code in (("1", 0), ("3", 1)):
        assertion = f"- {{id: claim, page: 1, text: it, stated: {stated}, computed: a}}\n"
        paper.write_text(report_text(FIGURES, assertion), encoding="utf-8")
        assert exit_code(audit([paper, paper])) == code
