# SPDX-License-Identifier: Apache-2.0
"""The integrity load: tagged sectors, their acknowledgements, and what was read back."""

import errno
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns import integrity_load
from storqual_core.turns.entries import EntryReader
from storqual_core.turns.integrity_load import (
    OTHER_DATA,
    IntegrityRequest,
    KnownSectors,
    LoadWorkers,
    Worker,
    read_integrity,
)
from storqual_core.turns.scsi_command import LackingError
from storqual_core.turns.sectors import SECTOR, SectorContent, make_sectors, read_region, read_sector, runs_of

TAG = b"trial--1"
ASK = IntegrityRequest(
    first=256, sectors=1024, workers=2, sizes=(1, 8), read_share=0.2, through_share=0.2, flush_every=5, seed=3
)


class FileDevice:
    """A file as a drive; `broken` is the errno that every I/O ends with from then on."""

    def __init__(self, path: Path) -> None:
        path.touch()
        os.truncate(path, 4 << 20)
        self.descriptor = os.open(path, os.O_RDWR)

    def use(self) -> int:
        return self.descriptor

    def done(self, problem: int) -> None:
        pass


@pytest.fixture
def device(tmp_path: Path) -> Iterator[FileDevice]:
    device = FileDevice(tmp_path / "drive")
    yield device
    os.close(device.descriptor)


def run(
    device: FileDevice, ask: IntegrityRequest = ASK, steps: int = 200
) -> list[tuple[str, int, int, int, int, int, int]]:
    told: list[tuple[str, int, int, int, int, int, int]] = []
    workers = LoadWorkers(ask, TAG, device, lambda *io: told.append(io))._workers
    assert [worker.fill() for worker in workers] == [0, 0]
    for _ in range(steps):
        for worker in workers:
            worker.step()
    return told


def last_writes(told: list[tuple[str, int, int, int, int, int, int]]) -> dict[int, int]:
    return {at: io[1] for io in told if io[0] in "wd" for at in range(io[2], io[2] + io[3])}


def test_what_is_read_back_is_what_was_acknowledged_last(device: FileDevice) -> None:
    told = run(device)
    found = {
        sector: sequence
        for first, count, code, sequence in read_region(device.descriptor, TAG, 256, 1024)
        for sector in range(first, first + count)
        if code == "good"
    }
    assert found == last_writes(told)
    assert len(found) == 1024


def test_the_load_has_writes_writes_through_flushes_and_reads_and_no_sequence_twice(device: FileDevice) -> None:
    told = run(device)
    assert {io[0] for io in told} == {"w", "d", "f", "r"}
    sequences = [io[1] for io in told if io[0] in "wd"]
    assert len(set(sequences)) == len(sequences)
    assert 0 not in sequences
    assert all(io[4] <= io[5] for io in told)


@pytest.mark.parametrize(("first", "code", "block"), [(256, 0x2A, 1), (256, 0x2A, 8), ((1 << 32) - 512, 0x8A, 1)])
def test_half_of_what_is_written_through_is_a_command_with_fua_where_the_drive_takes_one(
    device: FileDevice, monkeypatch: pytest.MonkeyPatch, first: int, code: int, block: int
) -> None:
    """To the address, of the length and with the data that are told; else it is a write with O_DSYNC."""
    sent: list[tuple[int, int, int, bytes]] = []

    def perform(_descriptor: int, command: bytes, pieces: list[memoryview], *, reads: bool) -> None:
        assert not reads
        assert command[1] == 0x08
        long = command[0] == 0x8A
        at = int.from_bytes(command[2:10] if long else command[2:6], "big") * block
        length = int.from_bytes(command[10:14] if long else command[7:9], "big") * block
        sent.append((command[0], at, length, b"".join(pieces)))
        if len(sent) % 3 == 0:
            raise LackingError("no FUA after all")

    monkeypatch.setattr(integrity_load, "perform", perform)
    monkeypatch.setattr(integrity_load.os, "pwritev", lambda _, pieces, *__: sum(map(len, pieces)))
    told: list[tuple[str, int, int, int, int, int, int]] = []
    ask = replace(ASK, first=first, workers=1, sizes=(8,), read_share=0.0)
    worker = Worker(ask, 0, TAG, device, lambda *io: told.append(io), block=block, sends_fua=True)
    for _ in range(400):
        worker.step()
    through = {(io[2], io[3]): io for io in told if io[0] == "d"}
    assert 0.3 * len(through) < len(sent) < 0.7 * len(through)
    for name, at, length, data in sent:
        assert (name == 0x8A) == (at + length >= 1 << 32)
        assert (at, length) in through
        assert read_sector(data[:SECTOR], TAG, at).code == "good"
    assert any(name == code for name, *_ in sent)
    assert not any(io[6] for io in told)


