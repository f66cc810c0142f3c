# SPDX-License-Identifier: Apache-2.0
"""What was written to each disk of a bench between two readings, and what its error counters did."""

from __future__ import annotations

from pathlib import Path

from storqual_core.guard.writes import Disk, Reading, end_line, read_disks, reading_of
from tests.support.bench_tree import STATE, BenchTree

MINE = "0x5000c50000000001"


def reading(boot: str = "b1", **sectors: int) -> Reading:
    """Disks a (claimed), b (nobody's) and r (the root disk)."""
    system = {"r": "carries /"}
    return Reading(
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


def test_the_spools_end_line_says_what_error_counters_counted() -> None:

    def disk(name: str, **errors: int) -> Disk:
        return Disk(node=name, id=name, wwn=name, serial="", sectors_written=0, errors=errors)

    before = Reading("b0", {"a": disk("a", ioerr_cnt=5, iotmo_cnt=9)})
    after = Reading("b0", {"a": disk("a", ioerr_cnt=7, iotmo_cnt=1), "b": disk("b", ioerr_cnt=3)})
    line = end_line(before, after, set())
    assert (line["a"]["errors"], line["b"]["errors"]) == ({"ioerr_cnt": 2, "iotmo_cnt": 1}, {})
    assert end_line(reading_of(before.record()), after, set()) == line
