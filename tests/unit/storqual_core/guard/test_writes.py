# SPDX-License-Identifier: Apache-2.0
"""What was written to each disk of a bench between two readings, and what its error counters did."""

from pathlib import Path

import pytest

from storqual_core.guard.writes import (
    Disk,
    DisksReading,
    Quiet,
    end_line,
    read_disks,
    read_inflight,
    read_stat,
    reading_of,
)
from tests.support.bench_tree import STATE, BenchTree

MINE = "0x5000c50000000001"


def reading(boot: str = "b1", **sectors: int) -> DisksReading:
    """Disks a (claimed), b (nobody's) and r (the root disk)."""
    system = {"r": "carries /"}
    return DisksReading(
        boot, {name: Disk(name, name, "", name, count, system.get(name, "")) for name, count in sectors.items()}
    )


def test_the_counters_of_a_bench(tmp_path: Path) -> None:
    """The seventh column of each disk's stat, by kernel name."""
    tree = BenchTree(tmp_path).adapter().scsi("sda").stacked("md0", ["sda"])
    tree.write("/sys/block/sda/stat", "  10 0 80 5   20 0 4096 7 0 0 0 0 0 0 0 0 0\n")
    found = read_disks(tree.machine, state_dir=STATE)
    assert set(found.disks) == {"sda", "vda"}
    assert found.disks["sda"].sectors_written == 4096
    assert (found.disks["sda"].id, found.disks["sda"].system) == (MINE, "")
    assert found.disks["vda"].system == "carries / and storqual's spool"
    assert reading_of(found.record()) == found


def test_the_spools_end_line_has_both_counts_of_each_disk() -> None:
    line = end_line(reading(a=1, b=2), reading(a=5, b=2, c=3), {"a"})
    assert {name: (disk["write_sectors_before"], disk["write_sectors_after"]) for name, disk in line.items()} == {
        "a": (1, 5),
        "b": (2, 2),
        "c": (0, 3),
    }
    assert [disk["claimed"] for disk in line.values()] == [True, False, False]


def test_a_disk_that_is_served_to_this_bench_as_a_claimed_lun_is_covered_by_that_claim(tmp_path: Path) -> None:
    """What is written to the LUN lands there. A disk that is served to somebody else stays nobody's."""
    tree = BenchTree(tmp_path).adapter()
    for name, serial in (("sda", "LUN1"), ("sdb", "DISK1"), ("sdc", "DISK2")):
        tree.scsi(name, wwn="", serial=serial)
    for name, serial in (("sdb", "LUN1"), ("sdc", "OTHER")):
        place = f"/sys/kernel/config/target/core/iblock_0/{name}"
        tree.write(f"{place}/udev_path", f"/dev/{name}\n")
        tree.write(f"{place}/wwn/vpd_unit_serial", f"T10 VPD Unit Serial Number: {serial}\n")
    found = read_disks(tree.machine, state_dir=STATE)
    assert {name: disk.serves for name, disk in found.disks.items()} == {
        "sda": "",
        "sdb": "LUN1",
        "sdc": "OTHER",
        "vda": "",
    }
    line = end_line(found, found, {"LUN1"})
    assert [name for name, disk in line.items() if disk["claimed"]] == ["sda", "sdb"]
    assert not [name for name, disk in end_line(found, found, {"DISK2"}).items() if disk["claimed"] and name != "sdc"]


def test_the_spools_end_line_says_what_error_counters_counted() -> None:

    def disk(name: str, **errors: int) -> Disk:
        return Disk(node=name, id=name, wwn=name, serial="", sectors_written=0, errors=errors)

    before = DisksReading("b0", {"a": disk("a", ioerr_cnt=5, iotmo_cnt=9)})
    after = DisksReading("b0", {"a": disk("a", ioerr_cnt=7, iotmo_cnt=1), "b": disk("b", ioerr_cnt=3)})
    line = end_line(before, after, set())
    assert (line["a"]["errors"], line["b"]["errors"]) == ({"ioerr_cnt": 2, "iotmo_cnt": 1}, {})
    assert end_line(reading_of(before.record()), after, set()) == line


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
    assert seen == {"nvme0n1": "it is being written to, and the program is not known"}
