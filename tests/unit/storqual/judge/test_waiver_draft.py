# SPDX-License-Identifier: Apache-2.0
"""Waiver files for what failed."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.cli import main
from storqual.inputs import load_waivers
from storqual.judge.verdict import judge_run
from storqual.judge.waiver_draft import _waiver, draft_waivers
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import SUITE

FILLED_IN = {
    "owner:": "owner: A. Engineer",
    "reason:": "reason: known loss",
    "reference:": "reference: LAB-1",
    "expiry:": "expiry: 2035-03-31",
}


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    run = make_run(tmp_path, effect=-0.2, noise=0.002, sessions=8)
    assert judge_run(run)["outcome"] == "FAIL"
    return run


def filled_in(text: str) -> str:
    return "\n".join(
        next((line[:4] + new for key, new in FILLED_IN.items() if line.strip().startswith(key) and "#" in line), line)
        for line in text.splitlines()
    )


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out, printed.err


def test_a_draft_is_refused_until_a_person_has_filled_it_in(failed: Path, tmp_path: Path) -> None:
    file = tmp_path / "waivers.yml"
    file.write_text(draft_waivers(failed).text, encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        load_waivers(file)
    for key in ("owner", "reason", "reference", "expiry"):
        assert f"waivers[0].{key}" in str(refused.value)


def test_a_draft_that_is_filled_in_covers_what_failed_and_no_more(failed: Path, tmp_path: Path) -> None:
    draft = draft_waivers(failed)
    file = tmp_path / "waivers.yml"
    file.write_text(filled_in(draft.text), encoding="utf-8")
    verdict = judge_run(failed, waivers=file)
    failures = [entry for entry in verdict["criteria"] if entry["outcome"] == "FAIL" and entry["required"]]
    assert len(load_waivers(file)) == draft.failures == len(failures) > 0
    assert all(entry["waiver"] for entry in failures)
    assert verdict["outcome"] in ("PASS", "MARGINAL")
    assert not [text for text in verdict["warnings"] if text.startswith("waiver ")]


def test_a_loss_is_accepted_up_to_what_was_measured(failed: Path, tmp_path: Path) -> None:
    file = tmp_path / "waivers.yml"
    file.write_text(filled_in(draft_waivers(failed).text), encoding="utf-8")
    verdict = json.loads((failed / "verdict.json").read_text(encoding="utf-8"))
    losses = [
        -entry["shift_percent"]
        for entry in verdict["criteria"]
        if entry["outcome"] == "FAIL" and entry["shift_percent"] < 0
    ]
    accepted = [100 * waiver.max_loss for waiver in load_waivers(file) if waiver.max_loss is not None]
    assert len(accepted) == len(losses) > 0
    assert all(0 <= most - loss <= 0.1 for most, loss in zip(accepted, losses, strict=True))


def test_what_is_waived_already_is_not_written_again(failed: Path, tmp_path: Path) -> None:
    file = tmp_path / "waivers.yml"
    file.write_text(filled_in(draft_waivers(failed).text), encoding="utf-8")
    verdict = judge_run(failed, waivers=file)
    (failed / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    with pytest.raises(BadInputError, match="is waived already"):
        draft_waivers(failed)


def test_a_name_with_brackets_names_itself_only(tmp_path: Path) -> None:
    check = {"id": "test_a.py::test_b[x*]", "outcome": "FAIL", "reason": "two\nlines: # \x1b[31m"}
    failed = make_run(tmp_path, noise=0.002, sessions=8, checks=[check])
    assert judge_run(failed)["outcome"] == "FAIL"
    file = tmp_path / "waivers.yml"
    file.write_text(filled_in(draft_waivers(failed).text), encoding="utf-8")
    (waiver,) = load_waivers(file)
    assert (waiver.criterion, waiver.adapter, waiver.point) == ("test_a.py::test_b[x?]", "*", "*")
    assert judge_run(failed, waivers=file)["outcome"] == "PASS"
    run: Any = SimpleNamespace(arms={"candidate": SimpleNamespace(drop="28..29")}, suite=SimpleNamespace(name="a"))
    assert {'    drop: "28[.].29"', '    adapter: "[*]"'} < set(_waiver(run, {"id": "iops", "adapter": "*"}))


def test_the_command_writes_a_new_file_and_overwrites_none(
    failed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = told(capsys, "waive", str(failed))
    assert code == 0
    assert f"storqual judge {failed} --waivers waivers.yml" in out
    written = Path("waivers.yml").read_bytes()
    code, _, err = told(capsys, "waive", str(failed), "--json")
    assert code == 3
    assert "waivers.yml: this file exists and is not overwritten" in err
    assert Path("waivers.yml").read_bytes() == written


def test_a_run_without_failures_needs_no_waiver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path, noise=0.003)
    code, _, err = told(capsys, "waive", str(run))
    assert (code, "has no verdict yet" in err) == (3, True)
    judge_run(run)
    code, _, err = told(capsys, "waive", str(run))
    assert (code, "nothing to waive" in err) == (3, True)
    assert not Path("waivers.yml").exists()


def test_a_draft_of_an_outdated_verdict_is_refused_with_what_mends_it(failed: Path) -> None:
    verdict = json.loads((failed / "verdict.json").read_text(encoding="utf-8"))
    for entry in verdict["criteria"]:
        entry.pop("loss_percent")
    (failed / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    with pytest.raises(BadInputError, match=f"outdated.*storqual publish {failed}"):
        draft_waivers(failed)


def test_a_failure_of_an_absolute_limit_is_drafted_with_its_loss(tmp_path: Path) -> None:
    suite = SUITE.replace(
        "required: true}", "required: true}\n  - {metric: iops, id: floor, against: absolute, min: 1000000}", 1
    )
    run = make_run(tmp_path, noise=0.002, suite=suite)
    judge_run(run)
    lines = draft_waivers(run).text.splitlines()
    drafts = [number for number, line in enumerate(lines) if line.strip() == '- criterion: "floor"']
    assert drafts
    assert all(any("max_loss: " in line for line in lines[number : number + 8]) for number in drafts)
