# SPDX-License-Identifier: Apache-2.0
"""The log of a drive's writes and flushes as QEMU's `blklogwrites` and the kernel's dm-log-writes write it.

Format (kernel, Documentation/admin-guide/device-mapper/log-writes.rst, drivers/md/dm-log-writes.c): a superblock in
the first sector, then entries, each a sector with its header and after it the data of a write. All little-endian, all
in sectors of the log's own size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from storqual_core.kit.errors import ToolError

MAGIC = 0x6A736677736872
VERSION = 1
_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")
FLUSH, FUA, DISCARD, MARK, METADATA = 1, 2, 4, 8, 16
_FLAGS = FLUSH | FUA | DISCARD | MARK | METADATA


@dataclass(frozen=True)
class Entry:
    """One entry: sector and length in sectors of the log, flags, where its data begin in the log file (bytes)."""

    number: int
    sector: int
    sectors: int
    flags: int
    offset: int


@dataclass(frozen=True)
class WriteLog:
    """An open log: the size of its sectors in bytes, and all its entries in the order of their completion."""

    path: Path
    sector_bytes: int
    entries: tuple[Entry, ...]

    def data(self, entry: Entry) -> bytes:
        """What a write wrote; nothing for a flush or a discard."""
        if entry.flags & (DISCARD | MARK):
            return b""
        with self.path.open("rb") as file:
            file.seek(entry.offset)
            return file.read(entry.sectors * self.sector_bytes)


def read_log(path: Path) -> WriteLog:
    """Read a log. Raises ToolError for another format, an unknown flag, or entries that are cut off."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SUPER.size)
        if len(head) < _SUPER.size:
            raise ToolError(f"{path}: {len(head)} bytes are no log of writes")
        magic, version, count, sector_bytes = _SUPER.unpack(head)
        if magic != MAGIC or version != VERSION:
            raise ToolError(f"{path}: magic {magic:#x} and version {version} are those of no log of writes")
        if sector_bytes < 512 or sector_bytes & (sector_bytes - 1):
            raise ToolError(f"{path}: sectors of {sector_bytes} bytes are none")
        entries = []
        offset = sector_bytes
        for number in range(count):
            file.seek(offset)
            fields = file.read(_ENTRY.size)
            if len(fields) < _ENTRY.size:
                raise ToolError(f"{path}: entry {number} of {count} is cut off")
            sector, sectors, flags, data_len = _ENTRY.unpack(fields)
            if flags & ~_FLAGS:
                raise ToolError(f"{path}: entry {number} has flags {flags:#x}, of which some are not known")
            offset += sector_bytes
            entries.append(Entry(number, sector, sectors, flags, offset))
            offset += -(-data_len // sector_bytes) * sector_bytes if flags & MARK else 0
            offset += 0 if flags & (DISCARD | MARK) else sectors * sector_bytes
            if offset > size:
                raise ToolError(f"{path}: the data of entry {number} of {count} are cut off")
    return WriteLog(path, sector_bytes, tuple(entries))
