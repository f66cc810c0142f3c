# SPDX-License-Identifier: Apache-2.0
"""Sectors that cannot be read: taken from beside the load alone, proven by reads, and readable again afterwards."""

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.data.faults import WAYS
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.turns import drive_faults
from storqual_core.turns.bench_faults import ACTS, missing
from storqual_core.turns.drive_faults import Aim, Sectors, Spot, find_spot
from tests.support.bench_tree import BenchTree

A = "0x5000c50000000001"
MIB = 1 << 20
SPOT = 4 * MIB


class FakeDrive:
    """A drive that keeps what is written, and gives out no block that is marked."""

    def __init__(self, aim: Aim) -> None:
        self.aim = aim
        self.marked: set[int] = set()
        self.written: list[tuple[int, int]] = []
        self.asked: list[str] = []
        self.problem = errno.ENODATA
        self.reads = 0
        self.deaf = self.stuck = self.spreads = self.refuses = False

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.asked.append(" ".join(argv))
        if self.refuses:
            return Completed(tuple(argv), 9, "", "WRITE LONG (10) not supported", 0.0)
        words = dict(word.lstrip("-").partition("=")[::2] for word in argv)
        first = int(words.get("lba") or words["start-block"])
        count = int(words.get("block-count") or 0) + 1
        if not self.deaf:
            self.marked |= set(range(first * 512, (first + count) * 512, 512))
        return Completed(tuple(argv), 0, "", "", 0.0)

    def sectors(self, _machine: object, node: str, number: str = "") -> "FakeDrive":
        assert (node, bool(number)) in (("/dev/sda", True), ("/dev/nvme0n1", True))
        return self

    path = "/proc/7/fd/9"

    def read(self, first: int, size: int) -> int:
        self.reads += 1
        hit = any(first <= at < first + size for at in self.marked)
        if self.spreads and self.marked and not hit:
            return errno.EIO
        return self.problem if hit else 0

    def write(self, first: int, size: int) -> int:
        if self.stuck and self.marked:
            return errno.EIO
        self.written.append((first, size))
        self.marked -= set(range(first, first + size, 512))
        return 0

    def close(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    tree = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    return tree.nvme()


def aimed(tree: BenchTree, name: str = "sda") -> Aim:
    for file, size in (("logical_block_size", 512), ("physical_block_size", 4096)):
        tree.write(f"/sys/block/{name}/queue/{file}", f"{size}\n")
    drive = next(one for one in read_drives(tree.machine) if one.name == name)
    return Aim(tree.machine, lambda *_, **__: pytest.fail("nothing is run"), drive, 0.0, 0.2, (SPOT, MIB))


def on_disk(tree: BenchTree) -> bytes:
    with Path(tree.machine.path("/dev/sda")).open("rb") as disk:
        disk.seek(SPOT)
        return disk.read(8192)


@pytest.fixture
def fake(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> FakeDrive:
    fake = FakeDrive(aimed(tree))
    monkeypatch.setattr(drive_faults, "Sectors", fake.sectors)
    return fake


def bring(fake: FakeDrive, way: str = "sg_write_uncorrectable", aim: Aim | None = None) -> list[str]:
    told: list[str] = []
    at = replace(aim or fake.aim, runner=fake.run)
    ACTS[way](at, lambda seen, _text: told.append(seen))
    return told


@pytest.mark.parametrize("spare", [(0, 0), (SPOT, 8191), (SPOT + 1, 8192)])
def test_without_room_beside_the_load_nothing_is_opened_written_or_marked(
    fake: FakeDrive, spare: tuple[int, int]
) -> None:
    with pytest.raises(ToolError, match="too few to mark"):
        bring(fake, aim=replace(fake.aim, spare=spare))
    assert (fake.written, fake.asked) == ([], [])


def test_a_drive_of_unknown_blocks_is_left_alone(tree: BenchTree, fake: FakeDrive) -> None:
    tree.write("/sys/block/sda/queue/logical_block_size", "\n")
    with pytest.raises(ToolError, match="does not say how long a block"):
        bring(fake)
    assert (fake.written, fake.asked) == ([], [])


def test_a_node_that_is_another_device_by_now_is_neither_written_nor_marked(tree: BenchTree) -> None:
    aim = aimed(tree)
    fake = FakeDrive(aim)
    moved = replace(aim, drive=replace(aim.drive, number="8:99"))
    before = on_disk(tree)
    with pytest.raises(ToolError, match="/dev/sda is device 8:16 now, 8:99 was aimed at"):
        bring(fake, aim=moved)
    assert fake.asked == []
    assert on_disk(tree) == before


def test_all_that_is_marked_and_written_lies_in_whole_physical_blocks_beside_the_load(fake: FakeDrive) -> None:
    assert find_spot(replace(fake.aim, spare=(SPOT - 512, MIB))) == Spot(SPOT, 4096, 512)
    bring(fake)
    assert all(first >= SPOT and first + size <= SPOT + MIB for first, size in fake.written)


def test_blocks_are_marked_read_and_written_anew(fake: FakeDrive) -> None:
    assert bring(fake) == ["marked", "unreadable", "mended"]
    lbas = range(SPOT // 512, SPOT // 512 + 8)
    assert fake.asked == [*(f"sg_write_long --wr_uncor --lba={lba} /proc/7/fd/9" for lba in lbas), "closed"]
    assert fake.written == [(SPOT, 8192), (SPOT, 4096)]
    assert not fake.marked


def test_what_an_earlier_trial_left_marked_is_put_right_first(fake: FakeDrive) -> None:
    fake.marked = {SPOT}
    assert bring(fake) == ["marked", "unreadable", "mended"]


def failed(fake: FakeDrive, words: str) -> list[str]:
    """What was told before the way failed with these words."""
    told: list[str] = []
    with pytest.raises(ToolError, match=words):
        ACTS["sg_write_uncorrectable"](replace(fake.aim, runner=fake.run), lambda seen, _text: told.append(seen))
    return told


def test_a_drive_that_does_not_know_the_command_tells_no_mark_and_is_written_anew(fake: FakeDrive) -> None:
    fake.refuses = True
    assert failed(fake, "the drive does not know this command") == []
    assert fake.written[-1] == (SPOT, 4096)


def test_marked_blocks_that_give_data_are_no_proof(fake: FakeDrive) -> None:
    fake.deaf = True
    assert failed(fake, "read 1 of the marked bytes at byte 4194304 gave data") == ["marked"]


def test_a_read_that_fails_because_the_drive_went_is_no_medium_error(fake: FakeDrive) -> None:
    fake.problem = errno.ENXIO
    with pytest.raises(ToolError, match="failed with ENXIO, no medium error"):
        bring(fake)


def test_an_error_that_reaches_the_blocks_beside_is_told(fake: FakeDrive) -> None:
    fake.spreads = True
    with pytest.raises(ToolError, match="beside the marked ones, cannot be read: EIO"):
        bring(fake)
    assert not fake.marked


def test_blocks_that_cannot_be_written_anew_are_named(fake: FakeDrive) -> None:
    fake.stuck = True
    with pytest.raises(ToolError, match=f"{A}: 4096 bytes at byte {SPOT} cannot be written: EIO; they may be unread"):
        bring(fake)


def test_reads_go_on_for_as_long_as_the_fault_lasts(fake: FakeDrive) -> None:
    bring(fake)
    once, fake.reads = fake.reads, 0
    bring(fake, aim=replace(fake.aim, away_s=1.0))
    assert fake.reads > once + 2


def test_a_namespace_is_marked_in_one_command_whose_count_begins_at_nought(tree: BenchTree, fake: FakeDrive) -> None:
    aim = aimed(tree, "nvme0n1")
    assert bring(fake, "nvme_write_uncorrectable", aim) == ["marked", "unreadable", "mended"]
    assert fake.asked[0] == f"nvme write-uncor /dev/nvme0n1 --start-block={SPOT // 512} --block-count=7"


def test_each_way_is_for_drives_of_its_own_command_set(tree: BenchTree) -> None:
    scsi, nvme = aimed(tree).drive, aimed(tree, "nvme0n1").drive
    tree.write("/sys/block/nvme0n1/nsid", "1\n")
    by_scsi, by_nvme = WAYS["sg_write_uncorrectable"][1], WAYS["nvme_write_uncorrectable"][1]
    assert (missing(by_scsi, tree.machine, scsi), missing(by_nvme, tree.machine, nvme)) == ("", "")
    assert "scsi_level is not there" in missing(by_scsi, tree.machine, nvme)
    assert "nsid is not there" in missing(by_nvme, tree.machine, scsi)


def test_sectors_are_written_past_the_cache_of_the_device_that_was_aimed_at(tree: BenchTree) -> None:
    tree.fill("sda", SPOT, b"x" * 8192)
    aim = aimed(tree)
    sectors = Sectors(aim.machine, aim.drive.node, aim.drive.number)
    assert sectors.read(SPOT, 4096) == sectors.write(SPOT, 4096) == 0
    assert Path(sectors.path).samefile(tree.machine.path("/dev/sda"))
    sectors.close()
    assert on_disk(tree) == bytes(4096) + b"x" * 4096
