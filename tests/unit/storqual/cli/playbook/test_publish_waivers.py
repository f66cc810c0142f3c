# SPDX-License-Identifier: Apache-2.0
"""Which waivers a run is published with: the lab's, those that are asked for, and later those of its own verdict."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storqual.campaign.publication import waivers_for
from storqual.checks.own import allow_checks
from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.run import read_run, write_json
from tests.support.make_run import make_run
from tests.support.sealed_run import sealed
from tests.support.synthetic_shape import POINTS

WAIVER = """\
- {{criterion: iops, adapter: sym, point: "*", owner: Pat, reason: known, reference: LAB-12, expiry: {0}}}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab that has accepted a failure until the end of the year."""
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "waivers.yml").write_text(WAIVER.format("2026-12-31"), encoding="utf-8")
    return folder


@pytest.fixture
def run(lab: Path, tmp_path: Path) -> Path:
    path = make_run(tmp_path, noise=0.003, points=POINTS[:1], effect={"sym": -0.2})
    allow_checks(read_run(sealed(path)), (), [str(lab)])
    return path


def test_the_labs_own_waivers_accept_a_known_failure(lab: Path, run: Path) -> None:
    other = lab / "other.yml"
    other.write_text(WAIVER.format("2027-03-31"), encoding="utf-8")
    assert waivers_for(run, None) == lab / "waivers.yml"
    assert waivers_for(run, other) == other
    (lab / "waivers.yml").unlink()
    assert waivers_for(run, None) is None


def test_a_judged_run_keeps_the_waivers_of_its_verdict(lab: Path, run: Path) -> None:
    """What the lab changes later changes no verdict; other waivers are asked for by name."""
    assert judge_run(run, waivers=lab / "waivers.yml")["exit_code"] == 0
    (lab / "waivers.yml").write_text(WAIVER.format("2027-03-31"), encoding="utf-8")
    assert waivers_for(run, None) == run / "waivers.yml"
    assert waivers_for(run, lab / "waivers.yml") == lab / "waivers.yml"


def test_a_run_judged_without_waivers_is_accepted_only_by_those_that_are_asked_for(lab: Path, run: Path) -> None:
    assert judge_run(run)["exit_code"] == 1
    assert waivers_for(run, None) is None
    assert waivers_for(run, lab / "waivers.yml") == lab / "waivers.yml"


def test_judged_again_a_run_fails_by_itself_once_its_waiver_has_expired(lab: Path, run: Path) -> None:
    judge_run(run, waivers=lab / "waivers.yml", as_of=datetime(2026, 12, 1, tzinfo=UTC))
    assert judge_run(run, waivers=lab / "waivers.yml")["exit_code"] == 0
    assert judge_run(run, as_of=datetime(2026, 12, 31, tzinfo=UTC))["exit_code"] == 0
    assert judge_run(run, as_of=datetime(2027, 1, 1, tzinfo=UTC))["exit_code"] == 1


def test_a_waivers_file_that_no_verdict_was_made_with_accepts_nothing(lab: Path, run: Path) -> None:
    judge_run(run)
    (run / "waivers.yml").write_bytes((lab / "waivers.yml").read_bytes())
    assert judge_run(run)["exit_code"] == 1


def test_waivers_that_the_gate_does_not_take_end_with_exit_code_3(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = "name: strict\nwaivers: {owners: [Mia], reference: 'BUG-[0-9]+'}\n"
    run = make_run(tmp_path, noise=0.003, points=POINTS[:1], effect={"sym": -0.2}, gate=gate)
    with pytest.raises(SystemExit) as ended:
        main(["publish", str(run), "--waivers", str(lab / "waivers.yml")])
    assert ended.value.code == 3
    message = capsys.readouterr().err
    assert "waivers.yml:1: waivers[0].owner is 'Pat'; gate strict allows owners that match Mia" in message
    assert "waivers.yml:1: waivers[0].reference is 'LAB-12'" in message
    assert not (run / "verdict.json").exists()


def planted(run: Path, text: str) -> None:
    (run / "waivers.yml").write_text(text, encoding="utf-8")
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    verdict["inputs"]["waivers"] = hashlib.sha256(text.encode()).hexdigest()
    write_json(run / "verdict.json", verdict)


def test_waivers_that_are_put_into_a_run_accept_nothing(
    lab: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither do those in the folder in which somebody works."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "waivers.yml").write_text(WAIVER.format("2035-12-31"), encoding="utf-8")
    (lab / "waivers.yml").unlink()
    assert judge_run(run)["exit_code"] == 1
    planted(run, WAIVER.format("2035-12-31"))
    assert waivers_for(run, None) is None
    for words in (["judge", str(run)], ["judge", "."]):
        monkeypatch.chdir(run)
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 1


@pytest.mark.parametrize("where", ["inputs", "nowhere/else", "."])
def test_a_run_names_no_lab(where: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `/proc/self/cwd` leads to is a folder of whoever publishes a stranger's run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of nobody"))
    folder = run / "inputs" if where == "inputs" else tmp_path / where
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "waivers.yml").write_text(WAIVER.format("2035-12-31"), encoding="utf-8")
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    for named in (where, str(folder), f"/proc/self/cwd/{where}"):
        write_json(run / "run.json", {**document, "lab": [named], "inventories": [named]})
        assert waivers_for(run, None) is None
