# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit of storqual's own verdict: a sound one passes, and each planted contradiction is found."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from storqual.audit import Status, audit, exit_code
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual_core.kit.errors import BadInputError
from tests.support.judged_run import QUIET, suite_with
from tests.support.make_run import make_run
from tests.support.sealed_run import sealed

pytestmark = pytest.mark.slow

CRITERION = {
    "id": "iops@sym/seq_read[bs=4k]", "bench": "vbench", "adapter": "sym", "point": "seq_read[bs=4k]",
    "metric": "iops", "unit": "IOPS", "better": "higher", "against": "baseline", "reference": 300.0,
    "outcome": "PASS", "reason": "",
    "candidate": 299.1, "shift_percent": -0.31, "ci95_percent": [-1.2, 0.6], "margin_percent": 3.0,
    "detectable_percent": 2.1, "samples": {"candidate": 6, "baseline": 6},
    "sessions": {"candidate": 2, "baseline": 2}, "waiver": None, "required": True,
}  # fmt: skip
VERDICT: dict[str, Any] = {
    "schema": "storqual.verdict/1", "run": "20261121T100000Z-adapter-0001", "outcome": "PASS", "exit_code": 0,
    "as_of": "2026-11-21T11:00:00Z", "inputs": {}, "criteria": [CRITERION],
    "coverage": {"planned": 3, "measured": 2, "skipped": [{"point": "x", "reason": "one drive only"}]},
    "sectors_written_outside_claims": 0, "warnings": [],
}  # fmt: skip
RUN = {"schema": "storqual.run/1", "coverage": {"planned": 3, "measured": 2, "skipped": []}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run directory as far as the audit reads it."""
    write(tmp_path, VERDICT)
    return tmp_path


def write(folder: Path, verdict: dict[str, Any]) -> None:
    """Write verdict.json and run.json."""
    (folder / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    (folder / "run.json").write_text(json.dumps(RUN), encoding="utf-8")


@pytest.mark.parametrize("name", [".", "verdict.json", "report.html"])
def test_a_sound_verdict_is_consistent_throughout(folder: Path, name: str) -> None:
    claims = audit([folder / name])
    assert claims
    assert {claim.status for claim in claims} == {Status.CONSISTENT}
    assert exit_code(claims) == 0


def first(verdict: dict[str, Any]) -> dict[str, Any]:
    """Its first criterion."""
    return verdict["criteria"][0]


CONTRADICTIONS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an exit code that its outcome does not have": (lambda v: v.update(exit_code=1), "exit_code"),
    "a pass over a failed criterion": (lambda v: first(v).update(outcome="FAIL"), "exit_code_of_criteria"),
    "a pass over one that could not be judged": (lambda v: first(v).update(outcome="ERROR"), "exit_code_of_criteria"),
    "a pass without any criterion": (lambda v: v.update(criteria=[]), "exit_code_of_criteria"),
    "a pass after a write outside the claims": (
        lambda v: v.update(sectors_written_outside_claims=1),
        "exit_code_of_criteria",
    ),
    "a hole in coverage that nothing explains": (
        lambda v: v["coverage"]["skipped"][0].update(reason=""),
        "exit_code_of_criteria",
    ),
    "a point that is neither measured nor skipped": (
        lambda v: v["coverage"].update(skipped=[]),
        "exit_code_of_criteria",
    ),
    "more points measured than planned": (lambda v: v["coverage"].update(measured=3), "coverage"),
    "coverage that run.json does not know": (
        lambda v: v["coverage"].update(planned=4, measured=3),
        "coverage_measured",
    ),
    "a shift below its own interval": (lambda v: first(v).update(shift_percent=-1.4), "criterion_0.low"),
    "a shift above its own interval": (lambda v: first(v).update(shift_percent=0.9), "criterion_0.high"),
    "a pass beyond the margin": (
        lambda v: first(v).update(shift_percent=-3.4, ci95_percent=[-4.0, -2.8]),
        "criterion_0.loss",
    ),
    "a fail for a gain": (
        lambda v: (first(v).update(outcome="FAIL", shift_percent=0.4), v.update(outcome="FAIL", exit_code=1)),
        "criterion_0.loss",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_each_contradiction_is_found(folder: Path, name: str) -> None:
    change, wrong = CONTRADICTIONS[name]
    verdict = deepcopy(VERDICT)
    change(verdict)
    write(folder, verdict)
    claims = audit([folder])
    found = {claim.id.removeprefix("run.") for claim in claims if claim.status is Status.INCONSISTENT}
    assert wrong in found
    assert exit_code(claims) == 1


def test_a_waived_failure_is_no_contradiction(folder: Path) -> None:
    verdict = deepcopy(VERDICT)
    first(verdict).update(outcome="FAIL", shift_percent=-2.0, ci95_percent=[-3.0, -1.1], waiver="waivers.yml:3")
    write(folder, verdict)
    assert exit_code(audit([folder])) == 0


@pytest.mark.parametrize("outcome", ["PASS", "FAIL"])
def test_an_error_of_the_rig_is_not_held_against_the_criteria(folder: Path, outcome: str) -> None:
    """Exit code 2 although every criterion passed, or one failed: the reason is elsewhere, and that is said."""
    verdict = {**deepcopy(VERDICT), "outcome": "ERROR", "exit_code": 2}
    if outcome == "FAIL":
        first(verdict).update(outcome=outcome, shift_percent=-4.0, ci95_percent=[-4.5, -3.5])
    write(folder, verdict)
    claims = {claim.id: claim for claim in audit([folder])}
    assert claims["run.exit_code_of_criteria"].status is Status.NOT_CHECKABLE
    assert claims["run.exit_code"].status is Status.CONSISTENT


def test_a_gate_may_refuse_a_marginal_pass(folder: Path) -> None:
    """Exit code 1 over a MARGINAL is the gate's policy; the audit does not guess it."""
    verdict = {**deepcopy(VERDICT), "outcome": "FAIL", "exit_code": 1}
    first(verdict).update(outcome="MARGINAL")
    write(folder, verdict)
    claims = {claim.id: claim for claim in audit([folder])}
    assert claims["run.exit_code_of_criteria"].status is Status.NOT_CHECKABLE
    assert exit_code(claims.values()) == 0


def test_a_directory_without_a_verdict_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"verdict\.json: found no readable file"):
        audit([tmp_path])


