# SPDX-License-Identifier: Apache-2.0
"""A path to a drive is lost and used again under load, on two adapters by two ways, and nothing of it is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storqual.run import read_run
from storqual.run.turns import turns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

REPOSITORY = Path(__file__).resolve().parents[2]
INVENTORY = REPOSITORY / "inventories" / "virtual_paths"
STATE = REPOSITORY / ".cache" / "bench" / "vpaths"
BIN = Path(sys.executable).parent
LEFT = "; ".join(
    (
        "cat /etc/multipath.conf",
        "multipath -l",
        "grep -l ^mpath- /sys/class/block/dm-*/dm/uuid",
        "systemctl is-active multipathd",
    )
)


def playbook(name: str, folder: Path) -> tuple[int, str]:
    """A playbook on the bench: its status and what it said."""
    log = folder / f"{name}.log"
    with log.open("wb") as stream:
        code = subprocess.run(
            [BIN / "ansible-playbook", "-i", INVENTORY, REPOSITORY / "playbooks" / name],
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            check=False,
        ).returncode
    return code, log.read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="module", autouse=True)
def powered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("power")
    STATE.mkdir(parents=True, exist_ok=True)
    code, said = playbook("bench_up.yml", folder)
    assert code == 0, said[-3000:]
    yield
    code, said = playbook("bench_down.yml", folder)
    assert code == 0, said[-3000:]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """One campaign of the suite: its exit code, what it said, and the run."""
    folder = tmp_path_factory.mktemp("campaign")
    words = ["--baseline", "stable", "--candidate", "stable", "--suite", "paths", "--seed", "1"]
    log = folder / "output.log"
    with log.open("wb") as stream:
        code = subprocess.run(
            [BIN / "storqual", "qualify", "-i", INVENTORY, "--runs", folder, *words],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    (run,) = (path.parent for path in folder.glob("*/run.json"))
    return code, log.read_text(encoding="utf-8", errors="replace"), run


def test_a_lost_path_costs_no_io_and_is_used_again(campaign: tuple[int, str, Path]) -> None:
    code, output, run = campaign
    files = turns_of(read_run(run))
    assert len(files.records) == len(files.planned) == 8, output[-3000:]
    for record in files.records:
        assert (record["outcome"], record["errors"]) == ("passed", 0), (record["id"], record["reasons"])
        told = [text.partition(":")[0] for _, what, text in record["timeline"] if what == "proof"]
        assert [name for name in told if name.startswith("path_")] == ["path_lost", "path_back"]
        assert record["stall_s"] > 0
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"]) == (0, "PASS"), output[-3000:]


def test_nothing_of_multipath_is_left_on_the_bench_and_the_drive_is_refused_to_any_other_campaign(
    campaign: tuple[int, str, Path], tmp_path: Path
) -> None:
    _, output, run = campaign
    assert turns_of(read_run(run)).records, output[-3000:]
    left = subprocess.run(
        ["ssh", "-F", STATE / "ssh_config", "vpaths", LEFT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert left.stdout.split() == ["inactive"], (left.stdout, left.stderr)
    code, said = playbook("preflight.yml", tmp_path)
    assert code != 0
    assert "2 devices of this bench answer to that name" in said
