# SPDX-License-Identifier: Apache-2.0
"""The checks that `storqual new` writes are run on files of this machine, by the lines that it prints for that."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        shlex.split(line),
        cwd=folder,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_new_check_runs_in_python_and_in_plain_words(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "inventories" / "local", tmp_path / "inventories" / "local")
    python, robot = json.loads(run("storqual new check cabling --json", tmp_path).stdout)["next"]
    tested = run(f"{python} -p no:cacheprovider", tmp_path)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "1 passed, 1 skipped" in tested.stdout
    told = run(f"{robot} --json", tmp_path)
    assert told.returncode == 0, told.stdout + told.stderr
    (checks,) = json.loads(told.stdout)["checks"].values()
    assert [(line["id"], line["outcome"]) for line in checks] == [("cabling.robot::The Bench Answers", "PASS")]


def test_a_new_check_fails_when_what_it_asks_is_not_so(tmp_path: Path) -> None:
    lab = tmp_path / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", lab)
    hosts = (lab / "hosts.yml").read_text(encoding="utf-8").replace("claim: true", "claim: false")
    (lab / "hosts.yml").write_text(hosts, encoding="utf-8")
    python, _ = json.loads(run("storqual new check cabling --json", tmp_path).stdout)["next"]
    tested = run(f"{python} -p no:cacheprovider", tmp_path)
    assert tested.returncode == 1, tested.stdout + tested.stderr
    assert "no drive of files is claimed" in tested.stdout
