# SPDX-License-Identifier: Apache-2.0
"""The layer over a drive: made only over a drive that the guard holds, taken away again, and proven by a write."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.data.faults import WAYS
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError, ToolError
from storqual_core.turns import drive_faults
from storqual_core.turns.bench_faults import ACTS, missing
from storqual_core.turns.drive_faults import Aim, layered
from tests.support.bench_tree import BenchTree

A, NAME = "0x5000c50000000001", "storqual-layer-sda"
SIZE = 1 << 26


class Kernel:
    """A bench with one drive: who holds it, the layer's tables, and what was asked, in order."""

    def __init__(self, tree: BenchTree) -> None:
        self.tree = tree
        self.story: list[str] = []
        self.tables = {"now": "", "next": ""}
        self.refuses = ""
        self.deaf = self.sticks = False

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        assert argv[0] == "dmsetup"
        self.story.append(argv[1])
        if argv[1] == self.refuses:
            return Completed(tuple(argv), 1, "", "Device or resource busy", 0.0)
        if argv[1] == "create":
            self.tables["now"] = argv[4]
            self.tree.write(f"/dev/mapper/{argv[2]}", b"")
        elif argv[1] == "reload":
            self.tables["next"] = argv[4]
        elif argv[1] == "resume" and not self.deaf:
            self.tables["now"] = self.tables["next"]
        assert NAME in argv
        return Completed(tuple(argv), 0, self.tables["now"] + "\n" if argv[1] == "table" else "", "", 0.0)

    def release(self, drive: str) -> str:
        assert drive == A
        self.story.append("let go")
        return "/dev/sda"

    def retake(self, drive: str) -> str:
        self.story.append("taken")
        return drive

    def sectors(self, _machine: object, node: str) -> "Kernel":
        assert node == f"/dev/mapper/{NAME}"
        return self

    def write(self, first: int, size: int) -> int:
        assert (first, size) == (4 << 20, 4096)
        return errno.EIO if " flakey " in self.tables["now"] or self.sticks else 0

    def close(self) -> None:
        self.story.append("closed")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    tree = BenchTree(tmp_path).adapter().scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1", size=SIZE)
    tree.write("/sys/block/sda/queue/logical_block_size", "512\n")
    kernel = Kernel(tree)
    monkeypatch.setattr(drive_faults, "Sectors", kernel.sectors)
    return kernel


def aim(kernel: Kernel) -> Aim:
    drive = next(one for one in read_drives(kernel.tree.machine) if one.id == A)
    return Aim(kernel.tree.machine, kernel.run, drive, 0.0, 0.2, (4 << 20, 1 << 20))


@contextmanager
def over(kernel: Kernel) -> Iterator[dict[str, str]]:
    at = aim(kernel)
    with layered(kernel, at.drive, at.machine, kernel.run) as nodes:
        yield dict(nodes)


def told_by(kernel: Kernel) -> list[str]:
    told: list[str] = []
    ACTS["dm_flakey"](aim(kernel), lambda seen, _text: told.append(seen))
    return told


def test_a_layer_that_cannot_be_made_leaves_the_drive_with_the_guard(kernel: Kernel) -> None:
    kernel.refuses = "create"
    with pytest.raises(ToolError, match="Device or resource busy"), over(kernel):
        pytest.fail("the load began")
    assert kernel.story == ["let go", "create", "taken"]


def test_a_layer_that_somebody_else_has_is_taken_away(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.open

    def refuse(path: str, flags: int, *more: object, **named: Any) -> int:
        if str(path).endswith(NAME) and flags & os.O_EXCL and not flags & os.O_CREAT:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return really(path, flags, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(drive_faults.os, "open", refuse)
    with pytest.raises(ToolError, match=f"{NAME} cannot be opened: Device or resource busy"), over(kernel):
        pytest.fail("the load began")
    assert kernel.story == ["let go", "create", "remove", "taken"]


def test_a_drive_that_the_guard_does_not_get_back_is_told(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_drive: str) -> str:
        raise GuardRefusalError(["drive: another program opened it in the meantime"])

    monkeypatch.setattr(kernel, "retake", refuse)
    with pytest.raises(GuardRefusalError, match="another program opened it"), over(kernel):
        pass


def test_a_load_has_the_layer_while_it_lasts_and_the_guard_has_the_drive_afterwards(kernel: Kernel) -> None:
    with over(kernel) as nodes:
        assert nodes == {A: f"/dev/mapper/{NAME}"}
        assert kernel.tables["now"] == f"0 {SIZE // 512} linear 8:16 0"
    with pytest.raises(RuntimeError, match="it broke"), over(kernel):
        raise RuntimeError("it broke")
    assert kernel.story == ["let go", "create", "remove", "taken"] * 2


def test_writes_fail_for_a_while_and_are_taken_again(kernel: Kernel) -> None:
    with over(kernel):
        assert told_by(kernel) == ["inserted", "refused", "taken_again"]
        assert kernel.tables["now"] == f"0 {SIZE // 512} linear 8:16 0"


def test_a_table_that_the_kernel_did_not_take_is_not_proven(kernel: Kernel) -> None:
    with over(kernel):
        kernel.deaf = True
        assert told_by(kernel) == ["taken_again"]


def test_writes_that_fail_afterwards_are_told(kernel: Kernel) -> None:
    kernel.sticks = True
    with over(kernel), pytest.raises(ToolError, match=f"writes through {NAME} still fail: EIO"):
        told_by(kernel)


def test_a_fault_that_breaks_in_the_middle_leaves_a_layer_that_passes(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with over(kernel):
        monkeypatch.setattr(kernel, "refuses", "table")
        with pytest.raises(ToolError):
            told_by(kernel)
        assert " linear " in kernel.tables["now"]


def test_without_room_beside_the_load_no_write_is_failed(kernel: Kernel) -> None:
    short = replace(aim(kernel), spare=(4 << 20, 4096))
    with pytest.raises(ToolError, match="too few to mark"):
        ACTS["dm_flakey"](short, lambda _seen, _text: None)
    assert kernel.story == []


def test_a_kernel_without_device_mapper_has_no_layer(kernel: Kernel) -> None:
    at = aim(kernel)
    assert missing(WAYS["dm_flakey"][1], at.machine, at.drive) == "/dev/mapper/control is not there"
    kernel.tree.write("/dev/mapper/control", b"")
    assert missing(WAYS["dm_flakey"][1], at.machine, at.drive) == ""
    assert WAYS["dm_flakey"][1].layered
