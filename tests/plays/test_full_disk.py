# SPDX-License-Identifier: Apache-2.0
"""A campaign whose disk of runs is full: one sentence, exit code 2, and it goes on when there is space again."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.run import iter_events

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SUITE = Path(__file__).parent / "tiny.suite.yml"
ROOM = 64 * 1024
"""Bytes: enough for the plan, too little for the samples."""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own; what keeps it full is the file `others`."""
    folder = tmp_path / "runs"
    folder.mkdir()
    size = 16 * 2**20
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a file system needs root")
    try:
        (folder / "others").write_bytes(bytes(size - ROOM))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def qualify(runs: Path, *words: str) -> tuple[int, str]:
    ended = subprocess.run(
        [str(BIN / "storqual"), "qualify", "--runs", str(runs), *words],
        cwd=runs.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_a_campaign_on_a_full_disk_says_so_and_is_resumed_when_there_is_space(runs: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab" / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", lab)
    drops = ["--baseline", "baseline", "--candidate", "candidate"]
    code, said = qualify(runs, "-i", str(lab), *drops, "--suite", str(SUITE))
    (run,) = (path.parent for path in runs.glob("*/run.json"))
    assert code == 2, said
    assert "no space left on this disk; what was written before is kept: free some space" in said
    assert "Traceback" not in said
    assert "Errno" not in said
    assert said.splitlines()[-1].endswith(f"to resume: storqual qualify --resume {run.name}")
    (runs / "others").unlink()
    code, said = qualify(runs, "--resume", str(run))
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert code == verdict["exit_code"], said
    assert verdict["coverage"]["measured"] == verdict["coverage"]["planned"]
    assert [event.kind for event in iter_events(run)].count("restored") >= 1
    assert (
        subprocess.run([str(BIN / "storqual"), "judge", str(run)], check=False, stdout=subprocess.DEVNULL).returncode
        == code
    )
