# SPDX-License-Identifier: Apache-2.0
"""What `plan` shows and refuses, of trials too, and what `qualify` tells of the plan before it starts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual.base.files import project_root
from storqual.cli import main
from tests.support.make_lab import make_lab
from tests.support.signing import REQUIRED, TRUSTED


def words(folder: Path) -> list[str]:
    """The options of a campaign in a lab whose keys require more signatures than its gate asks for."""
    request = make_lab(folder)
    (folder / "keys.yml").write_text(TRUSTED + REQUIRED, encoding="utf-8")
    inventory, suite = folder / "hosts.json", request.suite
    named = ["-i", str(inventory), "--baseline", "baseline", "--candidate", "candidate", "--suite", suite]
    return [*named, "--runs", str(folder / "runs")]


def test_the_plan_tells_that_nobody_could_sign_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *words(tmp_path), "--dry-run"])
    assert ended.value.code == 0
    assert "nobody could sign this run" in " ".join(capsys.readouterr().out.split())


def test_the_main_job_tells_it_before_a_playbook_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []

    def play(*_: Any, **__: Any) -> int:
        messages.append(capsys.readouterr().err)
        return 2

    monkeypatch.setattr("storqual.cli.qualify.run_playbook", play)
    with pytest.raises(SystemExit):
        main(["qualify", *words(tmp_path)])
    assert messages[0].startswith("storqual: warning: nobody could sign this run: ")
    assert messages[0].count("\n") == 1


LAB = project_root() / "inventories" / "virtual"
WORDS = ("plan", "-i", str(LAB), "--baseline", "stable", "--candidate", "stable", "--suite", "robustness")
THREE = ("--adapters", "fusion,mraid,vscsi")


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, output and messages of `storqual plan` with further words."""

    def run(*words: str, of: tuple[str, ...] = WORDS) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*of, *words])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_the_shipped_quick_profile_has_the_faults_adapters_and_minutes_that_it_promises(
    plan: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = plan(*THREE, "--dry-run", "--json")
    assert code == 0
    answer = json.loads(out)
    assert len({trial["fault"] for trial in answer["trials"]}) >= 12
    assert {trial["adapter"] for trial in answer["trials"]} == {"fusion", "mraid", "vscsi"}
    assert answer["expected_seconds"] < 15 * 60
    of_loads = sum(trial["load_s"] + trial["away_s"] for trial in answer["trials"])
    assert answer["expected_seconds"] > of_loads + 5 * len(answer["trials"])


def test_a_person_sees_trials_bench_time_and_what_is_left_out_with_its_reason(
    plan: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = plan(*THREE, "--dry-run")
    lines = out.splitlines()
    assert code == 0
    assert "power_cut         vscsi   1" in lines
    table = lines[: next(number for number, line in enumerate(lines) if line.startswith("run "))]
    in_each_arm = sum(int(line.split()[-1]) for line in table if line.split()[-1].isdigit())
    assert in_each_arm > 20
    # the baseline is spared the three sweeps
    assert any(line.split() == ["trials", str(2 * in_each_arm - 3)] for line in lines)
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
    code, out, _ = plan("--runs", str(tmp_path), "--budget", "2h", "--consent", "ea0000", *THREE, "--json")
    assert (code, json.loads(out)["until"]) == (0, "planned")


def test_a_consent_that_the_bench_would_not_take_is_refused_by_the_plan(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, _, err = plan("--runs", str(tmp_path), "--consent", "0000", *THREE)
    assert (code, "'0000' is too short" in err) == (3, True)
