# SPDX-License-Identifier: Apache-2.0
"""Every way to a drive leads to the same drive: links, partitions, layers, character nodes."""

from pathlib import Path

import pytest

from storqual_core.host.block_stack import above, below, describe, resolve
from storqual_core.kit.machine import Node
from tests.support.bench_tree import BenchTree


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A partition of sda under LVM, under an encrypted volume, under a loop device; an NVMe namespace beside it."""
    tree = BenchTree(tmp_path).adapter().scsi("sda").partition("sda", 1)
    tree.stacked("dm-0", ["sda1"], title="vg-lv", uuid="LVM-1").stacked("dm-1", ["dm-0"], title="c", uuid="CRYPT-1")
    tree.loop("loop0", "/dev/dm-1")
    tree.adapter("0000:00:09.0", driver="nvme").nvme()
    tree.link("/dev/disk/by-id/wwn-0x5000c50000000001", "/dev/sda")
    tree.link("/dev/disk/by-id/wwn-0x5000c50000000001-part1", "/dev/sda1")
    tree.link("/dev/vg/lv", "/dev/dm-0")
    return tree


@pytest.mark.parametrize(
    "path",
    [
        *("/dev/sda", "/dev/sda1", "/dev/disk/by-id/wwn-0x5000c50000000001"),
        *("/dev/disk/by-id/wwn-0x5000c50000000001-part1", "/dev/vg/lv", "/dev/dm-1", "/dev/loop0", "/dev/sg0"),
        "/dev/bsg/2:0:0:0",
    ],
)
def test_every_path_leads_to_the_drive(tree: BenchTree, path: str) -> None:
    assert resolve(tree.machine, path).disks == ("sda",)


@pytest.mark.parametrize("path", ["/dev/nvme0n1", "/dev/ng0n1", "/dev/nvme0"])
def test_every_node_of_an_nvme_drive_leads_to_it(tree: BenchTree, path: str) -> None:
    assert resolve(tree.machine, path).disks == ("nvme0n1",)


def test_a_controller_with_several_ways_leads_to_the_drive_above_them(tree: BenchTree) -> None:
    """Native multipath: the controller has a hidden path, and the drive hangs below no controller."""
    tree.disk("nvme1n1", "", number="259:7", real=False)
    place = "/sys/devices/pci0000:00/0000:00:0a.0/nvme/nvme3"
    tree.disk("nvme1c3n1", place, number="259:8")
    tree.node("nvme3", "char", "242:3", place)
    (tree.root / place.lstrip("/") / "nvme1c3n1").mkdir()
    assert resolve(tree.machine, "/dev/nvme3").names == ("nvme1n1",)


def test_a_loop_device_lies_on_what_the_kernel_has_and_not_on_what_its_path_leads_to(tree: BenchTree) -> None:
    tree.scsi("sdb", wwn="0x5000c50000000002", serial="SER2")
    for path in ("/dev/sdb", "/run/private (deleted)"):
        name = f"loop{len(path)}"
        tree.loop(name, path)
        tree.machine.loops[f"/dev/{name}"] = tree.machine.nodes["/dev/sda"]
        assert resolve(tree.machine, f"/dev/{name}").disks == ("sda",)
        assert name in above(tree.machine, "sda")


def test_what_cannot_be_resolved_has_a_problem_and_no_disks(tree: BenchTree) -> None:
    tree.machine.nodes["/dev/megaraid_sas_ioctl_node"] = Node("char", 245, 0)
    for path, problem in {
        "/dev/nothing": "leads to nothing",
        "/dev/megaraid_sas_ioctl_node": "no physical drive can be found behind",
        "/dev/disk": "is neither a device nor a file",
    }.items():
        found = resolve(tree.machine, path)
        assert found.disks == ()
        assert problem in found.problem


def test_a_file_is_on_the_disk_of_its_file_system(tree: BenchTree) -> None:
    tree.write("/data/image", b"x")
    assert resolve(tree.machine, "/data/image").disks == ("vda",)


def test_a_loop_device_on_a_file_lies_on_that_files_disk(tree: BenchTree) -> None:
    tree.write("/data/image", b"x")
    tree.loop("loop1", "/data/image")
    assert resolve(tree.machine, "/dev/loop1").disks == ("vda",)


def test_both_directions_see_the_whole_stack(tree: BenchTree) -> None:
    assert above(tree.machine, "sda") == ["sda1", "dm-0", "dm-1", "loop0"]
    assert below(tree.machine, "loop0") == ["dm-1", "dm-0", "sda1", "sda"]


def test_a_ring_ends(tmp_path: Path) -> None:
    """No kernel makes one; a parser that hangs on one would hang the gate."""
    tree = BenchTree(tmp_path).stacked("dm-0", []).stacked("dm-1", ["dm-0"])
    tree.link("/sys/devices/virtual/block/dm-0/slaves/dm-1", "/sys/devices/virtual/block/dm-1")
    tree.link("/sys/devices/virtual/block/dm-1/holders/dm-0", "/sys/devices/virtual/block/dm-0")
    assert above(tree.machine, "dm-0") == ["dm-1"]
    assert below(tree.machine, "dm-0") == ["dm-1"]


def test_devices_have_names_for_people(tree: BenchTree) -> None:
    assert describe(tree.machine, "dm-0") == "LVM volume vg-lv (dm-0)"
    assert describe(tree.machine, "sda1") == "partition sda1"
    assert describe(tree.machine, "loop0") == "loop device loop0"
