# SPDX-License-Identifier: Apache-2.0
"""The integrity load: workers that write tagged sectors and flush, and tell each acknowledgement as it comes.

A sector is 512 bytes: a head (magic, tag of the trial, first sector and length of the write, its sequence, place of
this sector in it), a body that follows from the sequence, and a tail with the sequence again and a CRC-32 of all
before. So a sector that was read tells by itself whether it is whole and where it belongs; whether it is the one that
should be there is for the list of acknowledged writes to say, which is kept off the bench. A region is read back in
runs of sectors that are alike.

Each worker has a part of the region of its own and one write under way at most, so at any place writes follow each
other and the last acknowledged one is what must be there. Times are nanoseconds of the bench's monotonic clock.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import struct
import threading
import time
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Protocol

from .entries import EntryReader

SECTOR = 512
TAG_BYTES = 8

_MAGIC = b"storqual"
_HEAD = struct.Struct("<8s8sQIIQ")
_TAIL = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_CRC_AT = SECTOR - _CRC.size
_BODY = SECTOR - _HEAD.size - _TAIL.size
_SPREAD = 0x9E3779B97F4A7C15

GOOD, MISDIRECTED, TORN, CORRUPTED, FOREIGN, ZERO = "good", "misdirected", "torn", "corrupted", "foreign", "zero"
CODES = (GOOD, MISDIRECTED, TORN, CORRUPTED, FOREIGN, ZERO)
"""What a sector can be: whole and in its place; whole and elsewhere; of two writes of this trial; damaged; of no
write of this trial; zeros."""


@dataclass(frozen=True)
class Found:
    """What one sector is, and the sequence of the write it is of (0 where it is of none that can be told)."""

    code: str
    sequence: int


def _body(sequence: int) -> bytes:
    word = (sequence * _SPREAD & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    return (word * (_BODY // 8 + 1))[:_BODY]


def make_sectors(tag: bytes, sector: int, sequence: int, length: int) -> bytes:
    """The bytes of a write of `length` sectors at `sector`. Raises ValueError for a tag that is not 8 bytes long."""
    if len(tag) != TAG_BYTES:
        raise ValueError(f"a tag has {TAG_BYTES} bytes, {tag!r} has {len(tag)}")
    body, parts = _body(sequence), []
    last = struct.pack("<Q", sequence)
    for place in range(length):
        inner = _HEAD.pack(_MAGIC, tag, sector, length, place, sequence) + body + last
        parts.append(inner + struct.pack("<I", zlib.crc32(inner)))
    return b"".join(parts)


def is_of_write(data: memoryview, tag: bytes, sector: int, sequence: int) -> bool:
    """Whether the 512 bytes found at `sector` are whole and of the write `sequence`.

    It is what a read under load mostly finds, and told in half the time that `read_sector` takes to say what it is.
    """
    magic, found_tag, first, length, place, found = _HEAD.unpack_from(data)
    return (
        found == sequence
        and magic == _MAGIC
        and found_tag == tag
        and first + place == sector
        and place < length
        and (zlib.crc32(data[:_CRC_AT]),) == _CRC.unpack_from(data, _CRC_AT)
    )


def read_sector(data: bytes, tag: bytes, sector: int) -> Found:
    """What the 512 bytes found at `sector` are."""
    magic, found_tag, first, length, place, sequence = _HEAD.unpack_from(data)
    last, crc = _TAIL.unpack_from(data, SECTOR - _TAIL.size)
    if zlib.crc32(data[:-4]) == crc and magic == _MAGIC:
        if found_tag != tag:
            return Found(FOREIGN, 0)
        if place < length and first + place == sector:
            return Found(GOOD, sequence)
        return Found(MISDIRECTED, sequence)
    if not any(data):
        return Found(ZERO, 0)
    if magic == _MAGIC and found_tag == tag and first + place == sector and _is_of_two(data, sequence, last):
        return Found(TORN, sequence)
    # what an earlier trial left damaged is no content of this one, but nobody can tell: it counts as damage
    return Found(CORRUPTED, sequence if magic == _MAGIC and found_tag == tag else 0)


def _is_of_two(data: bytes, first: int, last: int) -> bool:
    """Whether the sector begins as one write's and ends as another's, with one seam in its body."""
    if first == last:
        return False
    body, begin, end = data[_HEAD.size : _HEAD.size + _BODY], _body(first), _body(last)
    seam = next((at for at in range(_BODY) if body[at] != begin[at]), _BODY)
    return body[seam:] == end[seam:]


MOST_SECTORS = 128
"""So many sectors a read has at most."""

UNREADABLE = "unreadable"
"""A sector that the drive did not give out at all."""


def read_region(
    descriptor: int, tag: bytes, first: int, sectors: int, chunk: int = MOST_SECTORS
) -> Iterator[tuple[int, int, str, int]]:
    """Runs of alike sectors: first sector, how many, what they are, the sequence of the write they are of.

    It is read in commands of `chunk` sectors.
    A chunk that cannot be read is read again sector by sector, so that one bad sector hides no other.
    """
    buffer = mmap.mmap(-1, MOST_SECTORS * SECTOR)
    run: tuple[int, int, str, int] | None = None
    for at in range(first, first + sectors, chunk):
        length = min(chunk, first + sectors - at)
        for sector, found in _chunk(descriptor, buffer, tag, at, length):
            if run is not None and run[2:] == (found.code, found.sequence):
                run = (run[0], run[1] + 1, *run[2:])
                continue
            if run is not None:
                yield run
            run = (sector, 1, found.code, found.sequence)
    if run is not None:
        yield run


def _chunk(descriptor: int, buffer: mmap.mmap, tag: bytes, at: int, length: int) -> Iterator[tuple[int, Found]]:
    try:
        whole = os.preadv(descriptor, [memoryview(buffer)[: length * SECTOR]], at * SECTOR) == length * SECTOR
    except OSError:
        whole = False
    for place in range(length):
        readable = whole
        if not whole:
            try:
                view = memoryview(buffer)[place * SECTOR : (place + 1) * SECTOR]
                readable = os.preadv(descriptor, [view], (at + place) * SECTOR) == SECTOR
            except OSError:
                readable = False
        data = bytes(buffer[place * SECTOR : (place + 1) * SECTOR])
        yield at + place, read_sector(data, tag, at + place) if readable else Found(UNREADABLE, 0)


FILL_SECTORS = 128
_PAUSE_S = 0.02
_RWF_DSYNC = 2
_UNKNOWN = 0
"""In place of the sequence of a write: what is there is not known."""
_NONE = -1
"""In place of the sequence of a write: what is there is of none."""

WRITE, WRITE_THROUGH, FLUSH, READ = "w", "d", "f", "r"
"""Kinds of I/O in a line of the stream: write, write through the cache (FUA), flush, read that is compared."""
OTHER_DATA: Mapping[str, int] = {code: 4096 + at for at, code in enumerate(CODES)}
"""In place of an errno, which is below 4096: a read that gave other data than what was last acknowledged, by what the
first wrong sector is; `good` is another write's of this place."""


