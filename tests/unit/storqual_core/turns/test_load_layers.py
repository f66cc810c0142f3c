# SPDX-License-Identifier: Apache-2.0
"""Layers on top of a drive: within what may be written of it, gone again whatever happens, and witnesses of it."""

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from storqual_core.guard.signatures import window
from storqual_core.host.sysfs import SysfsDrive, read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.turns import load_layers
from storqual_core.turns.load_layers import layer_on
from storqual_core.turns.load_levels import LAYERS
from storqual_core.turns.scsi_command import LackingError
from tests.support.bench_tree import BenchTree

WWN, SIZE = "0x5000c50000000001", 512 << 20
FIRST = window(SIZE).offset // 512
END = FIRST + window(SIZE).size // 512


class Kernel:
    """The guard's hold, the programs and device-mapper, and what they were asked, in order."""

    def __init__(self, folder: Path) -> None:
        self.tree = BenchTree(folder / "tree").adapter().scsi("sda", hctl="2:0:0:0", wwn=WWN, serial="S1", size=SIZE)
        self.drive: SysfsDrive = read_drives(self.tree.machine)[0]
        self.held = folder / "held"
        self.held.touch()
        os.truncate(self.held, SIZE)
        with self.held.open("r+b") as file:
            os.pwrite(file.fileno(), b"x" * 4096, FIRST * 512)
        self.story: list[str] = []
        self.tables: list[list[str]] = []
        self.provided = 400_000
        self.fails, self.lacks = "", ""

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        program = argv[1] if argv[0] == "dmsetup" else argv[0]
        if argv[0] == self.lacks:
            raise MissingToolError(f"{argv[0]} is not installed")
        self.story.append(program)
        if program == self.fails:
            return Completed(tuple(argv), 1, "", "it failed", 0.0)
        if program == "create":
            table = argv[4].split()
            self.tables.append(table)
            self.tree.write(f"/dev/mapper/{argv[2]}", b"")
            if table[2] == "integrity" and table[1] == "8":
                with self.held.open("r+b") as file:
                    file.seek(int(table[4]) * 512)
                    assert file.read(4096) == bytes(4096), "it formats only where it finds zeros"
                    file.seek(int(table[4]) * 512)
                    file.write(struct.pack("<8s8xQ", b"integrt\0", self.provided) if self.provided else b"")
        return Completed(tuple(argv), 0, "", "", 0.0)

    def window(self, _: str) -> object:
        return window(SIZE)

    def opened(self, _: str) -> str:
        return str(self.held)

    def release(self, drive: str) -> str:
        self.story.append("let go")
        return drive

    def retake(self, drive: str) -> str:
        self.story.append("taken")
        return drive

    def layer(self, name: str, size: int = 8 << 20) -> Any:
        """The layer, as a context."""
        return layer_on(name, cast("Any", self), self.drive, self.tree.machine, cast("Any", self.run), size)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setattr(load_layers.util_linux, "make_mounts_private", lambda _: None)
    monkeypatch.setattr(load_layers, "_POINT", tmp_path / "point")
    # not every file takes it
    monkeypatch.setattr(load_layers.os, "O_DIRECT", 0)
    return Kernel(tmp_path)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_lies_in_what_may_be_written_and_is_gone_after_its_use(kernel: Kernel, name: str) -> None:
    def use() -> None:
        with kernel.layer(name) as path:
            assert Path(path).name == ("file" if name in ("ext4", "btrfs") else "storqual-layer-sda")
            kernel.story.append("used")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    table = kernel.tables[-1]
    first = int(table[-1]) if table[2] in ("linear", "crypt") else int(table[4])
    assert FIRST == first < first + int(table[1]) <= END
    assert kernel.drive.number in table
    own = {"ext4": ["mkfs.ext4", "mount"], "btrfs": ["mkfs.btrfs", "mount"]}.get(name, [])
    formatted = ["let go", "create", "remove", "taken"] if name == "integrity" else []
    after = ["umount"] if own else []
    assert kernel.story == [*formatted, "let go", "create", *own, "used", *after, "remove", "taken"]


def test_integrity_has_as_many_sectors_as_its_superblock_says(kernel: Kernel) -> None:
    with kernel.layer("integrity"):
        pass
    assert [table[1] for table in kernel.tables] == ["8", "400000"]
    kernel.provided = 0
    with pytest.raises(ToolError, match="superblock"), kernel.layer("integrity"):
        pass
    assert kernel.story[-1] == "taken"


@pytest.mark.parametrize(
    ("fails", "lacks", "error"),
    [
        ("create", "", LackingError),
        ("", "mkfs.btrfs", LackingError),
        ("mkfs.btrfs", "", ToolError),
        ("mount", "", ToolError),
    ],
)
def test_what_the_bench_has_not_is_lacking_and_what_fails_on_the_drive_is_a_failure(
    kernel: Kernel, fails: str, lacks: str, error: type[Exception]
) -> None:
    kernel.fails, kernel.lacks = fails, lacks
    with pytest.raises(error), kernel.layer("btrfs"):
        pass
    assert kernel.story[-1] == "taken"
    assert fails == "create" or kernel.story[-2] == "remove"


def test_a_drive_without_room_lacks_it(kernel: Kernel) -> None:
    with pytest.raises(LackingError, match="room"), kernel.layer("ext4", SIZE):
        pass
    assert kernel.story == []