def test_workers_never_write_in_each_others_part(device: FileDevice) -> None:
    for io in run(device):
        if io[0] in "wd":
            worker = io[1] % 2
            assert 256 + worker * 512 <= io[2]
            assert io[2] + io[3] <= 256 + (worker + 1) * 512


def test_the_same_seed_draws_the_same_load_and_another_another(device: FileDevice) -> None:
    def plan(ask: IntegrityRequest) -> list[tuple[str, int, int, int]]:
        return [io[:4] for io in run(device, ask, 50)]

    assert plan(ASK) == plan(ASK)
    assert plan(ASK) != plan(replace(ASK, seed=4))


def test_a_read_that_gives_other_data_is_told_by_what_it_gave(device: FileDevice) -> None:
    told: list[tuple[str, int, int, int, int, int, int]] = []
    ask = replace(ASK, workers=1, sectors=128, sizes=(128,), read_share=1.0)
    worker = Worker(ask, 0, TAG, device, lambda *io: told.append(io))
    worker.fill()
    worker.step()
    assert told[-1][0] == "r"
    assert told[-1][6] == 0
    whole = make_sectors(TAG, 300, 99, 1)
    found = {
        "good": whole,
        "corrupted": bytes([whole[0] ^ 1]) + whole[1:],
        "torn": whole[:200] + make_sectors(TAG, 300, 98, 1)[200:],
        "misdirected": make_sectors(TAG, 299, 99, 1),
        "foreign": make_sectors(b"an older", 300, 99, 1),
        "zero": bytes(SECTOR),
    }
    for code, data in found.items():
        os.pwrite(device.descriptor, data, 300 * SECTOR)
        worker.step()
        assert told[-1][6] == OTHER_DATA[code], code


