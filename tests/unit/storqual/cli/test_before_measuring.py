# SPDX-License-Identifier: Apache-2.0
"""What `plan` and `qualify` tell before anything is measured, of trials too, and at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual.base.files import project_root
from storqual.bench.ansible_run import Answers
from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual_core.kit.errors import StorqualError
from tests.support.judged_run import QUIET
from tests.support.make_lab import make_lab
from tests.support.make_run import make_run
from tests.support.signing import REQUIRED, TRUSTED

if TYPE_CHECKING:
    from collections.abc import Callable


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
    told: list[str] = []

    def play(*_: Any, **__: Any) -> int:
        told.append(capsys.readouterr().err)
        return 2

    monkeypatch.setattr("storqual.cli.qualify.run_playbook", play)
    with pytest.raises(SystemExit):
        main(["qualify", *words(tmp_path)])
    assert told[0].startswith("storqual: warning: nobody could sign this run: ")
    assert told[0].count("\n") == 1


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
    assert told["expected_seconds"] < 15 * 60
    of_loads = sum(trial["load_s"] + trial["away_s"] for trial in told["trials"])
    assert told["expected_seconds"] > of_loads + 5 * len(told["trials"])


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
    assert any(line.split() == ["trials", str(2 * in_each_arm)] for line in lines)
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


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("reported", "status"), [(True, 0), (False, 2), (True, 2)])
def test_a_verdict_that_was_not_published_is_not_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reported: bool,
    status: int,
    as_json: bool,
) -> None:
    """The report was refused, or the job failed after it was written: no PASS is printed above an exit code of 2."""
    run = make_run(tmp_path, **QUIET)
    (run / "verdict.json").write_text(json.dumps(judge_run(run)), encoding="utf-8")
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
    said = capsys.readouterr()
    published = reported and status == 0
    assert ended.value.code == status
    assert ("PASS" in said.out) is published
    assert (f"storqual qualify --resume {run}" in said.err) is not published
    if as_json:
        answer = json.loads(said.out)
        assert (answer["exit_code"], answer["report"]) == (status, str(run / "report.html") if published else None)


@pytest.mark.parametrize("command", ["plan", "qualify"])
def test_a_run_that_is_resumed_takes_no_options_of_a_new_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = make_run(tmp_path, finished=False)
    with pytest.raises(SystemExit) as ended:
        main([command, "--resume", str(run), "--adapters", "sym", "--seed", "0", "--point", "reads"])
    assert ended.value.code == 3
    told = "cannot be used with --resume, because the run has its plan already; leave it out"
    assert capsys.readouterr().err.splitlines() == [
        f"storqual: {name} {told}" for name in ("--adapters", "--seed", "--point")
    ]


FOUND = {"b1": {"drives": []}}


def ended(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["facts", "--host", "b1", *options])
    said = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, said.out, said.err


def answer(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], silent: dict[str, str]) -> None:
    def ask(*_: Any, **__: Any) -> Answers:
        if not found:
            raise StorqualError("no bench answered")
        return Answers(found, silent)

    monkeypatch.setattr("storqual.bench.ansible_run.ask_every_bench", ask)


def test_the_answer_is_in_the_file_when_all_have_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, FOUND, {})
    code, out, err = ended(capsys, "--json", "--output", str(tmp_path / "facts.json"))
    assert (code, out) == (0, ""), err
    assert json.loads((tmp_path / "facts.json").read_text(encoding="utf-8")) == FOUND
    assert [file.name for file in tmp_path.iterdir()] == ["facts.json"]


@pytest.mark.parametrize(("found", "silent"), [({}, {"b1": "no route"}), (FOUND, {"b2": "no route"})])
def test_a_file_stays_as_it_is_when_a_bench_does_not_answer(
    found: dict[str, Any],
    silent: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("what was there\n", encoding="utf-8")
    answer(monkeypatch, found, silent)
    code, _, err = ended(capsys, "--json", "--output", str(hosts))
    assert (code, "answer" in err) == (2, True)
    assert hosts.read_text(encoding="utf-8") == "what was there\n"


def test_benches_are_not_asked_for_an_answer_that_has_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "storqual.bench.ansible_run.ask_every_bench", lambda *_, **__: pytest.fail("benches were asked")
    )
    code, _, err = ended(capsys, "--write-inventory", "--output", str(tmp_path / "gone" / "hosts.yml"))
    assert code == 3
    assert "there is no folder" in err
    code, _, err = ended(capsys, "--output", str(tmp_path / "facts.json"))
    assert code == 3
    assert "--write-inventory or of --json" in err


@pytest.mark.parametrize("before", ["", "# yaml-language-server: $schema=/srv/hosts.schema.json\nbenches: {}\n"])
def test_an_inventory_names_its_schema_for_editors_as_a_new_one_does(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And keeps the line that was there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("storqual.cli.facts._draft", lambda _: "benches: {hosts: {}}\n")
    hosts = Path("inventories", "room7", "hosts.yml")
    hosts.parent.mkdir(parents=True)
    if before:
        hosts.write_text(before, encoding="utf-8")
    answer(monkeypatch, FOUND, {})
    code, out, err = ended(capsys, "--write-inventory", "--output", str(hosts))
    assert (code, out) == (0, ""), err
    first, second = hosts.read_text(encoding="utf-8").splitlines()
    assert second == "benches: {hosts: {}}"
    if before:
        assert first == before.splitlines()[0]
        assert not Path("schemas").exists()
        return
    named = hosts.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(named.read_text(encoding="utf-8"))["title"] == "storqual hosts"
    assert "wrote schemas/hosts.schema.json" in err