@pytest.mark.parametrize("place", ["exit_code", "shift_percent"])
@pytest.mark.parametrize("number", ["9" * 5000, "1e400", "-1e-999999999", "NaN", "1e999999999999999999999"])
def test_a_number_without_an_end_is_bad_input_or_no_figure(folder: Path, place: str, number: str) -> None:
    text = (folder / "verdict.json").read_text(encoding="utf-8")
    changed = re.sub(rf'("{place}": )[-0-9.]+', rf"\g<1>{number}", text)
    assert changed != text
    (folder / "verdict.json").write_text(changed, encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        audit([folder])
    assert str(refused.value).startswith(str(folder / "verdict.json"))


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "other"}', "\x00"])
def test_what_is_no_verdict_is_bad_input(folder: Path, text: str) -> None:
    (folder / "verdict.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"verdict\.json: found"):
        audit([folder])


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run: samples, verdict and page, made by the code that makes them for real."""
    folder = tmp_path_factory.mktemp("runs")
    gate = folder / "gate.yml"
    gate.write_text("name: test\n", encoding="utf-8")
    run = make_run(folder, effect={"mpt": -0.2}, sessions=8)
    (run / "verdict.json").write_text(json.dumps(judge_run(run, gate=gate)), encoding="utf-8")
    build_report(run)
    return run


def test_a_real_run_is_consistent_with_its_samples_and_its_page(judged: Path) -> None:
    claims = audit([judged])
    assert {claim.status for claim in claims} == {Status.CONSISTENT}
    ids = {claim.id for claim in claims}
    assert {"run.criterion_0.candidate", "run.criterion_0.samples.baseline", "run.page.outcome"} <= ids
    assert {"run.page.criterion_0.shift", "run.page.criterion_0.low", "run.page.criterion_0.outcome"} <= ids
    assert {"run.page.worst", "run.page.best", "run.page.measured", "run.page.planned"} <= ids


def test_an_interval_of_next_to_no_data_is_not_on_the_page(judged: Path, tmp_path: Path) -> None:
    run = shutil.copytree(judged, tmp_path / judged.name)
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    verdict["criteria"][0]["ci95_percent"] = [-642562222200069.4, 99.9999]
    (run / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    build_report(run)
    page = {claim.id: claim for claim in audit([run]) if claim.id.startswith("run.page.criterion_0.")}
    assert "run.page.criterion_0.shift" in page
    assert "run.page.criterion_0.low" not in page
    assert {claim.status for claim in page.values()} == {Status.CONSISTENT}


def test_a_change_told_the_wrong_way_round_is_found(judged: Path, tmp_path: Path) -> None:
    run = shutil.copytree(judged, tmp_path / judged.name)
    text = (run / "report.html").read_text(encoding="utf-8")
    turned = re.sub(
        r'(?s)(<tr id="c0".*?<b>[\d.]+\s%) (more|less)',
        lambda found: f"{found[1]} {'less' if found[2] == 'more' else 'more'}",
        text,
        count=1,
    )
    assert turned != text
    (run / "report.html").write_text(turned, encoding="utf-8")
    wrong = {claim.id for claim in audit([run]) if claim.status is Status.INCONSISTENT}
    assert wrong == {"run.page.criterion_0.shift"}


def test_a_run_of_one_arm_is_consistent_with_its_page(tmp_path: Path) -> None:
    suite = suite_with("{id: peers, metric: iops, against: peers, margin: 8%, indifference: 2%}")
    run = make_run(tmp_path, suite=suite, sessions=8, **QUIET)
    lines = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["arm"] == "candidate"]
    (run / "samples.jsonl").write_text("".join(kept), encoding="utf-8")
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    del document["arms"]["baseline"]
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    sealed(run)
    (run / "verdict.json").write_text(json.dumps(judge_run(run)), encoding="utf-8")
    build_report(run)
    claims = {claim.id: claim for claim in audit([run])}
    assert "run.page.criterion_0.shift" in claims
    assert "run.page.criterion_0.samples.candidate" in claims
    assert "run.page.criterion_0.samples.baseline" not in claims
    wrong = [claim for claim in claims.values() if claim.status is not Status.CONSISTENT]
    assert not wrong


TAMPERING = {
    "the worst shift on the page": ("report.html", r"(<dt>Worst</dt><dd><b>)[\d.]+", r"\g<1>2.1", "page.worst"),
    "the points measured on the page": ("report.html", r"<b>8 of 8", "<b>7 of 8", "page.measured"),
    "a shift on the page": (
        "report.html",
        r'(?s)(<tr id="c0".*?<b>)[\d.]+',
        r"\g<1>44.4",
        "page.criterion_0.shift",
    ),
    "an outcome on the page": (
        "report.html",
        r'(?s)(<tr id="c0".*?</span>) PASS<',
        r"\1 FAIL<",
        "page.criterion_0.outcome",
    ),
    "the exit code on the page": ("report.html", r"Exit code 1", "Exit code 0", "page.exit_code"),
    "a lost sample": ("samples.jsonl", r"^.*\n", "", None),
    "a mean": ("verdict.json", r'"candidate": [\d.]+, "shift', '"candidate": 100.5, "shift', "criterion_0.candidate"),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_a_number_that_was_changed_afterwards_is_found(judged: Path, tmp_path: Path, what: str) -> None:
    name, old, new, claim = TAMPERING[what]
    run = shutil.copytree(judged, tmp_path / judged.name)
    text = (run / name).read_text(encoding="utf-8")
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    (run / name).write_text(changed, encoding="utf-8")
    found = {one.id.removeprefix("run.") for one in audit([run]) if one.status is Status.INCONSISTENT}
    assert claim in found if claim else any(".samples." in one for one in found)