@dataclass(frozen=True)
class IntegrityRequest:
    """One load: region in sectors, workers, sizes in sectors, shares of I/Os from 0 to 1, writes between flushes."""

    first: int
    sectors: int
    workers: int
    sizes: tuple[int, ...]
    read_share: float
    through_share: float
    flush_every: int
    seed: int


_MOST = 1 << 62
_SHARES = ("read_share", "through_share")


def read_integrity(reader: EntryReader, entry: object) -> IntegrityRequest | None:
    """The `load` of a trial; None where the reader's problems say what is wrong with it."""
    fields = reader.keys(entry, IntegrityRequest.__annotations__)
    if not fields:
        return None
    least = {"first": 0, "sectors": 1, "workers": 1, "flush_every": 1, "seed": 0}
    counts: dict[str, Any] = {name: reader.whole(fields, name, low, _MOST) for name, low in least.items()}
    shares: dict[str, Any] = {name: reader.number(fields, name, least=0.0) for name in _SHARES}
    sizes = fields["sizes"]
    if not isinstance(sizes, list) or not sizes or not all(type(size) is int and size > 0 for size in sizes):
        reader.complain("sizes", sizes, "a list of sectors, one or more for each I/O")
    elif counts["sectors"] // counts["workers"] < max(*sizes, FILL_SECTORS):
        reader.complain("sectors", counts["sectors"], f"more than a write for each of {counts['workers']} workers")
    if max(shares.values()) > 1:
        reader.complain("read_share, through_share", tuple(shares.values()), "shares from 0 to 1")
    return IntegrityRequest(**counts, **shares, sizes=tuple(sizes)) if reader.sound else None


class OpenDrive(Protocol):
    """An open drive that can go away and come back."""

    def use(self) -> int:
        """A descriptor that stays open until `done`; waits while the drive is being opened again."""

    def done(self, problem: int) -> None:
        """Give the descriptor back, with the errno that the I/O ended with (0 for none)."""


Tell = Callable[[str, int, int, int, int, int, int], None]
"""Takes kind, sequence, sector, length, start, end and errno of a finished I/O."""


