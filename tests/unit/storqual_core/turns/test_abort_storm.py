# SPDX-License-Identifier: Apache-2.0
"""A storm of aborts is one when many reads ended as timed out and the kernel counted as many timeouts."""

import ctypes
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.kit.machine import Node
from storqual_core.turns import drive_faults, scsi_command
from storqual_core.turns.bench_faults import ACTS
from storqual_core.turns.drive_faults import Aim
from storqual_core.turns.scsi_command import TIMED_OUT, CommandEnd, read_blocks
from tests.support.bench_tree import BenchTree

A = "0x5000c50000000001"
COUNTER = "/sys/block/sda/device/iotmo_cnt"


def unused(argv: Sequence[str], **_: object) -> Completed:
    return Completed(tuple(argv), 0, "", "", 0.0)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    tree = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    tree.write(COUNTER, "0x2\n")
    tree.write("/sys/block/sda/device/scsi_generic/sg0/dev", "21:0\n")
    tree.write("/sys/block/sda/queue/logical_block_size", "4096\n")
    return tree


def storm(tree: BenchTree, limit_s: float = 2.0, away_s: float = 0.05) -> list[tuple[str, str]]:
    drive = next(one for one in read_drives(tree.machine) if one.id == A)
    told: list[tuple[str, str]] = []
    aim = Aim(tree.machine, unused, drive, away_s, limit_s, (4 << 20, 8 << 20))
    ACTS["sg_short_timeouts"](aim, lambda seen, text: told.append((seen, text)))
    return told


class FakeKernel:
    """Ends reads with these host statuses in turn, and counts timeouts as it likes."""

    def __init__(self, tree: BenchTree, *statuses: int, counts: bool = True) -> None:
        self.tree, self.statuses, self.counts = tree, statuses, counts
        self.asked: list[tuple[int, ...]] = []
        self.timeouts = 2

    def read(self, _descriptor: int, first: int, blocks: int, size: int, timeout_ms: int) -> CommandEnd:
        time.sleep(0.005)
        status = self.statuses[len(self.asked) % len(self.statuses)]
        self.asked.append((first, blocks, size, timeout_ms))
        if self.counts:
            self.timeouts += 1
            self.tree.write(COUNTER, f"{self.timeouts:#x}\n")
        return CommandEnd(0, status, 0.005)


def test_many_aborted_reads_are_a_storm_and_are_made_beside_the_load(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = FakeKernel(tree, TIMED_OUT, 0)
    monkeypatch.setattr(drive_faults, "read_blocks", kernel.read)
    [(seen, text)] = storm(tree)
    assert seen == "aborted"
    assert f" of {len(kernel.asked)} reads with a timeout of 1 ms were aborted, the kernel counted" in text
    assert {asked[1:] for asked in kernel.asked} == {(32, 4096, 1)}
    firsts = {asked[0] for asked in kernel.asked}
    assert min(firsts) >= 1024
    assert max(firsts) < 1024 + 64 * 32
    assert len(firsts) > 16


@pytest.mark.parametrize(
    ("statuses", "counts"), [((0,), True), ((TIMED_OUT,), False)], ids=["timeouts of others alone", "none counted"]
)
def test_reads_that_were_not_aborted_or_not_counted_are_no_storm(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch, statuses: tuple[int, ...], counts: bool
) -> None:
    monkeypatch.setattr(drive_faults, "read_blocks", FakeKernel(tree, *statuses, counts=counts).read)
    with pytest.raises(ToolError, match="8 make a storm"):
        storm(tree)


def test_a_read_that_does_not_come_back_is_told(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def hang(*_: object) -> CommandEnd:
        over.wait()
        return CommandEnd(0, TIMED_OUT, 0.5)

    monkeypatch.setattr(drive_faults, "read_blocks", hang)
    with pytest.raises(ToolError, match="of 16 reads had not come back"):
        storm(tree, limit_s=0.1, away_s=0.5)
    over.set()


def test_an_sg_node_that_is_another_device_by_now_gets_no_command(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive_faults, "read_blocks", lambda *_: pytest.fail("a command was sent"))
    node = next(one for one in read_drives(tree.machine) if one.id == A).sg
    tree.machine.nodes[node] = Node("char", 21, 77)
    with pytest.raises(ToolError, match="is device 21:77 now"):
        storm(tree)


def test_a_read_says_what_the_midlayer_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The header is laid out as <scsi/sg.h> has it for 64-bit programs."""
    sent: list[bytes] = []

    def ioctl(_descriptor: int, number: int, header: ctypes.Structure) -> None:
        assert number == 0x2285
        raw = bytearray(bytes(header))
        assert len(raw) == 88
        (command,) = struct.unpack_from("<Q", raw, 24)
        sent.append(ctypes.string_at(command, raw[8]))
        assert struct.unpack_from("<iiI", raw, 0)[:2] == (ord("S"), -3)
        assert struct.unpack_from("<I", raw, 12) == (8192,)
        assert struct.unpack_from("<I", raw, 40) == (7,)
        struct.pack_into("<BBBBHHiI", raw, 64, 2, 0, 0, 0, TIMED_OUT, 0, 0, 1500)
        ctypes.memmove(ctypes.addressof(header), bytes(raw), len(raw))

    monkeypatch.setattr(scsi_command.fcntl, "ioctl", ioctl)
    assert read_blocks(5, 0x01020304, 2, 4096, 7) == CommandEnd(2, TIMED_OUT, 1.5)
    assert sent == [bytes((0x28, 0, 1, 2, 3, 4, 0, 0, 2, 0))]
