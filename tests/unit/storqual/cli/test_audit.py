# SPDX-License-Identifier: Apache-2.0
"""Tests of `storqual audit`: exact JSON, one line for each wrong assertion, and runs held to their own files."""

import json
import re
import shutil
from pathlib import Path

import pytest

from storqual.audit import AuditedAssertion, Status, audit_document
from storqual.base.files import suites_folder
from storqual.cli import main
from storqual.cli.audit import audit_files
from storqual.judge.verdict import judge_run
from storqual.report.export import write_ocp
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run

WRONG = AuditedAssertion("paper.a", "A paper", 3, "a rise", 51, 98.44, "%", Status.INCONSISTENT, "Not 51.")
RIGHT = AuditedAssertion("paper.b", "A paper", None, "two", "linear", None, "-", Status.NOT_CHECKABLE, "No data.")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged run with its lines for other programs."""
    run = make_run(tmp_path_factory.mktemp("runs"), noise=0.003, sessions=8)
    judge_run(run)
    write_ocp(run)
    return run


def test_the_json_has_exactly_the_keys_that_scripts_rely_on() -> None:
    """Design, section 4."""
    document = json.loads(json.dumps(audit_document([WRONG, RIGHT]), allow_nan=False))
    keys = ["id", "source", "page", "text", "stated", "computed", "unit", "status", "explanation"]
    assert list(document) == ["claims"]
    assert [list(claim) for claim in document["claims"]] == [keys, keys]
    assert [claim["status"] for claim in document["claims"]] == ["inconsistent", "not_checkable"]


def test_all_published_reports_are_audited_together() -> None:
    claims = audit_files(sorted((suites_folder() / "published").glob("*.yml")))
    assert len({claim.id for claim in claims}) == len(claims) > 200
    assert {claim.status for claim in claims} == set(Status)


def test_a_pipe_gets_a_line_for_each_wrong_assertion_and_the_count(capsys: pytest.CaptureFixture[str]) -> None:
    report = suites_folder() / "published" / "perc3qc.yml"
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(report)])
    assert ended.value.code == 1
    wrong = [claim for claim in audit_files([report]) if claim.status is Status.INCONSISTENT]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [["inconsistent", claim.id] for claim in wrong]
    assert re.fullmatch(r"25 assertions: .* 2 inconsistent, 9 not checkable", lines[-1])


@pytest.mark.slow
def test_a_run_that_was_published_agrees_with_its_files(published: Path) -> None:
    by_id = {claim.id: claim for claim in audit_files([published])}
    assert {claim.status for claim in by_id.values()} == {Status.CONSISTENT}
    assert {"run.evidence.0", "run.verdict.0", "run.exports.0", "run.criterion_0"} <= set(by_id)
    assert by_id["run.criterion_0"].stated == by_id["run.criterion_0"].computed is not None


CHANGES = {
    "a lost sample": ("samples.jsonl", r"^.*\n", "", "run.evidence.0"),
    "a shift of the verdict": ("verdict.json", r'("shift_percent": )[-\d.]+', r"\g<1>44.4", "run.criterion_0"),
    "the exit code": ("verdict.json", r'("exit_code": )\d', r"\g<1>3", "run.verdict.0"),
    "a diagnosis of ocp.jsonl": ("ocp.jsonl", r'"type":"PASS"', '"type":"FAIL"', "run.exports.0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_afterwards_is_found(published: Path, tmp_path: Path, what: str) -> None:
    name, old, new, wrong = CHANGES[what]
    run = shutil.copytree(published, tmp_path / published.name)
    text = (run / name).read_text(encoding="utf-8")
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    (run / name).write_text(changed, encoding="utf-8")
    inconsistent = {claim.id for claim in audit_files([run]) if claim.status is Status.INCONSISTENT}
    assert wrong in inconsistent


def test_a_directory_without_a_verdict_is_bad_input(tmp_path: Path) -> None:
    run = make_run(tmp_path, noise=0.003)
    with pytest.raises(BadInputError, match="no verdict"):
        audit_files([run])
