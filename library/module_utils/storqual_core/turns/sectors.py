# SPDX-License-Identifier: Apache-2.0
"""Tagged sectors: each says of which trial, where, by which write and as which part of it it was written.

A sector is 512 bytes: a head (magic, tag of the trial, first sector and length of the write, its sequence, place of
this sector in it), a body that follows from the sequence, and a tail with the sequence again and a CRC-32 of all
before. So a sector that was read tells by itself whether it is whole and where it belongs; whether it is the one that
should be there is for the list of acknowledged writes to say, which is kept off the bench. A region is read back in
runs of sectors that are alike.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from dataclasses import dataclass
from typing import Iterator

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
