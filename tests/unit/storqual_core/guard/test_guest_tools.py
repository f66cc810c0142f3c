# SPDX-License-Identifier: Apache-2.0
"""What the guard's live test counts, on this machine: every write but those of the state's own writer."""

import os
import subprocess
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.hidden_writers import WRITES_ON, running

GUEST = Path(__file__).resolve().parents[3] / "virtual" / "guest"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The guest's own module, which lies beside its scripts there."""
    monkeypatch.syspath_prepend(str(GUEST))
    return import_module("guard_tools")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[str]:
    """A loop device over a sparse file."""
    if os.geteuid() or not Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")
    backing = tmp_path / "disk"
    backing.touch()
    os.truncate(backing, 16 << 20)
    ended = subprocess.run(["losetup", "--show", "-f", backing], capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip(f"no loop device can be made: {ended.stderr}")
    yield ended.stdout.strip()
    subprocess.run(["losetup", "-d", ended.stdout.strip()], check=True)


def test_what_a_states_own_writer_sends_is_left_out_and_every_other_sector_counts(
    tools: Any, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = Path(node).name
    column = Path(f"/sys/block/{name}/stat")
    monkeypatch.setattr(tools, "sectors", lambda: {name: int(column.read_text().split()[6])})
    with running(WRITES_ON, node) as process:
        bench = tools.Bench({}, {}, writers={process: name})
        before, counted = bench.sectors()[name], tools.sectors()[name]
        time.sleep(0.5)
        assert bench.sectors()[name] == before
        assert tools.sectors()[name] > counted
        tools.poke(node, (8192, b"x" * 4096))
        assert bench.sectors()[name] == before + 8


def test_a_module_that_the_kernel_lacks_is_a_reason_to_leave_a_state_out(
    tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "modprobe: FATAL: Module sqnone not found in directory /lib/modules/6.1.0"
    monkeypatch.setattr(tools, "run", lambda *argv, **_: subprocess.CompletedProcess(argv, 1, "", said))
    with pytest.raises(tools.CannotMakeError, match="has no module sqnone"):
        tools.loaded("sqnone")


def test_a_module_that_fails_to_load_is_trouble(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "modprobe: ERROR: could not insert 'null_blk': Invalid argument"
    monkeypatch.setattr(tools, "run", lambda *argv, **_: subprocess.CompletedProcess(argv, 1, "", said))
    with pytest.raises(RuntimeError, match="Invalid argument"):
        tools.loaded("null_blk")