class Worker:
    """One worker: its part of the region, its sequences, what it last saw acknowledged where."""

    def __init__(self, ask: IntegrityRequest, number: int, tag: bytes, device: OpenDrive, tell: Tell) -> None:
        self._ask, self._number, self._tag, self._device, self._tell = ask, number, tag, device, tell
        share = ask.sectors // ask.workers
        self._first, self._share = ask.first + number * share, share
        self._random = random.Random(f"{ask.seed}/{number}")  # noqa: S311 - a drawn load, no secret
        self._count = 0
        self._since_flush = 0
        self._known = [_UNKNOWN] * share
        self._buffer = mmap.mmap(-1, max(*ask.sizes, FILL_SECTORS) * SECTOR)

    def fill(self) -> int:
        """Write all of the part once, so that nothing of an earlier trial is left; the errno of the first failure."""
        for sector in range(self._first, self._first + self._share, FILL_SECTORS):
            length = min(FILL_SECTORS, self._first + self._share - sector)
            problem = self._write(sector, length, through=False)
            if problem:
                return problem
        return self.flush()

    def step(self) -> None:
        length = self._random.choice(self._ask.sizes)
        sector = self._first + self._random.randrange(0, self._share - length + 1)
        kind = self._random.random()
        if kind < self._ask.read_share:
            problem = self._read(sector, length)
        else:
            problem = self._write(sector, length, through=kind > 1.0 - self._ask.through_share)
            self._since_flush += 1
            if self._since_flush >= self._ask.flush_every:
                problem = self.flush() or problem
        if problem:
            time.sleep(_PAUSE_S)

    def flush(self) -> int:
        self._since_flush = 0
        return self._timed(FLUSH, 0, 0, 0, os.fdatasync)

    def _sequence(self) -> int:
        """The next of this worker's numbers; no two workers share one, and 0 is none."""
        self._count += 1
        return self._count * self._ask.workers + self._number

    def _write(self, sector: int, length: int, *, through: bool) -> int:
        sequence, size = self._sequence(), length * SECTOR
        self._buffer[:size] = make_sectors(self._tag, sector, sequence, length)
        at = sector - self._first
        # what an I/O that fails leaves behind is not known until the next write
        self._known[at : at + length] = [_UNKNOWN] * length
        view = memoryview(self._buffer)[:size]

        def write(descriptor: int) -> None:
            flags = _RWF_DSYNC if through else 0
            if os.pwritev(descriptor, [view], sector * SECTOR, flags) != size:
                raise OSError(errno.EIO, "short write")

        problem = self._timed(WRITE_THROUGH if through else WRITE, sequence, sector, length, write)
        if not problem:
            self._known[at : at + length] = [sequence] * length
        return problem

    def _read(self, sector: int, length: int) -> int:
        """Read and compare with what this worker last saw acknowledged; a difference is told by `OTHER_DATA`."""
        size = length * SECTOR
        view = memoryview(self._buffer)[:size]

        def read(descriptor: int) -> None:
            if os.preadv(descriptor, [view], sector * SECTOR) != size:
                raise OSError(errno.EIO, "short read")
            at = sector - self._first
            for place, known in enumerate(self._known[at : at + length]):
                part = view[place * SECTOR : (place + 1) * SECTOR]
                if known != _UNKNOWN and not is_of_write(part, self._tag, sector + place, known):
                    found = read_sector(bytes(part), self._tag, sector + place)
                    raise OSError(OTHER_DATA[found.code], "other data than what was acknowledged")

        return self._timed(READ, 0, sector, length, read)

    def doubtful(self, first: int, count: int, sequence: int) -> list[int]:
        """Sectors of a run whose last write that ended well is known, and another one than `sequence`."""
        begin, end = max(first, self._first), min(first + count, self._first + self._share)
        known = self._known[begin - self._first : max(begin, end) - self._first]
        if known.count(sequence) == len(known):
            return []
        return [begin + at for at, last in enumerate(known) if last not in (_UNKNOWN, sequence)]

    def _timed(self, kind: str, sequence: int, sector: int, length: int, work: Callable[[int], None]) -> int:
        problem = 0
        descriptor = self._device.use()
        begin = time.monotonic_ns()
        try:
            work(descriptor)
        except OSError as failure:
            problem = failure.errno or errno.EIO
        end = time.monotonic_ns()
        self._device.done(problem)
        self._tell(kind, sequence, sector, length, begin, end, problem)
        return problem


class LoadWorkers:
    """All workers of a load, each in a thread of its own."""

    def __init__(self, ask: IntegrityRequest, tag: bytes, device: OpenDrive, tell: Tell) -> None:
        self._workers = [Worker(ask, number, tag, device, tell) for number in range(ask.workers)]
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def fill(self) -> int:
        """Fill the region; the errno of the first failure, 0 for none."""
        return next((problem for worker in self._workers for problem in [worker.fill()] if problem), 0)

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), daemon=True, name=f"load-{number}")
            for number, worker in enumerate(self._workers)
        ]
        for thread in self._threads:
            thread.start()

    def doubtful(self, first: int, count: int, code: str, sequence: int) -> list[int]:
        """Sectors of a run that read otherwise than they should: a reason to read them once more, and no verdict."""
        should = sequence if code == GOOD else _NONE
        return [sector for worker in self._workers for sector in worker.doubtful(first, count, should)]

    def _run(self, worker: Worker) -> None:
        while not self._stop.is_set():
            worker.step()

    def stop(self, limit_s: float) -> bool:
        """End after the I/Os under way; False when one of them has not ended within `limit_s` seconds."""
        self._stop.set()
        end = time.monotonic() + limit_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
