# SPDX-License-Identifier: Apache-2.0
"""Mistakes that newcomers make, one at a time, in a copy of the project's own labs: the whole message of each."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual.cli import main
from tests.support.make_lab import LOCAL, MISTAKES, OTHERS, REPOSITORY, SUITE, VIRTUAL

pytestmark = pytest.mark.slow

GOLDEN = REPOSITORY / "tests" / "golden" / "mistakes.txt"


def told(make: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]) -> str:
    """What `plan` says of a mistake."""
    with pytest.raises(SystemExit) as left:
        main(["plan", *make(), "--runs", "runs"])
    printed = capsys.readouterr()
    assert left.value.code == 3, printed
    assert not Path("runs").exists()
    return printed.err.replace(str(Path.cwd()), "LAB")


def golden() -> dict[str, str]:
    parts = GOLDEN.read_text(encoding="utf-8").split("## ")[1:] if GOLDEN.is_file() else []
    return {name: message.rstrip("\n") + "\n" for name, _, message in (part.partition("\n") for part in parts)}


def accept(name: str, message: str) -> None:
    """Compare a message with the accepted one; with STORQUAL_ACCEPT_MISTAKES it becomes the accepted one."""
    if os.environ.get("STORQUAL_ACCEPT_MISTAKES"):
        accepted = golden() | {name: message}
        every = [*MISTAKES, *OTHERS]
        GOLDEN.write_text("".join(f"## {n}\n{accepted[n]}\n" for n in every if n in accepted), encoding="utf-8")
    assert message == golden()[name]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("local", "virtual"):
        shutil.copytree(REPOSITORY / "inventories" / name, tmp_path / "inventories" / name)
    monkeypatch.chdir(tmp_path)
    Path("mine.suite.yml").write_text(SUITE, encoding="utf-8")
    for name in ("new.ko", "new.deb"):
        Path("inventories/virtual/drops", name).write_bytes(b"not what was built")
    return tmp_path


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.usefixtures("lab")
def test_a_mistake_is_told_in_full_with_exit_code_3_and_nothing_touched(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    accept(name, told(MISTAKES[name], capsys))


@pytest.mark.parametrize("name", OTHERS)
def test_a_mistake_with_another_command_is_told_with_exit_code_3_and_nothing_touched(
    name: str, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(lab.rglob("*"))
    with pytest.raises(SystemExit) as left:
        main(OTHERS[name])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (3, ""), err
    assert sorted(lab.rglob("*")) == before
    accept(name, err.replace(str(lab), "LAB"))


def test_runs_cannot_be_kept_in_a_file(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "runs").write_text("notes", encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["plan", *LOCAL])
    assert left.value.code == 3
    told_of_it = capsys.readouterr().err.replace(str(lab), "LAB")
    assert told_of_it == "storqual: LAB/runs: this is a file; --runs takes a folder\n"
    assert (lab / "runs").read_text(encoding="utf-8") == "notes"


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("name", MISTAKES)
def test_the_main_job_tells_it_in_the_same_words_before_anything_is_started(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> int:
        raise AssertionError("a playbook was started")

    monkeypatch.setattr("storqual.cli.qualify.run_playbook", never)
    arguments = MISTAKES[name]()
    with pytest.raises(SystemExit) as left:
        main(["qualify", *arguments])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (3, "")
    message = err.replace(str(Path.cwd()), "LAB")
    assert message.replace("storqual qualify", "storqual plan") == golden()[name]
    assert not Path("runs").exists()


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("arguments", [LOCAL, [*VIRTUAL[:5], "backport", *VIRTUAL[6:]]], ids=["local", "virtual"])
def test_the_labs_without_a_mistake_are_planned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["plan", *arguments, "--dry-run"])
    assert left.value.code == 0, capsys.readouterr().err


def test_there_are_at_least_25_mistakes_and_each_accepted_message_belongs_to_one() -> None:
    assert len(MISTAKES) >= 25
    assert list(golden()) == [*MISTAKES, *OTHERS]


def test_commands_that_only_playbooks_call_are_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert not commands & {"next", "record"}
    assert {"plan", "qualify"} <= commands
