# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a campaign: phases and failures, and nothing of what single tasks do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storqual.base.files import project_root
from storqual.cli import main

PLAY = Path(__file__).with_name("test_storqual_lines.play")
WARNS = r"""#!/bin/cat
{"warnings": ["a drive is \u001b[2J\u009b1Aold"]}
"""


def play(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "hosts.yml").write_text("all: {hosts: {desk: {}}}\n", encoding="utf-8")
    (folder / "library").mkdir()
    (folder / "library" / "warns.py").write_text(WARNS, encoding="utf-8")
    shutil.copy(PLAY, folder / "play.yml")
    words = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "-c", "local", "play.yml"]
    config = {"ANSIBLE_CONFIG": str(project_root() / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **config, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_tasks_that_do_their_work_print_nothing_and_a_failure_prints_one_line(tmp_path: Path) -> None:
    ended = play(tmp_path, ANSIBLE_STDOUT_CALLBACK="storqual_lines")
    assert ended.returncode == 2
    lines = [line for line in ended.stdout.splitlines() if line.strip()]
    assert lines == ["desk | failed: Check the claim | this drive is mounted"]
    assert r"[WARNING]: a drive is \x1b[2J\x9b1Aold" in ended.stderr
    assert not {"\x1b", "\x9b"} & set(ended.stderr)


@pytest.mark.parametrize(("words", "lines"), [((), True), (("-v",), False)])
def test_qualify_shows_tasks_when_it_is_asked_to(
    words: tuple[str, ...], lines: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[bool] = []
    monkeypatch.setattr("storqual.cli.qualify.run_playbook", lambda *_, **given: started.append(given["lines"]) or 2)
    monkeypatch.setattr("storqual.cli.qualify._refuse_mistakes", lambda _campaign: ())
    inventory = ["-i", "desk,", "--candidate", "next", "--suite", "first", "--runs", str(tmp_path)]
    with pytest.raises(SystemExit):
        main(["qualify", *inventory, *words])
    assert started == [lines]
