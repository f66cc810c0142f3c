# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.machine import Machine
from storqual_core.turns.state import read_state
from tests.support.bench_tree import BenchTree

A, B = "0x5000c50000000001", "0x5000c50000000002"
ADAPTER = "0000:00:05.0"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    tree = BenchTree(tmp_path).adapter(ADAPTER)
    tree.scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    found = tree.scsi("sdb", hctl="2:0:1:0", wwn=B, serial="S2").machine
    meminfo = Path(found.path("/proc/meminfo"))
    meminfo.parent.mkdir(parents=True, exist_ok=True)
    meminfo.write_text("MemTotal: 9 kB\nSUnreclaim: 16 kB\n")
    return found


def answering(code: int, stderr: str, asked: list[str]) -> Callable[..., Completed]:
    def run(argv: Sequence[str], **_: Any) -> Completed:
        asked.append(" ".join(argv))
        return Completed(tuple(argv), code, "", stderr, 0.0)

    return run


def test_the_drive_that_is_aimed_at_is_sent_a_command_that_ends_short(machine: Machine) -> None:
    asked: list[str] = []
    told = "SCSI Status: Good \n\nReceived 8 bytes of data:\n 00     00 1f ff ff 00 00 02 00\n"
    state = read_state(machine, ADAPTER, answering(0, told, asked), A)
    assert state["residual"] == {"asked": 252, "given": 8, "received": 8}
    assert asked == ["sg_raw -t 10 -r 252 /dev/sda 25 00 00 00 00 00 00 00 00 00"]
    assert (state["slab_bytes"], sorted(state["drives"])) == (16384, [A, B])


@pytest.mark.parametrize(("code", "stderr"), [(5, "no such device"), (0, "SCSI Status: Good")], ids=["fails", "mute"])
def test_a_command_without_an_answer_leaves_a_problem_and_no_number(machine: Machine, code: int, stderr: str) -> None:
    state = read_state(machine, ADAPTER, answering(code, stderr, []), A)
    assert list(state["residual"]) == ["problem"]


def test_a_drive_that_is_gone_has_no_residual(machine: Machine) -> None:
    asked: list[str] = []
    assert read_state(machine, ADAPTER, answering(0, "", asked), "0x9")["residual"] == {}
    assert asked == []


@pytest.mark.parametrize("file", ["device/device_busy", "inflight"])
@pytest.mark.parametrize(("back_s", "left"), [(0.0, 0), (3.0, 0), (60.0, 2)])
def test_what_the_kernel_sends_once_more_is_waited_for_and_what_stays_counts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, file: str, back_s: float, left: int
) -> None:
    """Of the SCSI layer, or where it has none of the block layer; recoveries leave the other counters like this."""
    clock, busy = [0.0], Path(machine.path(f"/sys/block/sda/{file}"))
    Path(machine.path("/sys/block/sda/device/iorequest_cnt")).write_text("0x9")

    def wait(seconds: float = 0.0) -> None:
        clock[0] += seconds
        busy.write_text("0 0\n" if clock[0] >= back_s else "0 2\n" if file == "inflight" else "2\n")

    wait()
    monkeypatch.setattr("storqual_core.turns.state.time", SimpleNamespace(monotonic=lambda: clock[0], sleep=wait))
    drives = read_state(machine, ADAPTER, answering(0, "", []), A)["drives"]
    assert (drives[A]["in_flight"], drives[B]["in_flight"]) == (left, 0)
