# SPDX-License-Identifier: Apache-2.0
"""Every format: tests, counts held against them, lines that are kept, and any text without an error."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.kinds.output.formats import FORMATS, PROGRAM, read_output
from storqual.kinds.output.reading import ProgramTest, with_own_names
from tests.support.mangle import ODD_NUMBERS, with_odd_number

pytestmark = pytest.mark.slow

CUNIT = Path(__file__).with_name("cunit.txt").read_text(encoding="utf-8")
TAP = Path(__file__).with_suffix(".tap").read_text(encoding="utf-8")
JUNIT = Path(__file__).with_name("junit.xml").read_text(encoding="utf-8")
BLKTESTS = Path(__file__).with_name("blktests.txt").read_text(encoding="utf-8")


READ = {
    "cunit": (CUNIT, [("Read10.Simple", "passed"), ("Read10.BeyondEol", "failed"), ("Unmap.Simple", "skipped")]),
    "tap": (
        TAP,
        [("reads", "passed"), ("writes", "failed"), ("trims", "skipped"), ("later", "skipped"), ("test 5", "passed")],
    ),
    "junit": (JUNIT, [("c.one", "passed"), ("c.two", "failed"), ("c.three", "failed"), ("four", "skipped")]),
    "blktests": (BLKTESTS, [("block/001", "passed"), ("block/003", "failed"), ("block/004", "skipped")]),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_whole_output_is_read_whole(form: str) -> None:
    text, tests = READ[form]
    reading = read_output(form, text, status=0, hung=False)
    assert [(test.name, test.outcome) for test in reading.tests] == tests
    assert (reading.unread, reading.problems) == ((), ())


def test_what_a_test_said_is_kept_with_it() -> None:
    by_name = {
        test.name: test.text for form in READ for test in read_output(form, READ[form][0], status=0, hung=False).tests
    }
    assert "CU_ASSERT_EQUAL(ret,0)" in by_name["Read10.BeyondEol"]
    assert "Skipping test" in by_name["Unmap.Simple"]
    assert "no <b>" in by_name["c.two"]
    assert "tests/block/003.out" in by_name["block/003"]


CONTRADICTIONS = [
    (
        "cunit",
        CUNIT.replace("3      3      2      1", "3      4      3      1"),
        "tests ran: the text counts 4, 3 were",
    ),
    (
        "cunit",
        CUNIT.replace("3      3      2      1", "3      3      3      0"),
        "tests failed: the text counts 0, 1",
    ),
    ("cunit", CUNIT.replace("  Test: Simple ...passed\n", "  Test: Simple ...\n"), "Read10.Simple has no result"),
    ("tap", TAP.replace("1..5", "1..6"), "1..N: the text counts 6, 5 were read"),
    ("tap", TAP.replace("ok 3", "ok 7"), "test 3 has the number 7"),
    ("tap", TAP + "1..5\n", "a second plan"),
    ("tap", TAP + "Bail out! no drive\n", "Bail out! no drive"),
    (
        "junit",
        JUNIT.replace('tests="4" failures="1">', 'tests="5" failures="1">'),
        "tests of testsuites: the text counts 5",
    ),
    ("junit", JUNIT.replace('errors="1"', 'errors="x"'), "errors of s: 'x' is no count"),
    ("junit", JUNIT.replace("</testsuite></testsuites>", ""), "XML: no element found"),
    ("junit", "<!DOCTYPE a [<!ENTITY b 'c'>]>" + JUNIT.partition("?>")[2].strip(), "a document type"),
    ("junit", "<html/>", "no element <testsuite>"),
    (
        "blktests",
        BLKTESTS.replace("[passed]", "").replace("block/003", "block/001 (b)\nblock/003", 1),
        "block/001 has no",
    ),
    ("tap", "", "the text ends before its end"),
    ("blktests", "", "no test was read"),
]


@pytest.mark.parametrize(("form", "text", "problem"), CONTRADICTIONS, ids=[told for _, _, told in CONTRADICTIONS])
def test_a_text_that_contradicts_itself_is_told(form: str, text: str, problem: str) -> None:
    assert problem in " | ".join(read_output(form, text, status=0, hung=False).problems)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("odd", ODD_NUMBERS, ids=lambda odd: f"{odd[:8]} of {len(odd)}")
def test_a_number_that_is_none_is_read_or_kept(form: str, odd: str) -> None:
    for changed in with_odd_number(READ[form][0], odd):
        read_output(form, changed, status=0, hung=False)


@pytest.mark.parametrize("form", ["cunit", "tap", "blktests"])
def test_a_line_of_no_format_is_kept(form: str) -> None:
    line = "Segmentation fault"
    assert read_output(form, f"{line}\n{READ[form][0]}", status=0, hung=False).unread == (line,)


def test_an_element_of_no_format_is_kept() -> None:
    for form in ("junit",):
        text = (
            READ[form][0]
            .replace("</testsuite>", "<odd>x</odd></testsuite>")
            .replace("</collection>", "<odd>x</odd></collection>")
        )
        assert read_output(form, text, status=0, hung=False).unread == ("<odd>x",)


HUNG = {
    "cunit": (CUNIT.partition("FAILED")[0], "Read10.BeyondEol"),
    "blktests": (BLKTESTS.splitlines()[0], "block/001"),
    "tap": (TAP.partition("not ok 2")[0], PROGRAM),
    "junit": (JUNIT.partition("<testcase classname='c' name='three'")[0], PROGRAM),
}


@pytest.mark.parametrize("form", HUNG)
def test_the_test_under_way_at_the_limit_hung_and_what_came_before_counts(form: str) -> None:
    text, name = HUNG[form]
    reading = read_output(form, text, status=-9, hung=True)
    assert [test.name for test in reading.tests if test.outcome == "hung"] == [name]
    assert reading.problems == ()


def test_a_program_that_died_in_a_test_failed_it() -> None:
    text, name = HUNG["cunit"]
    reading = read_output("cunit", text, status=-11, hung=False)
    assert (reading.tests[-1].name, reading.tests[-1].outcome) == (name, "failed")
    assert "status -11" in reading.tests[-1].text


@pytest.mark.parametrize("form", READ)
def test_a_program_that_crashed_behind_its_last_test_contradicts_its_output(form: str) -> None:
    assert any(
        "signal 11" in problem for problem in read_output(form, READ[form][0], status=-11, hung=False).problems
    )


@pytest.mark.parametrize(
    ("status", "hung", "outcome"), [(0, False, "passed"), (1, False, "failed"), (None, True, "hung")]
)
def test_an_exit_status_alone_is_one_test(status: int | None, hung: bool, outcome: str) -> None:
    reading = read_output("status", "a\nb\n", status=status, hung=hung)
    assert [(test.name, test.outcome, test.text) for test in reading.tests] == [(PROGRAM, outcome, "a\nb")]


PIECES = st.sampled_from(
    [line for text, _ in READ.values() for line in text.splitlines()]
    + [
        "",
        *("  ", "1..", "1..999999999999", "ok", "not ok", "not ok 1 - ", "# Subtest:", "        ok 1 deep"),
        "Suite: ",
    ]
    + ["  Test: ...", "  Test: a ...", "{}", "[]", '{"testStepArtifact": 3}', '{"sequenceNumber": true}', "<a", "]]>"]
)
TEXTS = st.one_of(
    st.text(max_size=200), st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=30).map("\n".join)
)


@settings(max_examples=300, deadline=None)
@given(
    form=st.sampled_from([*FORMATS, "status"]),
    text=TEXTS,
    status=st.none() | st.integers(-20, 255),
    hung=st.booleans(),
)
def test_any_text_is_read_without_an_error_and_tests_have_names_of_their_own(
    form: str, text: str, status: int | None, hung: bool
) -> None:
    reading = read_output(form, text, status=status, hung=hung)
    names = [test.name for test in reading.tests]
    assert len(set(names)) == len(names)
    assert all(test.name.strip() == test.name != "" for test in reading.tests)
    assert sum(test.outcome == "hung" for test in reading.tests) == (1 if hung else 0)
    # silence is never a pass
    assert names or reading.problems


OUTCOMES = st.lists(st.sampled_from(["passed", "failed", "skipped"]), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(outcomes=OUTCOMES, drop=st.integers(0, 11), form=st.sampled_from(["tap", "cunit", "junit"]))
def test_a_test_that_is_missing_from_the_text_is_noticed_by_its_count(
    outcomes: list[str], drop: int, form: str
) -> None:
    whole, cut = (written(form, outcomes, leave_out) for leave_out in (None, drop % len(outcomes)))
    reading = read_output(form, whole, status=0, hung=False)
    assert ([test.outcome for test in reading.tests], reading.problems) == (outcomes, ())
    assert read_output(form, cut, status=0, hung=False).problems


def written(form: str, outcomes: list[str], leave_out: int | None) -> str:
    """These outcomes as a program would print them; one test may be left out, its count not."""
    kept = [(number, outcome) for number, outcome in enumerate(outcomes) if number != leave_out]
    failed = outcomes.count("failed")
    if form == "tap":
        words = {"passed": "ok {} - t", "failed": "not ok {} - t", "skipped": "ok {} - t # SKIP"}
        return "\n".join([f"1..{len(outcomes)}", *(words[outcome].format(number + 1) for number, outcome in kept)])
    if form == "cunit":
        words = {"passed": "passed", "failed": "FAILED\n    1. a.c:1  - b", "skipped": "    [SKIPPED] no\npassed"}
        body = "\n".join(f"  Test: t{number} ...{words[outcome]}" for number, outcome in kept)
        total = len(outcomes)
        return f"Suite: s\n{body}\nRun Summary: x\n tests {total} {total} {total - failed} {failed} 0\n"
    words = {"passed": "", "failed": "<failure/>", "skipped": "<skipped/>"}
    cases = "".join(f'<testcase name="t{number}">{words[outcome]}</testcase>' for number, outcome in kept)
    return f'<testsuite tests="{len(outcomes)}" failures="{failed}">{cases}</testsuite>'


@given(st.lists(st.sampled_from(["a", "a (2)", "a (3)", "b"]), max_size=12))
def test_names_that_come_twice_get_numbers(names: list[str]) -> None:
    numbered = [test.name for test in with_own_names(ProgramTest(name, "passed") for name in names)]
    assert len(set(numbered)) == len(names)
    assert [name.partition(" ")[0] for name in numbered] == [name.partition(" ")[0] for name in names]
