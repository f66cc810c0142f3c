# SPDX-License-Identifier: Apache-2.0
"""`storqual playbook`: which playbooks there are, what is refused at once, and what Ansible's codes become."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.cli import main
from storqual.cli.playbook.playbook import playbook_command, playbook_names

NAMES = [
    *("bench_down", "bench_up", "measure", "plan", "preflight", "provision", "publish", "qualify", "restore"),
    *("setup",),
]


class Play:
    """Stands in for ansible-playbook: ends with `status` after telling the events."""

    def __init__(self) -> None:
        self.calls: list[Mapping[str, Any]] = []
        self.status = 0
        self.events: Sequence[str] = ("task", "end")

    def __call__(self, name: str, **more: Any) -> int:
        self.calls.append({"name": name, **more})
        lines = "".join(json.dumps({"kind": kind}) + "\n" for kind in self.events)
        Path(more["environment"]["STORQUAL_PROGRESS_FILE"]).write_text(lines, encoding="utf-8")
        return self.status


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Play:
    recorder = Play()
    monkeypatch.setattr("storqual.cli.playbook.playbook.run_playbook", recorder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab").mkdir()
    return recorder


def ended(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["playbook", *words])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_people_are_offered_the_playbooks_that_are_for_them() -> None:
    assert playbook_names() == NAMES


def test_a_shell_completes_the_name() -> None:
    (name,) = (parameter for parameter in playbook_command.params if parameter.name == "name")
    assert [item.value for item in name.shell_complete(None, "p")] == ["plan", "preflight", "provision", "publish"]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["nothing", "facts", "trials", "../setup", ""])
def test_any_other_name_is_refused_with_the_list_in_one_line(
    name: str, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(name, "-i", "lab") == 3
    message = capsys.readouterr().err
    assert message == f"storqual: unknown playbook {name!r}; expected one of {', '.join(NAMES)}\n"
    assert not play.calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "-i/--inventory is needed: storqual playbook preflight -i inventories/<lab>"),
        (["-i", "nowhere"], "nowhere: no such inventory; expected a folder or a file"),
        (["--limit", "b", "--inventory=nowhere"], "nowhere: no such inventory; expected a folder or a file"),
    ],
)
def test_a_missing_inventory_is_told_before_ansible_starts(
    options: list[str], message: str, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended("preflight", *options) == 3
    assert capsys.readouterr().err == f"storqual: {message}\n"
    assert not play.calls


def test_options_reach_ansible_as_they_were_written(play: Play) -> None:
    Path("lab", "hosts.yml").write_text("benches: {hosts: {bench01: {}}}\n", encoding="utf-8")
    options = ["-i", "lab", "-e", "drop=x", "--check", "--diff", "--limit", "bench01", "-vv", "--tags", "os"]
    assert ended("setup", *options) == 0
    (call,) = play.calls
    assert (call["name"], list(call["options"]), call["variables"]) == ("setup.yml", options, {})


def test_what_works_on_files_needs_no_inventory(play: Play) -> None:
    assert ended("publish", "-e", "run=runs/x") == 0


def test_runs_are_made_in_the_folder_where_the_command_is_given(play: Play, tmp_path: Path) -> None:
    """The user's own `-e runs=` stands behind it, and wins."""
    assert ended("plan.yml", "-i", "lab", "-e", "runs=/elsewhere") == 0
    (call,) = play.calls
    assert call["variables"] == {"runs": str(tmp_path / "runs")}


@pytest.mark.parametrize(
    ("status", "events", "options", "code"),
    json.loads(Path(__file__).with_name("exit_codes.json").read_text(encoding="utf-8")),
)
def test_the_code_is_of_the_table_of_all_commands(
    status: int, events: Sequence[str], options: list[str], code: int, play: Play
) -> None:
    play.status, play.events = status, events
    assert ended("preflight", "-i", "lab", *options) == code


def test_for_programs_the_answer_is_json_and_ansible_keeps_off_standard_output(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.status = 4
    assert ended("--json", "preflight", "-i", "lab") == 4
    assert json.loads(capsys.readouterr().out) == {"playbook": "preflight", "exit_code": 4}
    assert play.calls[0]["quiet"]
