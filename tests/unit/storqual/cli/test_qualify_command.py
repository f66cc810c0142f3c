# SPDX-License-Identifier: Apache-2.0
"""How `qualify` ends: a verdict is shown only with its report; a resumed run keeps its plan."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from storqual.checks.own import allow_checks
from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.run import read_run
from tests.support.judged_run import QUIET
from tests.support.make_run import make_run


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("reported", "status", "code"), [(True, 0, 0), (False, 2, 0), (True, 2, 0), (True, 0, 1), (True, 1, 0)]
)
def test_a_verdict_that_was_not_published_is_not_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reported: bool,
    status: int,
    code: int,
    as_json: bool,
) -> None:
    """The report was refused, the job failed after it was written, or it ended otherwise than its verdict."""
    run = make_run(tmp_path, **QUIET)
    verdict = {**judge_run(run), "exit_code": code}
    (run / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    if reported:
        (run / "report.html").write_text("<html>", encoding="utf-8")

    def play(_: str, *, environment: dict[str, str], **more: Any) -> int:
        assert more["variables"]
        (tmp_path / environment["STORQUAL_LAST_RUN"]).write_text(f"{run}\n", encoding="utf-8")
        return status

    monkeypatch.setattr("storqual.cli.qualify.run_playbook", play)
    words = ["qualify", "-i", "bench,", "--candidate", "x", "--suite", "y", "--runs", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"] if as_json else words)
    printed = capsys.readouterr()
    published = reported and status == code
    assert ended.value.code == (0 if published else 2)
    assert ("PASS" in printed.out) is published
    assert (f"storqual qualify --resume {run}" in printed.err) is not published
    if as_json:
        answer = json.loads(printed.out)
        assert (answer["exit_code"], answer["report"]) == (
            ended.value.code,
            str(run / "report.html") if published else None,
        )


def test_a_note_that_somebody_left_among_the_runs_is_no_run_of_this_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, **QUIET)
    verdict, victim = judge_run(run), tmp_path / "victim"
    (run / "verdict.json").write_text(json.dumps({**verdict, "exit_code": 0}), encoding="utf-8")
    victim.write_text(f"{run}\n", encoding="utf-8")
    (tmp_path / f".last-run-{os.getpid()}").symlink_to(victim)
    monkeypatch.setattr("storqual.cli.qualify.run_playbook", lambda *_, **__: 0)
    with pytest.raises(SystemExit) as ended:
        main(["qualify", "-i", "bench,", "--candidate", "x", "--suite", "y", "--runs", str(tmp_path)])
    assert ended.value.code == 2
    assert "no run directory was written" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "qualify"])
def test_a_run_that_is_resumed_takes_no_options_of_a_new_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = make_run(tmp_path, finished=False)
    with pytest.raises(SystemExit) as ended:
        main([command, "--resume", str(run), "--adapters", "sym", "--seed", "0", "--point", "reads"])
    assert ended.value.code == 3
    sentence = "cannot be used with --resume, because the run has its plan already; leave it out"
    assert capsys.readouterr().err.splitlines() == [
        f"storqual: {name} {sentence}" for name in ("--adapters", "--seed", "--point")
    ]


def test_a_run_that_is_resumed_names_no_inventory_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ansible executes templates of an inventory: the one is taken that this user planned the run from."""
    run = make_run(tmp_path, finished=False)
    played: list[Any] = []
    monkeypatch.setattr(
        "storqual.cli.qualify.run_playbook", lambda _, **more: played.append(more["inventories"]) or 2
    )
    words = ["qualify", "--resume", str(run), "--runs", str(tmp_path)]
    ended = []
    for recorded in ((), (str(tmp_path), "one,two")):
        allow_checks(read_run(run), (), recorded)
        with pytest.raises(SystemExit) as left:
            main(words)
        ended.append(left.value.code)
    assert (ended, played) == ([3, 2], [(str(tmp_path), "one,two")])
    assert "another user or on another machine" in capsys.readouterr().err


def test_a_strangers_run_that_is_resumed_has_no_file_of_this_machine_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, drops, ended = make_run(tmp_path, finished=False), tmp_path / "lab" / "drops", []
    monkeypatch.setattr("storqual.cli.qualify.run_playbook", lambda *_, **__: 2)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    drops.mkdir(parents=True)
    (drops / "link.ko").symlink_to(__file__)
    document = json.loads((run / "run.json").read_bytes())
    for file in (str(drops / "own.ko"), str(drops / "../key.ko"), str(drops / "link.ko"), "own\0.ko", 5):
        document["provision"] = {"b1": {"candidate": {"driver": {"module": {"file": file}}}}}
        (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(SystemExit) as left:
            main(["qualify", "--resume", str(run), "-i", str(drops.parent)])
        ended.append(left.value.code)
    assert ended == [2, 3, 3, 3, 3]
