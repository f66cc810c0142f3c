# SPDX-License-Identifier: Apache-2.0
"""Read a region back: what each of its sectors is, told in runs of sectors that are alike."""

from __future__ import annotations

import mmap
import os
from typing import Iterator

from .sectors import SECTOR, Found, read_sector

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