@pytest.mark.parametrize("late", [False, True])
def test_a_write_that_waited_is_read_before_another_hides_what_became_of_it(
    device: FileDevice, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """The drive acknowledges the one write that waits, and loses it."""
    told: list[tuple[str, int, int, int, int, int, int]] = []
    worker = Worker(replace(ASK, read_share=0), 0, TAG, device, lambda *io: told.append(io))
    assert worker.fill() == 0
    write, clock = os.pwritev, [0.0]

    def lose(_descriptor: int, views: list[memoryview], *_: int) -> int:
        clock[0] += 20.0 if late else 0.02
        monkeypatch.setattr(os, "pwritev", write)
        return len(views[0])

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(os, "pwritev", lose)
    for _ in range(3):
        worker.step()
    reads = [io[6] for io in told if io[0] == "r"]
    assert reads == ([OTHER_DATA["good"]] if late else [])


def test_a_failed_write_is_told_with_its_errno_and_is_not_expected_back(device: FileDevice, tmp_path: Path) -> None:
    told: list[tuple[str, int, int, int, int, int, int]] = []
    ask = replace(ASK, workers=1, sectors=128, sizes=(128,), read_share=0.0)
    worker = Worker(ask, 0, TAG, device, lambda *io: told.append(io))
    worker.fill()
    whole, device.descriptor = device.descriptor, os.open(tmp_path / "drive", os.O_RDONLY)
    worker.step()
    os.close(device.descriptor)
    device.descriptor = whole
    assert (told[-1][0] in "wd", told[-1][6]) == (True, errno.EBADF)
    assert set(worker._ledger.before(256, 128)[0]) == {0}


def test_threads_end_when_they_are_told_to(device: FileDevice) -> None:
    told: list[tuple[str, int, int, int, int, int, int]] = []
    load = LoadWorkers(ASK, TAG, device, lambda *io: told.append(io))
    assert load.fill() == 0
    load.start()
    end = time.monotonic() + 10
    while len(told) < 100 and time.monotonic() < end:
        time.sleep(0.01)
    assert load.stop(10)
    assert len(told) >= 100


def test_after_a_pause_of_all_workers_a_flush_or_a_write_through_comes_first(
    device: FileDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity_load, "_BETWEEN_IDLES_S", 0.05)
    told: list[tuple[str, int, int, int, int, int, int]] = []
    seen = threading.Event()
    idle_ns = 250_000_000

    def first_after_pauses() -> list[str]:
        ios = sorted(told, key=lambda io: io[4])
        ends = accumulate((io[5] for io in ios), max)
        return [io[0] for io, end in zip(ios[1:], ends, strict=False) if io[4] - end >= idle_ns]

    def tell(*io: int) -> None:
        told.append(io)  # type: ignore[arg-type]
        if io[4] - told[-2:][0][5] >= idle_ns and len(first_after_pauses()) >= 4:
            seen.set()

    load = LoadWorkers(replace(ASK, idles_s=(0.26, 0.3)), TAG, device, tell)
    assert load.fill() == 0
    load.start()
    assert seen.wait(60)
    assert load.stop(10)
    assert first_after_pauses()[:4] == ["f", "d", "f", "d"]
    assert {io[0] for io in told} >= set("wfdr")


def test_only_what_is_not_what_was_written_last_is_doubtful(device: FileDevice) -> None:
    told: list[tuple[str, int, int, int, int, int, int]] = []
    load = LoadWorkers(ASK, TAG, device, lambda *io: told.append(io))
    assert load.fill() == 0
    last = last_writes(told)
    runs = list(read_region(device.descriptor, TAG, ASK.first, ASK.sectors))
    assert [sector for run in runs for sector in load.ledger.doubtful(*run)] == []
    first = ASK.first
    assert load.ledger.doubtful(first, 2, "good", last[first] + 1000) == [first, first + 1]
    assert load.ledger.doubtful(first, 1, "torn", last[first]) == [first]
    # across the parts of two workers, and beyond the region: nothing is known there
    middle = first + ASK.sectors // 2
    assert load.ledger.doubtful(middle - 1, 2, "zero", 0) == [middle - 1, middle]
    assert load.ledger.doubtful(first + ASK.sectors - 1, 3, "zero", 0) == [first + ASK.sectors - 1]
    assert load.ledger.doubtful(first - 4, 4, "zero", 0) == []


def test_a_read_under_way_may_find_the_old_or_the_new_and_no_mixture() -> None:
    """Another worker's write that begins or ends meanwhile counts; one that ended before the read does not."""
    ledger = KnownSectors([(100, 8)])

    def found(sequence: int, *, zero: bool = False) -> list[tuple[int, int, str, int]]:
        data = bytes(8 * SECTOR) if zero else bytes(make_sectors(TAG, 100, sequence, 8))
        return list(runs_of(memoryview(data), TAG, 100))

    ledger.begin(1, 100, 8)
    ledger.end(1, 0)
    ledger.begin(2, 100, 8)
    before = ledger.before(100, 8)
    assert [ledger.wrong(100, iter(found(number)), before) for number in (1, 2, 3)] == ["", "", "good"]
    ledger.end(2, 0)
    ledger.begin(3, 100, 8)
    ledger.end(3, 0)
    assert ledger.wrong(100, iter(found(3)), before) == ""
    assert ledger.wrong(100, iter(found(1)), ledger.before(100, 8)) == "good"
    assert ledger.wrong(100, iter(found(0, zero=True)), ledger.before(100, 8)) == "zero"
    torn = make_sectors(TAG, 100, 3, 8)
    torn[700:800] = make_sectors(TAG, 100, 2, 8)[700:800]
    assert ledger.wrong(100, runs_of(memoryview(torn), TAG, 100), ledger.before(100, 8)) == "corrupted"
    ledger.begin(4, 100, 8)
    ledger.end(4, 0, zeros=True)
    assert ledger.wrong(100, iter(found(0, zero=True)), ledger.before(100, 8)) == ""


@pytest.mark.parametrize("block", [1, 8])
def test_of_a_block_a_read_finds_one_write_whole(block: int) -> None:
    """Sectors of 512 bytes may be old and new as they come; of a block of 4096 bytes all are of one write."""
    ledger = KnownSectors([(96, 32)], block)
    ledger.begin(1, 96, 32)
    ledger.end(1, 0)
    ledger.begin(2, 96, 32)
    old, new = (bytes(make_sectors(TAG, 96, sequence, 32)) for sequence in (1, 2))
    answers = {}
    for seam in (8, 11, 16, 31):
        data = memoryview(new[: seam * SECTOR] + old[seam * SECTOR :])
        answers[seam] = ledger.wrong(96, runs_of(data, TAG, 96), ledger.before(96, 32))
    inside = "torn" if block == 8 else ""
    assert answers == {8: "", 11: inside, 16: "", 31: inside}
    # what a failed write left may be of both
    ledger.end(2, errno.EIO)
    data = memoryview(new[: 11 * SECTOR] + old[11 * SECTOR :])
    assert ledger.wrong(96, runs_of(data, TAG, 96), ledger.before(96, 32)) == ""


@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("mixes", [False, True])
def test_an_emulated_drive_may_mix_a_sector_while_a_write_of_it_is_under_way(mixes: bool, block: int) -> None:
    ledger = KnownSectors([(96, 32)], block, mixes=mixes)
    ledger.begin(1, 96, 32)
    ledger.end(1, 0)
    ledger.begin(2, 96, 16)
    old, new = (bytes(make_sectors(TAG, 96, sequence, 32)) for sequence in (1, 2))

    def found(at: int) -> str:
        """What a read is called in which all is right but for one sector, which is of both writes."""
        data, middle = bytearray(new[: 16 * SECTOR] + old[16 * SECTOR :]), at * SECTOR + 256
        other = old if at < 16 else new
        data[middle : middle + 256] = other[middle : middle + 256]
        return ledger.wrong(96, runs_of(memoryview(data), TAG, 96), ledger.before(96, 32))

    assert (found(5) == "") == mixes
    # where no write is under way it may not
    assert found(20) != ""
    ledger.end(2, 0)
    assert found(5) != ""


def test_a_drive_that_gives_old_data_right_after_a_write_is_found(
    device: FileDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so for the next command only: reads at drawn places of a large region would hardly ever see it."""
    old: dict[int, bytes] = {}
    real_write, real_read = os.pwritev, os.preadv

    def write(descriptor: int, pieces: list[memoryview], offset: int, flags: int = 0) -> int:
        old.clear()
        old[offset] = os.pread(descriptor, len(pieces[0]), offset)
        return real_write(descriptor, pieces, offset, flags)

    def read(descriptor: int, pieces: list[memoryview], offset: int) -> int:
        done = real_read(descriptor, pieces, offset)
        if len(old.get(offset, b"")) == len(pieces[0]):
            pieces[0][:] = old[offset]
        old.clear()
        return done

    monkeypatch.setattr(os, "pwritev", write)
    monkeypatch.setattr(os, "preadv", read)
    told = run(device, replace(ASK, read_share=0.4, sectors=4096), steps=400)
    assert OTHER_DATA["good"] in {io[6] for io in told if io[0] == "r"}


@given(st.integers(1, 1 << 40), st.integers(1, 300), st.integers(0, 299), st.sampled_from((0, 1, 8)))
def test_a_whole_write_is_made_as_its_sectors_are(sequence: int, length: int, begin: int, period: int) -> None:
    begin, period = min(begin, length - 1), min(period, length)
    whole = make_sectors(TAG, 77, sequence, length, period)
    assert list(runs_of(memoryview(whole), TAG, 77)) == [(77, length, "good", sequence)]
    part = whole[begin * SECTOR : (begin + 1) * SECTOR]
    assert read_sector(bytes(part), TAG, 77 + begin) == SectorContent("good", sequence)
    assert period or read_sector(bytes(part), TAG, 78 + begin).code == "misdirected"


def test_bytes_that_moved_within_a_sector_are_seen() -> None:
    data = bytearray(make_sectors(TAG, 5, 9, 1))
    data[200:208] = data[208:216]
    assert read_sector(bytes(data), TAG, 5).code == "corrupted"


def test_a_region_too_small_for_its_workers_is_refused() -> None:
    problems: list[str] = []
    fields = {**ASK.__dict__, "sizes": list(ASK.sizes)}
    del fields["sweep"], fields["idles_s"]
    assert read_integrity(EntryReader("load", problems), fields) == ASK
    assert read_integrity(EntryReader("load", problems), {**fields, "idles_s": [1]}) == replace(ASK, idles_s=(1.0,))
    assert read_integrity(EntryReader("load", []), {**fields, "idles_s": [-1]}) is None
    assert read_integrity(EntryReader("load", problems), {**fields, "sectors": 128}) is None
    assert "more than a write for each" in problems[0]


def test_an_unreadable_sector_hides_no_other(device: FileDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    run(device, steps=0)
    real = os.preadv

    def preadv(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if offset <= 300 * SECTOR < offset + len(buffers[0]):
            raise OSError(errno.EIO, "unrecovered read error")
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    found = list(read_region(device.descriptor, TAG, 256, 1024))
    assert [(first, count) for first, count, code, _ in found if code == "unreadable"] == [(300, 1)]
    assert sum(count for _, count, code, _ in found if code == "good") == 1023


TAG_sectors, OTHER = b"trial--1", b"trial--2"


def test_each_sector_of_a_write_tells_its_write_at_its_place() -> None:
    data = make_sectors(TAG_sectors, 100, 7, 3)
    found = [read_sector(data[at * SECTOR : (at + 1) * SECTOR], TAG_sectors, 100 + at) for at in range(3)]
    assert found == [SectorContent("good", 7)] * 3


def test_a_sector_in_another_place_of_the_same_write_is_misdirected() -> None:
    data = make_sectors(TAG_sectors, 100, 7, 3)
    assert read_sector(data[SECTOR : 2 * SECTOR], TAG_sectors, 100) == SectorContent("misdirected", 7)


def test_a_place_beyond_the_length_of_its_write_is_no_place_of_it() -> None:
    data = make_sectors(TAG_sectors, 100, 7, 3)
    assert read_sector(data[2 * SECTOR :], TAG_sectors, 103).code == "misdirected"


def test_a_sector_of_another_trial_is_foreign_and_zeros_are_zeros() -> None:
    assert read_sector(make_sectors(OTHER, 5, 1, 1), TAG_sectors, 5) == SectorContent("foreign", 0)
    assert read_sector(bytes(SECTOR), TAG_sectors, 5) == SectorContent("zero", 0)


@pytest.mark.parametrize("seam", [40, 100, 300, 499])
def test_a_sector_of_two_writes_is_torn_wherever_its_seam_is(seam: int) -> None:
    first, second = make_sectors(TAG_sectors, 5, 1, 1), make_sectors(TAG_sectors, 5, 2, 1)
    assert read_sector(second[:seam] + first[seam:], TAG_sectors, 5) == SectorContent("torn", 2)


def test_a_sector_with_noise_between_two_writes_is_corrupted_not_torn() -> None:
    first, second = make_sectors(TAG_sectors, 5, 1, 1), make_sectors(TAG_sectors, 5, 2, 1)
    assert read_sector(second[:100] + b"noise" + first[105:], TAG_sectors, 5).code == "corrupted"


@given(st.integers(0, SECTOR - 1), st.integers(1, 255), st.integers(1, 2**40), st.integers(0, 2**40))
def test_no_changed_byte_goes_unseen(at: int, flip: int, sequence: int, sector: int) -> None:
    data = bytearray(make_sectors(TAG_sectors, sector, sequence, 1))
    data[at] ^= flip
    assert read_sector(bytes(data), TAG_sectors, sector).code != "good"


def test_a_tag_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        make_sectors(b"short", 0, 1, 1)


@given(
    sequence=st.integers(1, 1 << 40),
    place=st.integers(0, 3),
    at=st.integers(0, SECTOR - 1),
    change=st.integers(1, 255),
)
def test_a_sector_is_of_a_write_as_long_as_nothing_of_it_is_another(
    sequence: int, place: int, at: int, change: int
) -> None:
    data = make_sectors(TAG_sectors, 100, sequence, 4)
    part = bytearray(data[place * SECTOR : (place + 1) * SECTOR])
    own = SectorContent("good", sequence)
    assert read_sector(part, TAG_sectors, 100 + place) == own
    assert read_sector(part, TAG_sectors, 101 + place) != own
    assert read_sector(part, OTHER, 100 + place) != own
    part[at] ^= change
    assert read_sector(part, TAG_sectors, 100 + place) != own


@pytest.mark.parametrize("chunk", [128, 48, 1])
def test_what_is_read_back_does_not_depend_on_the_size_of_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    path, sizes = tmp_path / "drive", []
    path.write_bytes(
        make_sectors(TAG_sectors, 0, 1, 100) + make_sectors(TAG_sectors, 100, 2, 50) + bytes(10 * SECTOR)
    )
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda *words: sizes.append(len(words[1][0])) or preadv(*words))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = list(read_region(descriptor, TAG_sectors, 0, 160, chunk))
    finally:
        os.close(descriptor)
    assert found == [(0, 100, "good", 1), (100, 50, "good", 2), (150, 10, "zero", 0)]
    assert max(sizes) == chunk * SECTOR
