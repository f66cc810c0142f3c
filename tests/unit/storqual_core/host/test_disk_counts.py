# SPDX-License-Identifier: Apache-2.0
"""Writes to an NVMe drive are counted, whether its own counters have them or those of its hidden paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual_core.guard.quiet import Quiet
from storqual_core.guard.writes import read_disks
from storqual_core.host.disk_counts import read_inflight, read_stat
from tests.support.bench_tree import STATE, BenchTree

if TYPE_CHECKING:
    from pathlib import Path


def counted(tree: BenchTree, name: str, sectors: int) -> None:
    """The kernel counted so many sectors written."""
    tree.write(f"/sys/block/{name}/stat", " ".join(str(sectors if place == 6 else 0) for place in range(17)) + "\n")


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """An NVMe drive with two paths, a path of another drive, and a SCSI drive."""
    tree = BenchTree(tmp_path).adapter().scsi("sda").adapter("0000:00:09.0", driver="nvme").nvme()
    for place, path in enumerate(("nvme0c0n1", "nvme0c1n1", "nvme1c0n1")):
        tree.disk(path, f"/sys/devices/pci0000:00/0000:00:0{place + 1}.0/nvme", number=f"259:{place + 7}")
        tree.write(f"/sys/block/{path}/hidden", "1\n")
        tree.write(f"/sys/block/{path}/inflight", "       0        1\n")
        counted(tree, path, 10 + place)
    tree.write("/sys/block/nvme0n1/inflight", "       0        0\n")
    return tree


@pytest.mark.parametrize(("own", "told"), [(0, 21), (21, 21), (30, 30)])
def test_a_drive_counts_itself_or_its_paths_do(tree: BenchTree, own: int, told: int) -> None:
    """Linux before 6.4 counts on the paths alone; since then both count, and a path that went took its part along."""
    counted(tree, "nvme0n1", own)
    assert read_stat(tree.machine, "nvme0n1")[6] == told
    assert read_disks(tree.machine, state_dir=STATE).disks["nvme0n1"].sectors_written == told


def test_what_is_under_way_on_a_path_is_under_way_on_the_drive(tree: BenchTree) -> None:
    assert read_inflight(tree.machine, "nvme0n1") == [0, 2]


def test_other_disks_have_no_paths(tree: BenchTree) -> None:
    counted(tree, "sda", 5)
    assert read_stat(tree.machine, "sda")[6] == 5
    assert read_stat(tree.machine, "sdz") == []


def test_a_write_through_a_path_is_no_quiet_second(tree: BenchTree) -> None:
    for path in ("nvme0c0n1", "nvme0c1n1"):
        tree.write(f"/sys/block/{path}/inflight", "       0        0\n")
    tree.machine.meanwhile.append(lambda: counted(tree, "nvme0c1n1", 19))
    seen = Quiet(tree.machine, {"nvme0n1": "", "sda": ""}).end()
    assert seen == {"nvme0n1": "it is being written to, and no program can be told"}
