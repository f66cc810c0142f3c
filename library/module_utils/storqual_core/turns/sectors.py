# SPDX-License-Identifier: Apache-2.0
"""The content of tagged sectors: each tells its write, its place in it, and whether every byte of it is right.

A sector is 512 bytes: a head (magic, tag of the trial, first sector of the write, its length, the place of this
sector in it, its sequence), a body, and a tail with the sequence and the place again. The body is cut from a pool of
pseudo-random bytes that follows from the tag, at an offset that follows from the head: no two sectors of a MiB are
alike, bytes that moved are seen wherever they moved, and a whole write is made and compared as one.

A write may repeat its first sectors (`period`), as one page that is sent many times does, or WRITE SAME.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterator

SECTOR = 512
TAG_BYTES = 8

_MAGIC = b"storqual"
_HEAD = struct.Struct("<8s8sQIIQ")
_TAIL = struct.Struct("<QI")
_TAIL_AT = SECTOR - _TAIL.size
_PERIOD_SHIFT = 24
_LENGTH_MASK = (1 << _PERIOD_SHIFT) - 1
_POOL = 1 << 20
_ZEROS = bytes(SECTOR)
_SPREADS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_LEAST_CUT = 8
_FEW = 16
"""So many sectors are faster made one by one."""

GOOD, MISDIRECTED, TORN, CORRUPTED, FOREIGN, ZERO = "good", "misdirected", "torn", "corrupted", "foreign", "zero"
CODES = (GOOD, MISDIRECTED, TORN, CORRUPTED, FOREIGN, ZERO)
"""What a sector can be: whole and in its place; whole and elsewhere; of two writes of this trial; damaged; of no
write of this trial; zeros."""
UNREADABLE = "unreadable"
"""A sector that the drive did not give out at all."""


@dataclass(frozen=True)
class SectorContent:
    """What one sector is, and the sequence of the write it is of (0 where it is of none that can be told)."""

    code: str
    sequence: int


@dataclass(frozen=True)
class TaggedWrite:
    """One write: sectors of 512 bytes; `period` is after how many its content comes again, 0 for never."""

    sector: int
    sequence: int
    length: int
    period: int = 0


@lru_cache(maxsize=8)
def _pool(tag: bytes) -> bytes:
    """Pseudo-random bytes of a tag, three times over, so that any part of a write is one slice."""
    return hashlib.shake_128(_MAGIC + tag).digest(_POOL) * 3


_PLACES = array("I", range(1 << 14)).tobytes()


def _base(write: TaggedWrite) -> int:
    """Where in its pool the body of a write begins: no two fields of its head may change without it."""
    length = write.length | write.period << _PERIOD_SHIFT
    mixed = write.sequence * _SPREADS[0] + write.sector * _SPREADS[1] + length * _SPREADS[2]
    return (mixed & 0xFFFFFFFFFFFFFFFF) >> 40


def make_part(tag: bytes, write: TaggedWrite, place: int, count: int) -> bytearray:
    """The bytes of `count` sectors of a write, from the one at `place` on."""
    if not write.period:
        return _make(tag, write, place, count)
    first = place % write.period
    times = (first + count - 1) // write.period + 1
    return (_make(tag, write, 0, write.period) * times)[first * SECTOR : (first + count) * SECTOR]


def _make(tag: bytes, write: TaggedWrite, place: int, count: int) -> bytearray:
    """The same, of a write that repeats nothing."""
    field = write.length | write.period << _PERIOD_SHIFT
    pool, base = _pool(tag), _base(write)
    if count <= _FEW:
        data = bytearray(count * SECTOR)
        for at in range(count):
            begin, now = at * SECTOR, place + at
            offset = (base + now * SECTOR) % _POOL
            data[begin : begin + SECTOR] = pool[offset : offset + SECTOR]
            _HEAD.pack_into(data, begin, _MAGIC, tag, write.sector, field, now, write.sequence)
            _TAIL.pack_into(data, begin + _TAIL_AT, write.sequence, now)
        return data
    data = bytearray()
    while len(data) < count * SECTOR:
        offset = (base + place * SECTOR + len(data)) % _POOL
        data += pool[offset : offset + count * SECTOR - len(data)]
    head = _HEAD.pack(_MAGIC, tag, write.sector, field, 0, write.sequence)
    tail = _TAIL.pack(write.sequence, 0)
    places = _PLACES[place * 4 : (place + count) * 4]
    if len(places) < count * 4:
        places = array("I", range(place, place + count)).tobytes()
    for at, byte in enumerate(head):
        if not 28 <= at < 32:
            data[at::SECTOR] = bytes((byte,)) * count
    for at, byte in enumerate(tail[:8]):
        data[_TAIL_AT + at :: SECTOR] = bytes((byte,)) * count
    for at in range(4):
        data[28 + at :: SECTOR] = data[_TAIL_AT + 8 + at :: SECTOR] = places[at::4]
    return data


def make_sectors(tag: bytes, sector: int, sequence: int, length: int, period: int = 0) -> bytearray:
    """The bytes of a write of `length` sectors at `sector`. Raises ValueError for a tag that is not 8 bytes long."""
    if len(tag) != TAG_BYTES:
        raise ValueError(f"a tag has {TAG_BYTES} bytes, {tag!r} has {len(tag)}")
    return make_part(tag, TaggedWrite(sector, sequence, length, period), 0, length)


def _write_of(data: bytes | memoryview) -> tuple[bytes, TaggedWrite, int] | None:
    """Tag, write and place of a sector by its head, whatever else is in it; None where it has no head."""
    magic, tag, first, length, place, sequence = _HEAD.unpack_from(data)
    period, length = length >> _PERIOD_SHIFT, length & _LENGTH_MASK
    if magic != _MAGIC or place >= (period or length) or period > length:
        return None
    return tag, TaggedWrite(first, sequence, length, period), place


def _lies_at(write: TaggedWrite, place: int, sector: int) -> bool:
    """Whether the part of a write that calls itself its `place` was found where it belongs."""
    into = sector - write.sector
    return 0 <= into < write.length and (into % write.period if write.period else into) == place


def read_sector(data: bytes | memoryview, tag: bytes, sector: int) -> SectorContent:
    """What the 512 bytes found at `sector` are."""
    view = bytes(data)
    head = _write_of(view)
    if head is None:
        return SectorContent(ZERO if view == _ZEROS else CORRUPTED, 0)
    found_tag, write, place = head
    if bytes(make_part(found_tag, write, place, 1)) == view:
        if found_tag != tag:
            return SectorContent(FOREIGN, 0)
        return SectorContent(GOOD if _lies_at(write, place, sector) else MISDIRECTED, write.sequence)
    if found_tag != tag:
        # what an earlier trial left damaged is no content of this one, but nobody can tell: it counts as damage
        return SectorContent(CORRUPTED, 0)
    last, _ = _TAIL.unpack_from(view, _TAIL_AT)
    torn = write.sector + place == sector and last != write.sequence and _is_of_two(view, tag, write, place)
    return SectorContent(TORN if torn else CORRUPTED, write.sequence)


def _is_of_two(data: bytes, tag: bytes, write: TaggedWrite, place: int) -> bool:
    """Whether the sector begins as one write's and ends as another's, with one seam in its body."""
    begin = make_part(tag, write, place, 1)
    seam = next(at for at in range(SECTOR) if data[at] != begin[at])
    body = max(seam, _HEAD.size)
    end = data[body:_TAIL_AT]
    # of the other write only the sequence is known: its body is one cut of the pool, wherever that begins
    return len(end) < _LEAST_CUT or end in _pool(tag)


def alike(data: memoryview, tag: bytes, sector: int) -> tuple[SectorContent, int]:
    """What the first sector of `data` is that was found at `sector`, and how many after it are of the same write."""
    head = _write_of(data)
    count = len(data) // SECTOR
    if head is not None and head[0] == tag:
        _, write, place = head
        into = sector - write.sector
        most = min(count, write.length - into) if _lies_at(write, place, sector) else 0
        if most > 0:
            # views are compared byte by byte, copies as memory is
            good = _equal_sectors(bytes(data[: most * SECTOR]), bytes(make_part(tag, write, into, most)), most)
            if good:
                return SectorContent(GOOD, write.sequence), good
    elif head is None and data[:SECTOR] == _ZEROS:
        most = 1
        while most < count and data[most * SECTOR : (most + 1) * SECTOR] == _ZEROS:
            most += 1
        return SectorContent(ZERO, 0), most
    return read_sector(data[:SECTOR], tag, sector), 1


def _equal_sectors(data: bytes, other: bytes, most: int) -> int:
    """How many sectors both begin with alike."""
    if data == other:
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if data[low * SECTOR : middle * SECTOR] == other[low * SECTOR : middle * SECTOR]:
            low = middle
        else:
            high = middle
    return low


def runs_of(data: memoryview, tag: bytes, sector: int) -> Iterator[tuple[int, int, str, int]]:
    """What was read at `sector` as runs of alike sectors: first, how many, what they are, sequence of their write."""
    at, count = 0, len(data) // SECTOR
    while at < count:
        content, length = alike(data[at * SECTOR :], tag, sector + at)
        yield sector + at, length, content.code, content.sequence
        at += length


MOST_SECTORS = 128
"""So many sectors a read of `read_region` has at most, unless it is told otherwise."""


def read_region(
    descriptor: int, tag: bytes, first: int, sectors: int, chunk: int = MOST_SECTORS, block: int = 1
) -> Iterator[tuple[int, int, str, int]]:
    """Runs of alike sectors: first sector, how many, what they are, the sequence of the write they are of.

    It is read in commands of `chunk` sectors; `block` are the sectors of the drive's own block.
    A chunk that cannot be read is read again block by block, so that one bad block hides no other.
    """
    buffer = memoryview(mmap.mmap(-1, chunk * SECTOR))
    run: tuple[int, int, str, int] | None = None
    for at in range(first, first + sectors, chunk):
        length = min(chunk, first + sectors - at)
        for part in _chunk(descriptor, buffer, tag, at, length, block):
            if run is not None and run[2:] == part[2:] and run[0] + run[1] == part[0]:
                run = (run[0], run[1] + part[1], *run[2:])
                continue
            if run is not None:
                yield run
            run = part
    if run is not None:
        yield run


def _chunk(
    descriptor: int, buffer: memoryview, tag: bytes, at: int, length: int, block: int
) -> Iterator[tuple[int, int, str, int]]:
    try:
        whole = os.preadv(descriptor, [buffer[: length * SECTOR]], at * SECTOR) == length * SECTOR
    except OSError:
        whole = False
    if whole:
        yield from runs_of(buffer[: length * SECTOR], tag, at)
        return
    for place in range(0, length, block):
        view = buffer[place * SECTOR : (place + block) * SECTOR]
        try:
            readable = os.preadv(descriptor, [view], (at + place) * SECTOR) == len(view)
        except OSError:
            readable = False
        if readable:
            yield from runs_of(view, tag, at + place)
        else:
            yield at + place, block, UNREADABLE, 0
