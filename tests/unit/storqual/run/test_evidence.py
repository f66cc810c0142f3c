# SPDX-License-Identifier: Apache-2.0
"""A run that is whole, one that was interrupted, one that was closed; what is tried against them: tests/attacks."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storqual.audit import Status
from storqual.cli.audit import audit_files
from storqual.judge.verdict import judge_run, verdict_of
from storqual.pytest_plugin import run_checks
from storqual.run import append_check, append_event, read_run
from storqual.run.closing import close_run, is_closed
from storqual.run.evidence import INTERRUPTED, evidence_findings, rules_of
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.attacks.finished_run import SUITE
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.make_run import make_run
from tests.support.simulated_campaign import Bench, Rates, drive, plan

pytestmark = pytest.mark.slow


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A run that was measured to its end and not closed."""
    path = plan(tmp_path, hosts=lab_hosts({"sym": 2}), suite=SUITE, baseline=KERNEL, candidate=OTHER)
    drive(path, Bench(Rates(noise=0.003)), close=False)
    return path


def contents(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_run_without_its_end_does_not_pass(measured: Path) -> None:
    assert evidence_findings(read_run(measured)) == [INTERRUPTED]
    assert verdict_of(measured)["outcome"] == "ERROR"
    close_run(measured)
    assert evidence_findings(read_run(measured)) == []
    verdict = verdict_of(measured)
    assert (verdict["outcome"], verdict["evidence"]) == ("PASS", rules_of(read_run(measured)))


def test_closing_twice_says_it_once(measured: Path) -> None:
    close_run(measured)
    before = contents(measured)
    close_run(measured)
    assert contents(measured) == before


def test_a_run_that_goes_on_is_open_again_and_keeps_what_it_was_closed_over(measured: Path) -> None:
    close_run(measured)
    append_event(measured, "resumed", {})
    assert not is_closed(measured)
    append_check(measured, {"id": "late", "outcome": "PASS", "source": "pytest"})
    close_run(measured)
    assert evidence_findings(read_run(measured)) == []
    checks = measured / "checks.jsonl"
    checks.write_text(checks.read_text().replace("late", "lost"))
    assert "checks.jsonl: was changed after the run was closed" in evidence_findings(read_run(measured))


def test_what_was_closed_over_first_is_held_to_its_first_lines(measured: Path) -> None:
    append_check(measured, {"id": "early", "outcome": "FAIL", "source": "pytest"})
    close_run(measured)
    checks = measured / "checks.jsonl"
    checks.write_text(checks.read_text().replace("FAIL", "PASS"))
    append_event(measured, "resumed", {})
    close_run(measured)
    (finding,) = evidence_findings(read_run(measured))
    assert finding == "checks.jsonl: its first 1 lines are not those that were closed over"


def test_judging_a_closed_run_again_changes_nothing(measured: Path) -> None:
    close_run(measured)
    judge_run(measured)
    before = contents(measured)
    assert judge_run(measured)["outcome"] == "PASS"
    assert contents(measured) == before


def test_a_closed_run_that_was_changed_keeps_its_verdict_and_is_judged_an_error(measured: Path) -> None:
    close_run(measured)
    judge_run(measured)
    samples = measured / "samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b'"read_ios":', b'"read_ios":1', 1))
    before = (measured / "verdict.json").read_bytes()
    assert judge_run(measured)["outcome"] == "ERROR"
    assert (measured / "verdict.json").read_bytes() == before


def test_other_rules_make_a_judgement_and_an_event_once(measured: Path) -> None:
    close_run(measured)
    judge_run(measured)
    for _ in range(2):
        judge_run(measured, as_of=datetime(2026, 12, 1, tzinfo=UTC))
    judged = [event for event in read_run(measured).events if event.kind == "judged"]
    (path,) = (measured / "judgements").glob("*/verdict.json")
    assert [event.text("path") for event in judged] == ["verdict.json", str(path.relative_to(measured))]


def test_checks_of_a_closed_run_are_judged_beside_it(measured: Path, tmp_path: Path) -> None:
    suite = tmp_path / "test_own.py"
    suite.write_text("def test_it(run):\n    assert not run.samples\n", encoding="utf-8")
    run_checks(measured, [suite])
    close_run(measured)
    assert judge_run(measured)["outcome"] == "FAIL"
    kept = {name: data for name, data in contents(measured).items() if name != "events.jsonl"}
    suite.write_text("def test_it(run):\n    assert run.samples\n", encoding="utf-8")
    assert run_checks(measured, [suite]) == 0
    after = contents(measured)
    assert {name: after[name] for name in kept} == kept
    (folder,) = (measured / "judgements").iterdir()
    assert json.loads((folder / "verdict.json").read_bytes())["outcome"] == "PASS"
    assert json.loads((folder / "checks.jsonl").read_bytes())["id"] == "test_own.py::test_it"


def test_a_planned_check_without_an_outcome_is_an_error(measured: Path) -> None:
    append_event(measured, "checks_planned", {"source": "pytest", "checks": {"test_a.py::test_it": 2}})
    append_check(measured, {"id": "test_a.py::test_it", "outcome": "PASS", "source": "pytest", "point": "p"})
    close_run(measured)
    (entry,) = (criterion for criterion in verdict_of(measured)["criteria"] if criterion["outcome"] == "ERROR")
    assert (entry["id"], entry["reason"]) == (
        "test_a.py::test_it",
        "it was planned and has no outcome (1 of 2 are in checks.jsonl)",
    )


def test_an_outcome_that_there_is_not_is_refused(measured: Path) -> None:
    (measured / "checks.jsonl").write_text('{"id": "x", "outcome": "PASSED", "source": "pytest"}\n')
    with pytest.raises(StorqualError, match=r"checks.jsonl:1: found outcome 'PASSED', expected one of PASS"):
        verdict_of(measured)


def test_the_audit_says_what_does_not_follow_from_the_raw_files(measured: Path) -> None:
    close_run(measured)
    judge_run(measured)
    wrong_claims = [claim for claim in audit_files([measured]) if claim.id.startswith("run.evidence")]
    assert [claim.status for claim in wrong_claims] == [Status.CONSISTENT]
    samples = measured / "samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b'"interrupts":', b'"interrupts":1', 1))
    wrong_claims = [claim for claim in audit_files([measured]) if claim.id.startswith("run.evidence")]
    assert {claim.status for claim in wrong_claims} == {Status.INCONSISTENT}
    assert any("found interrupts 1" in claim.explanation for claim in wrong_claims)


@pytest.mark.parametrize("schema", ["storqual.run/1", "storqual.run/3", None])
def test_a_run_of_another_schema_is_not_read(tmp_path: Path, schema: str | None) -> None:
    path = make_run(tmp_path, noise=0.003)
    document = json.loads((path / "run.json").read_bytes())
    (path / "run.json").write_text(json.dumps({**document, "schema": schema}))
    with pytest.raises(BadInputError, match=r"expected 'storqual\.run/2'"):
        verdict_of(path)
