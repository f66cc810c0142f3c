# SPDX-License-Identifier: Apache-2.0
"""One sector on a disk that nobody claimed is a finding, over any number of boots."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.guard.writes import Disk, Reading, end_line, outside_claims, read_disks, reading_of
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


def test_a_claimed_and_a_system_disk_may_be_written() -> None:
    found = outside_claims([reading(a=0, b=5, r=9), reading(a=900, b=5, r=99)], {"a"})
    assert (found.sectors, found.findings) == (0, ())
    assert {disk["id"]: disk["sectors_written"] for disk in found.disks} == {"a": 900, "b": 0, "r": 90}


def test_one_sector_elsewhere_is_a_finding() -> None:
    found = outside_claims([reading(a=0, b=5), reading(a=900, b=6)], {"a"})
    assert found.sectors == 1
    assert found.findings == ("1 sectors were written to drive b (b), which is neither claimed nor a system disk",)


def test_a_later_boot_counts_from_its_start() -> None:
    found = outside_claims([reading(b=100), reading("b2", b=7), reading("b2", b=9), reading("b3", b=1)], set())
    assert found.sectors == 10
    assert found.disks[0]["per_boot"] == {"b1": 0, "b2": 9, "b3": 1}


def test_a_disk_that_came_later_or_came_again_counts_from_zero() -> None:
    assert outside_claims([reading(a=0), reading(a=0, b=3)], {"a"}).sectors == 3
    assert outside_claims([reading(b=100), reading(b=4)], set()).sectors == 4


def test_a_disk_stays_a_system_disk() -> None:
    was = Reading("b1", {"s": Disk("s", "s", "", "s", 0, "carries swap")})
    now = Reading("b1", {"s": Disk("s", "s", "", "s", 50, "")})
    assert outside_claims([was, now], set()).sectors == 0


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["b1", "b2"]), st.dictionaries(st.sampled_from("abr"), st.integers(0, 50))),
        max_size=6,
    )
)
def test_every_write_after_the_first_look_is_counted_once(steps: list[tuple[str, dict[str, int]]]) -> None:
    counters: dict[str, int] = dict.fromkeys("abr", 7)
    readings, boot, total = [reading("b0", **counters)], "b0", 0
    for index, (step_boot, writes) in enumerate(steps):
        if step_boot == "b2":
            boot, counters = f"boot{index}", dict.fromkeys("abr", 0)
        for disk, sectors in writes.items():
            counters[disk] += sectors
            total += sectors if disk == "b" else 0
        readings.append(reading(boot, **counters))
    assert outside_claims(readings, {"a"}).sectors == total


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
