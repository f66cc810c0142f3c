# SPDX-License-Identifier: Apache-2.0
"""`external:` of a suite: the shipped suite, the plan of its runs, and every mistake at once with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.kinds.output.formats import FORMATS, STATUS
from storqual.robustness.external_runs import PlannedExternal, plan_external
from storqual.robustness.plan import Seat, plan_trials
from storqual.robustness.suite import RobustnessSuite, load_robustness
from storqual_core.kit.errors import BadInputError

SHIPPED = Path(__file__).resolve().parents[4] / "suites" / "conformance.suite.yml"
SEATS = [
    Seat("fusion", "0000:00:06.0", "mptsas", (("f1", 1 << 30), ("f2", 1 << 30))),
    Seat("sym", "0000:00:05.0", "sym53c8xx", (("s1", 1 << 30),)),
    Seat("empty", "0000:00:07.0", "mptsas", ()),
]


def planned(suite: RobustnessSuite, profile: str | None = None) -> list[PlannedExternal]:
    _, chosen = suite.profile(profile)
    plan = plan_trials(suite, chosen, SEATS, arms=("baseline", "candidate"), kind="virtual", seed=1)
    return list(plan_external(suite, chosen, SEATS, plan.sessions))


def test_the_shipped_suite_runs_each_program_in_both_arms_on_the_same_drive() -> None:
    suite = load_robustness(SHIPPED)
    assert {one.package for one in suite.external.values()} == {"libiscsi-bin", "stress-ng", None}
    found = planned(suite)
    assert [(one.id, one.session, one.drive) for one in found] == [
        ("scsi.fusion.1.baseline", "s01", "f1"),
        ("scsi.sym.1.baseline", "s01", "s1"),
        ("scsi.fusion.1.candidate", "s02", "f1"),
        ("scsi.sym.1.candidate", "s02", "s1"),
    ]
    assert {one.program for one in planned(suite, "checkouts")} == {"fsx", "block"}
    assert len(planned(suite, "repeated")) == 12


def test_every_declared_format_has_a_parser(tmp_path: Path) -> None:
    path = tmp_path / "x.suite.yml"
    for form in (*FORMATS, STATUS):
        path.write_text(f"kind: robustness\nexternal:\n  a: {{run: [x], reads: {form}}}\n", encoding="utf-8")
        assert load_robustness(path).external["a"].reads == form


WRONG = """\
kind: robustness
external:
  a:
    run: [x, "{drvie}", "{checkout}/check"]
    reads: tapp
    limit: 0s
    repeats: 0
  b:
    run: [x]
    reads: tap
    checkout: blktests
    report: ../results.xml
    restarts: 3
  c: {reads: tap}
profiles:
  quick: {external: d}
"""


def test_every_mistake_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.suite.yml"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        load_robustness(path)
    told = [problem.removeprefix(f"{path}:") for problem in refused.value.problems]
    assert [line.split(":", 1)[0] for line in told] == ["4", "4", "5", "6", "7", "11", "12", "13", "14", "16"]
    for line, words in zip(
        told,
        (
            "placeholder {drvie}",
            "{checkout} without a checkout",
            "'tapp'",
            "no time in external.a.limit",
            "at least 1",
            "checkout 'blktests'",
            "report '../results.xml'",
            "unknown key 'restarts'",
            "key 'run' is missing in external.c",
            "no program 'd'",
        ),
        strict=True,
    ):
        assert words in line, line
    assert "did you mean 'drive'" in told[0]


def test_a_suite_with_neither_trials_nor_programs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.suite.yml"
    path.write_text("kind: robustness\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="neither trials nor programs"):
        load_robustness(path)
