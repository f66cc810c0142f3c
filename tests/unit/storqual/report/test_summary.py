# SPDX-License-Identifier: Apache-2.0
"""Tests of the terminal's summary: one line per criterion in a pipe, the outcome last, nothing decided here."""

import io
import json
import re
from pathlib import Path

import pytest

from storqual.report.summary import print_summary
from tests.support.judged_reports import QUICK, judged
from tests.support.terminal import Terminal


def lines(run: Path, report: Path | None = Path("report.html")) -> list[str]:
    out = io.StringIO()
    verdict, document = (json.loads((run / name).read_text()) for name in ("verdict.json", "run.json"))
    print_summary(verdict, document, report, file=out)
    return out.getvalue().splitlines()


def test_a_pipe_gets_one_line_per_required_criterion_in_columns(runs: dict[str, Path]) -> None:
    shown = lines(runs["fail"])
    failed = [line for line in shown if line.startswith("FAIL ") and "sym/" in line]
    assert len(failed) == 7
    assert all(
        "limit 3 %" in line and "% less to " in line and "the whole interval is beyond the margin" in line
        for line in failed
    )
    passed = [line for line in shown if line.startswith("PASS ")]
    assert len(passed) == 6
    assert not any("interval is" in line for line in passed)


def test_the_last_lines_are_outcome_exit_code_and_report(runs: dict[str, Path]) -> None:
    assert lines(runs["pass"])[-3:] == [
        "PASS: The candidate is shown to lose less than 3 % at all 14 required measurements.",
        "exit code 0 (passed)",
        "report: report.html",
    ]
    assert lines(runs["error"], None)[-1] == "exit code 2 (could not be judged)"


def test_it_says_what_kind_of_bench_it_was(runs: dict[str, Path]) -> None:
    assert any(line.startswith("Virtual bench: ") for line in lines(runs["pass"]))
    assert any(line.startswith("Files on this machine: not a qualification") for line in lines(runs["local"]))


def test_informative_criteria_that_pass_are_only_counted(runs: dict[str, Path]) -> None:
    assert "not listed, see the report: 14 PASS (informative)" in lines(runs["pass"])


def test_of_several_benches_each_line_names_its_own(runs: dict[str, Path]) -> None:
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    first = next(entry for entry in verdict["criteria"] if entry["required"])
    check = {**first, "against": "check", "id": "sign_off.robot::The Evidence Is Whole"}
    entries = [{**entry, "bench": bench} for bench in ("b1", "b2") for entry in (first, check)]
    for criteria, named in ((entries, True), (entries[:2], False)):
        out = io.StringIO()
        print_summary({**verdict, "criteria": criteria}, file=out)
        shown = [line for line in out.getvalue().splitlines() if line.startswith("PASS ")]
        assert len(shown) == len(criteria)
        assert [("b1: " in line, "b2: " in line) for line in shown] == [
            (named and entry["bench"] == "b1", named and entry["bench"] == "b2") for entry in criteria
        ]


def test_a_check_at_a_point_names_the_point(runs: dict[str, Path]) -> None:
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    first = next(entry for entry in verdict["criteria"] if entry["required"])
    check = {**first, "against": "check", "id": "test_a.py::test_b", "outcome": "SKIPPED", "reason": "no second port"}
    out = io.StringIO()
    print_summary({**verdict, "criteria": [check]}, file=out)
    shown = out.getvalue().splitlines()[0]
    assert f"test_a.py::test_b at {first['adapter']}/{first['point']}" in shown
    assert shown.endswith("no second port")


@pytest.mark.parametrize("against", ["absolute", "product", "published", "scaling"])
def test_a_pass_against_a_limit_has_its_figure_and_the_limit(runs: dict[str, Path], against: str) -> None:
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    first = next(entry for entry in verdict["criteria"] if entry["required"])
    reason = "IOPS is 312 (309 to 315), at least 300 is asked"
    limit = {**first, "against": against, "id": "enough_iops", "reason": reason, "shift_percent": None}
    out = io.StringIO()
    print_summary({**verdict, "criteria": [limit]}, file=out)
    shown = out.getvalue().splitlines()[0]
    assert shown.startswith("PASS  enough_iops  ")
    assert shown.endswith(reason)


def test_of_very_many_criteria_only_those_that_did_not_pass_are_listed(tmp_path: Path) -> None:
    points = [f"rand_read[bs=4k,drives=1,iodepth={depth}]" for depth in range(1, 50)]
    run = judged(tmp_path, adapters=("sym",), points=points, noise=0.002, effect={points[7]: -0.2})
    shown = lines(run)
    assert [line.split()[0] for line in shown if line.startswith(("PASS ", "FAIL "))] == ["FAIL"]
    assert any(line.startswith("not listed, see the report: 48 PASS, 49 PASS (informative)") for line in shown)


