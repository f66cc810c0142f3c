# SPDX-License-Identifier: Apache-2.0
"""What the names of levels are on a drive: its queue's limits as the kernel tells them, and places of writes."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.sysfs import DriveIdentity, SysfsDrive
from storqual_core.turns.load_levels import SIDES, QueueLimits, read_limits, regions_of
from tests.support.bench_tree import BenchTree, vpd_page

DRIVE = SysfsDrive(
    name="sda",
    number="8:0",
    identity=DriveIdentity("", "S1", "EXAMPLE", "DISK9", "1", None, None),
    transport="sas",
    hctl="2:0:0:0",
    sg="sg0",
    adapter="0000:3b:00.0",
    host="host2",
    port=0,
    state="running",
    read_only=False,
)
QUEUE = {
    "logical_block_size": 4096,
    "max_sectors_kb": 1280,
    "max_hw_sectors_kb": 16383,
    "max_segments": 169,
    "max_segment_size": 65536,
    "dma_alignment": 3,
    "nr_requests": 64,
    "fua": 1,
    "io_poll": 1,
    "discard_max_bytes": 4 << 20,
    "write_zeroes_max_bytes": 32 << 20,
}


def tree_with(folder: Path, queue: dict[str, int], pages: dict[str, bytes]) -> BenchTree:
    tree = BenchTree(folder)
    for name, value in queue.items():
        tree.write(f"/sys/block/sda/queue/{name}", f"{value}\n")
    for name, page in pages.items():
        tree.write(f"/sys/block/sda/device/{name}", page)
    tree.write("/sys/class/scsi_host/host2/can_queue", "9000\n")
    if queue:
        tree.write("/sys/block/sda/device/scsi_disk/2:0:0:0/protection_type", "1\n")
        tree.write("/sys/block/sda/integrity/format", "T10-DIF-TYPE1-CRC\n")
    return tree


def test_limits_are_those_of_the_queue_in_whole_blocks(tmp_path: Path) -> None:
    pages = {
        "vpd_pgb0": vpd_page(0xB0, bytes((0, 7, *bytes(58)))),
        "vpd_pgb2": vpd_page(0xB2, bytes((0, 0x04, 0, 0))),
    }
    assert read_limits(tree_with(tmp_path, QUEUE, pages).machine, DRIVE) == QueueLimits(
        block=8,
        limit=2560,
        # 16383 KiB are no whole blocks of 4 KiB
        hard=32760,
        segments=169,
        segment_bytes=65536,
        # protection information is made of whole blocks
        alignment=4096,
        depth=9000,
        fua=True,
        polls=True,
        scsi=True,
        discard=8192,
        zeroes=65536,
        keeps_zeros=True,
        compare=7,
        protection=1,
        integrity="/sys/block/sda/integrity",
    )


def test_what_a_drive_or_an_older_kernel_does_not_tell_it_does_not_have(tmp_path: Path) -> None:
    pages = {"vpd_pgb2": vpd_page(0xB2, bytes(4))}
    found = read_limits(tree_with(tmp_path, {}, pages).machine, DRIVE)
    assert (found.fua, found.discard, found.zeroes, found.keeps_zeros, found.compare) == (False, 0, 0, False, 0)
    assert (found.block, found.limit, found.hard, found.alignment) == (1, 1024, 1024, 512)


@given(
    st.integers(24, 34),
    st.sampled_from((1, 8)),
    st.integers(1, 2048),
    st.sampled_from(SIDES),
    st.integers(0, 1 << 20),
)
def test_a_write_lies_on_its_side_of_the_boundary_and_within_its_place(
    power: int, block: int, blocks: int, side: str, seed: int
) -> None:
    first, end, length = 2048, (1 << power) - 2048, blocks * block
    regions = {region.name: region for region in regions_of(first, end, 16384, seed)}
    for name, region in regions.items():
        sector = region.begin_of(length, side, block)
        assert region.first <= sector <= region.end - length
        assert (sector - region.anchor) % block == 0
        if side == "across" and blocks > 1:
            assert sector < region.anchor < sector + length
        elif side == "above" and name != "end":
            assert sector == region.anchor
        elif side == "below" and name != "start":
            assert sector + length == region.anchor
    # the first and the last sector that may be written are reached
    assert regions["start"].begin_of(length, "below", block) == first
    assert regions["end"].begin_of(length, "above", block) == end - length
