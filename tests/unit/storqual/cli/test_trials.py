# SPDX-License-Identifier: Apache-2.0
"""`storqual plan` with a suite of trials."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from storqual.base.resources import project_root
from storqual.cli import main
from tests.support.signing import REQUIRED, TRUSTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LAB = project_root() / "inventories" / "virtual"
WORDS = ("plan", "-i", str(LAB), "--baseline", "stable", "--candidate", "stable", "--suite", "robustness")
THREE = ("--adapters", "fusion,mraid,vscsi")


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, output and messages of `storqual plan` with further words."""

    def run(*words: str, of: tuple[str, ...] = WORDS) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*of, *words])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def test_the_shipped_quick_profile_has_the_faults_adapters_and_minutes_that_it_promises(
    plan: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = plan(*THREE, "--dry-run", "--json")
    assert code == 0
    told = json.loads(out)
    assert len({trial["fault"] for trial in told["trials"]}) >= 12
    assert {trial["adapter"] for trial in told["trials"]} == {"fusion", "mraid", "vscsi"}
    assert told["expected_seconds"] < 14 * 60
    of_loads = sum(trial["load_s"] + trial["away_s"] for trial in told["trials"])
    assert told["expected_seconds"] > of_loads + 5 * len(told["trials"])


def test_a_person_sees_trials_bench_time_and_what_is_left_out_with_its_reason(
    plan: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = plan(*THREE, "--dry-run")
    lines = out.splitlines()
    assert code == 0
    assert "power_cut         vscsi   1" in lines
    assert any(line.startswith("trials") and line.endswith(" 58") for line in lines)
    assert any(line.startswith("bench time") and line.endswith(" min in 2 sessions") for line in lines)
    assert any(
        line.endswith("drive_exchange on mraid: no way with megaraid_sas on a virtual bench") for line in lines
    )


def test_a_plan_is_written_unless_it_is_a_dry_run(plan: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    plan("--runs", str(tmp_path), "--dry-run")
    assert list(tmp_path.iterdir()) == []
    _, out, _ = plan("--runs", str(tmp_path))
    (run,) = tmp_path.iterdir()
    assert str(run) in out
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["plan"]["trials"]


def test_options_are_the_same_whatever_a_suite_holds(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, _, err = plan("--runs", str(tmp_path), "--budget", "1m", *THREE)
    assert (code, "the budget of 60 s is too small: its trials alone are expected to take" in err) == (3, True)
    assert list(tmp_path.iterdir()) == []
    code, out, _ = plan("--runs", str(tmp_path), "--budget", "2h", "--consent", "0000", *THREE, "--json")
    assert (code, json.loads(out)["until"]) == (0, "planned")


def test_a_plan_of_trials_without_a_candidate_says_so(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = plan(of=("plan", "-i", str(LAB), "--suite", "robustness"))
    assert (code, "--candidate is needed" in err) == (3, True)


def test_a_plan_of_trials_tells_that_nobody_could_sign_the_run(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "mine.yml"
    keys.write_text(TRUSTED + REQUIRED, encoding="utf-8")
    monkeypatch.setenv("STORQUAL_KEYS", str(keys))
    code, out, _ = plan(*THREE, "--dry-run", "--json")
    assert code == 0
    warning = f"nobody could sign this run: {keys} requires a signature as technician"
    assert any(told.startswith(warning) for told in json.loads(out)["warnings"])


def test_a_plan_of_trials_refuses_what_its_drops_name_and_no_bench_has(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    drop = tmp_path / "new.yml"
    drop.write_text("driver: {dkms: {package: gone.deb, module: mptsas}}\n", encoding="utf-8")
    code, _, err = plan("--candidate", str(drop), *THREE, "--dry-run")
    assert (code, err) == (3, f"storqual: {drop}:1: DKMS package '{tmp_path}/gone.deb' does not exist\n")
    code, _, err = plan("--adapters", "", "--dry-run")
    assert (code, err) == (3, "storqual: --adapters names no adapter; leave the option out to test all of them\n")


def test_trials_are_held_to_the_gate_beside_the_inventory(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORQUAL_KEYS", raising=False)
    lab = tmp_path / "lab"
    shutil.copytree(LAB, lab)
    (lab / "gate.yml").write_text("signatures: [technician, release-manager]\n", encoding="utf-8")
    (lab / "keys.yml").write_text(TRUSTED + REQUIRED, encoding="utf-8")
    words = ("plan", "-i", str(lab), *WORDS[3:], *THREE, "--runs", str(tmp_path / "runs"))
    code, _, err = plan(of=words)
    assert (code, err) == (0, "")
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "inputs" / "gate.yml").read_text(encoding="utf-8").startswith("signatures: ")
    (lab / "gate.yml").write_text("signaturs: [technician]\n", encoding="utf-8")
    code, _, err = plan(of=words)
    assert code == 3
    assert "gate.yml:1: unknown key 'signaturs' (did you mean 'signatures'?)" in err
    assert list((tmp_path / "runs").iterdir()) == [run]