def test_a_waived_failure_says_so(runs: dict[str, Path]) -> None:
    shown = lines(runs["waived"])
    verdict = json.loads((runs["waived"] / "verdict.json").read_text())
    waived = {entry["id"] for entry in verdict["criteria"] if entry["waiver"]}
    points = {line.split()[4] for line in shown if line.startswith("FAIL (waived until 2027-03-31)  ")}
    assert points == waived != set()
    assert any(line.startswith("warning: ") and "waived" in line for line in shown)
    assert shown[-2] == "exit code 0 (passed)"


def test_without_run_and_report_there_is_still_an_outcome(runs: dict[str, Path]) -> None:
    """`storqual judge` has no more than the verdict."""
    out = io.StringIO()
    print_summary(json.loads((runs["fail"] / "verdict.json").read_text()), file=out)
    assert out.getvalue().splitlines()[-1] == "exit code 1 (failed)"


def test_a_verdict_without_criteria_is_said_in_the_judge_s_words() -> None:
    out = io.StringIO()
    verdict = {"outcome": "ERROR", "exit_code": 2, "reason": "no required criterion was judged at any point"}
    print_summary({**verdict, "criteria": [], "warnings": []}, file=out)
    assert (
        out.getvalue() == "ERROR: No required criterion was judged at any point.\nexit code 2 (could not be judged)\n"
    )


def test_a_terminal_gets_a_table_with_symbols(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Word and symbol, so that colour is never needed."""
    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    print_summary(json.loads((runs["fail"] / "verdict.json").read_text()), file=out)
    text = out.getvalue()
    assert "✕ FAIL" in text
    assert "✓ PASS" in text
    assert "95 % interval" in text
    assert QUICK[0] in text


def test_an_informative_criterion_that_is_undecided_is_only_counted(runs: dict[str, Path]) -> None:
    """It decides nothing; one that fails is listed, because somebody must know."""
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    informative = [entry for entry in verdict["criteria"] if not entry["required"]]
    informative[0]["outcome"], informative[1]["outcome"] = "INCONCLUSIVE", "FAIL"
    out = io.StringIO()
    print_summary(verdict, file=out)
    shown = out.getvalue().splitlines()
    assert not any(line.startswith("INCONCLUSIVE") for line in shown)
    assert any(line.startswith("FAIL (informative)") for line in shown)
    assert any("1 INCONCLUSIVE (informative)" in line for line in shown)


def test_of_a_run_in_which_nothing_was_judged_no_point_is_listed(runs: dict[str, Path]) -> None:
    """Forty lines that say the same would hide the one that says why."""
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    for entry in verdict["criteria"]:
        entry["outcome"] = "ERROR"
    out = io.StringIO()
    print_summary(verdict, file=out)
    shown = out.getvalue().splitlines()
    assert not any(line.startswith("ERROR ") for line in shown)
    assert shown[0] == "not listed, see the report: 14 ERROR, 14 ERROR (informative)"


def test_checks_that_pass_make_way_for_points(runs: dict[str, Path]) -> None:
    """Forty sentences that hold would push the table of points off the terminal."""
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    check = {**verdict["criteria"][0], "against": "check", "metric": None, "point": None, "required": True}
    verdict["criteria"] += [{**check, "id": f"look.robot::Number {number}"} for number in range(40)]
    out = io.StringIO()
    print_summary(verdict, file=out)
    shown = out.getvalue().splitlines()
    assert len([line for line in shown if line.startswith("PASS  ")]) == 14
    assert not any("Number" in line for line in shown)


@pytest.mark.parametrize("name", ["pass", "fail", "waived", "local"])
def test_on_eighty_columns_a_criterion_takes_a_line_or_two_and_no_word_is_broken(
    runs: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict, document = (json.loads((runs[name] / file).read_text()) for file in ("verdict.json", "run.json"))
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        out = Terminal()
        print_summary(verdict, document, file=out)
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in out.getvalue().splitlines()]
        table = lines[: next(number for number, line in enumerate(lines) if line.startswith("not listed"))]
        assert max(map(len, table)) <= columns
        words = {word for line in table for word in line.split()}
        shown = [entry for entry in verdict["criteria"] if entry["required"]]
        assert {entry["point"] for entry in shown if entry["point"]} <= {
            word.partition("/")[2].rstrip(":") for word in words
        } | {word.rpartition("/")[2].rstrip(":") for word in words}
        assert len([line for line in table if line.strip()]) <= 3 * len(shown)
