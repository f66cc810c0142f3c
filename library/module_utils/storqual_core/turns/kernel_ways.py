# SPDX-License-Identifier: Apache-2.0
"""The ways of a data load into the kernel and back: O_DIRECT, the page cache, a mapping, io_uring, SCSI commands.

Each takes bytes and sectors of one drive and says nothing of their content. What a kernel or a drive does not have is
told by LackingError; whatever else does not end well is an OSError. A way that goes through the page cache ends when
what it wrote is on the drive, and begins with an empty cache.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import struct
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from .integrity_load import RWF_DSYNC
from .load_levels import QueueLimits, parts_of
from .load_memory import PAGE, Arena, Shaped
from .scsi_command import (
    UNIT_ATTENTION,
    CommandEnd,
    LackingError,
    MiscompareError,
    addresses_of,
    block_command,
    perform,
    send,
    unmap,
)
from .sectors import SECTOR

_BLKDISCARD, _BLKZEROOUT, _BLKFLSBUF = 0x1277, 0x127F, 0x1261
_ANY_LENGTH = 10
"""Every adapter takes commands of so many bytes."""
_CACHED = ("buffered", "range", "mmap")
_RANGE_WAIT = 1 | 2 | 4
_REFUSED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY)
_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Ring:
    """One io_uring with registered buffers, by its system calls: one I/O, or many at once, and wait for all.

    Layouts are those of <linux/io_uring.h>. With `polls` completions are asked for, and no interrupt awaited. Raises
    LackingError where the kernel has none or forbids it.
    """

    _SETUP, _ENTER, _REGISTER = 425, 426, 427
    _SQ_RING, _CQ_RING, _SQES = 0, 0x8000000, 0x10000000
    _READV, _WRITEV, _READ_FIXED, _WRITE_FIXED = 1, 2, 4, 5
    _GETEVENTS = 1
    _SQE = struct.Struct("<BBHiQQIIQH22x")

    def __init__(self, entries: int, buffers: Sequence[memoryview] = (), *, polls: bool = False) -> None:
        parameters = ctypes.create_string_buffer(120)
        struct.pack_into("<I", parameters, 8, 1 if polls else 0)
        try:
            self._ring = _checked(_LIBC.syscall(self._SETUP, entries, parameters))
        except OSError as problem:
            raise LackingError(f"the kernel has no io_uring for this program: {problem.strerror}") from None
        words = struct.unpack_from("<30I", parameters)
        self.entries = words[0]
        sq_off, cq_off = words[10:20], words[20:30]
        self._mask, self._tail_at, self._array_at = sq_off[2], sq_off[1], sq_off[6]
        self._cq_head, self._cq_tail, self._cq_mask, self._cqes = cq_off[0], cq_off[1], cq_off[2], cq_off[5]
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0x8000)
        self._sq = mmap.mmap(self._ring, self._array_at + words[0] * 4, flags=flags, offset=self._SQ_RING)
        self._cq = mmap.mmap(self._ring, self._cqes + words[1] * 16, flags=flags, offset=self._CQ_RING)
        self._sqes = mmap.mmap(self._ring, words[0] * 64, flags=flags, offset=self._SQES)
        self._registered: list[tuple[int, int]] = []
        if buffers:
            vectors = addresses_of(buffers)
            if _LIBC.syscall(self._REGISTER, self._ring, 0, vectors, len(buffers)) == 0:
                self._registered = [(vector.base, vector.length) for vector in vectors]

    def close(self) -> None:
        for view in (self._sq, self._cq, self._sqes):
            view.close()
        os.close(self._ring)

    def transfer(
        self, descriptor: int, requests: Sequence[tuple[Sequence[memoryview], int]], *, reads: bool
    ) -> list[int]:
        """Submit all of them (pieces, offset) at once and wait; what each came to: bytes, or an errno below 0."""
        keep: list[Any] = []
        results = [0] * len(requests)
        tail = self._word(self._sq, self._tail_at)
        mask = self._word(self._sq, self._mask)
        for number, (pieces, offset) in enumerate(requests):
            vectors = addresses_of(pieces)
            keep.append(vectors)
            index = (tail + number) & mask
            fixed = self._place_of(vectors) if len(pieces) == 1 else None
            if fixed is not None:
                code = self._READ_FIXED if reads else self._WRITE_FIXED
                entry = (code, 0, 0, descriptor, offset, vectors[0].base, vectors[0].length, 0, number, fixed)
            else:
                code = self._READV if reads else self._WRITEV
                entry = (code, 0, 0, descriptor, offset, ctypes.addressof(vectors), len(pieces), 0, number, 0)
            self._sqes[index * 64 : index * 64 + 64] = self._SQE.pack(*entry)
            struct.pack_into("<I", self._sq, self._array_at + index * 4, index)
        struct.pack_into("<I", self._sq, self._tail_at, (tail + len(requests)) & 0xFFFFFFFF)
        submitted = left = len(requests)
        while left:
            done = _LIBC.syscall(self._ENTER, self._ring, submitted, left, self._GETEVENTS, None, 0)
            if done < 0 and ctypes.get_errno() not in (errno.EINTR, errno.EAGAIN, errno.EBUSY):
                _checked(done)
            submitted -= max(0, done)
            left -= self._reap(results)
        return results

    def _reap(self, results: list[int]) -> int:
        head, tail = self._word(self._cq, self._cq_head), self._word(self._cq, self._cq_tail)
        mask, count = self._word(self._cq, self._cq_mask), 0
        while head != tail:
            number, result = struct.unpack_from("<Qi", self._cq, self._cqes + (head & mask) * 16)
            results[number] = result
            head, count = (head + 1) & 0xFFFFFFFF, count + 1
        struct.pack_into("<I", self._cq, self._cq_head, head)
        return count

    def _place_of(self, vectors: Any) -> int | None:  # noqa: ANN401 - an array of ctypes
        base, length = vectors[0].base, vectors[0].length
        for index, (first, size) in enumerate(self._registered):
            if first <= base and base + length <= first + size:
                return index
        return None

    @staticmethod
    def _word(memory: mmap.mmap, at: int) -> int:
        return int(struct.unpack_from("<I", memory, at)[0])


class KernelWays:
    """All ways to one drive. `direct` is a descriptor with O_DIRECT, whose hold lasts as long as this is used."""

    def __init__(self, direct: int, limits: QueueLimits, arena: Arena) -> None:
        self.direct, self.limits, self.arena = direct, limits, arena
        # the same device, by the open file and no name
        self._cached = os.open(f"/proc/self/fd/{direct}", os.O_RDWR | os.O_CLOEXEC)
        self._rings: dict[str, Ring] = {}
        self.ring_lacks = {} if limits.polls else {"polled": "the queue does not poll (io_poll)"}
        self._lengths: dict[int, str] = {}
        self._verify_lacks, self._verified = "", False
        self._open_ring("uring")
        self._open_ring("polled")

    def _open_ring(self, way: str) -> None:
        if way not in self.ring_lacks:
            try:
                self._rings[way] = Ring(8, self.arena.whole(), polls=way == "polled")
            except LackingError as problem:
                self.ring_lacks[way] = str(problem)

    def close(self) -> None:
        for ring in self._rings.values():
            ring.close()
        os.close(self._cached)

    def write(self, way: str, memory: Shaped, sector: int) -> None:
        """Write the pieces at a sector. Raises LackingError, OSError."""
        offset, pieces = sector * SECTOR, memory.pieces
        size = sum(map(len, pieces))
        self._drop_cache(way)
        try:
            if way in ("direct", "dsync"):
                _whole(os.pwritev(self.direct, pieces, offset, RWF_DSYNC if way == "dsync" else 0), size)
            elif way in ("buffered", "range"):
                _whole(os.pwritev(self._cached, pieces, offset), size)
                if way == "buffered":
                    os.fdatasync(self._cached)
                else:
                    _checked(
                        _LIBC.sync_file_range(
                            self._cached, ctypes.c_int64(offset), ctypes.c_int64(size), ctypes.c_uint(_RANGE_WAIT)
                        )
                    )
            elif way == "mmap":
                with self._mapped(offset, size) as (view, at, mapping):
                    view[at : at + size] = memory.data()
                    mapping.flush()
            elif way in ("uring", "polled"):
                self._by_ring(way, pieces, offset, size, reads=False)
            else:
                self._by_scsi(f"write{way[2:]}", memory, sector, reads=False)
        except OSError as problem:
            raise _lacking(problem, way) from None

    def read(self, way: str, memory: Shaped, sector: int) -> None:
        """Read into the pieces. Raises LackingError, MiscompareError (of `verify`), OSError."""
        offset, pieces = sector * SECTOR, memory.pieces
        size = sum(map(len, pieces))
        self._drop_cache(way)
        try:
            if way == "direct":
                _whole(os.preadv(self.direct, pieces, offset), size)
            elif way == "buffered":
                _whole(os.preadv(self._cached, pieces, offset), size)
            elif way == "mmap":
                with self._mapped(offset, size) as (view, at, _):
                    memory.put(bytes(view[at : at + size]))
            elif way in ("uring", "polled"):
                self._by_ring(way, pieces, offset, size, reads=True)
            elif way == "verify":
                self._verify(memory, sector)
            else:
                self._by_scsi(f"read{way[2:]}", memory, sector, reads=True)
        except OSError as problem:
            raise _lacking(problem, way) from None

    def _verify(self, memory: Shaped, sector: int) -> None:
        """Have the drive compare what the pieces hold, or, where it cannot, only read it. Raises as `read`."""
        self._scsi_only()
        if self._verify_lacks:
            raise LackingError(self._verify_lacks)
        try:
            self._send_verify(memory, sector)
        except OSError as problem:
            if self._verified:
                raise
            # nobody depends on it: an adapter that fails the first one lacks it
            self._verify_lacks = f"the first VERIFY failed: {problem.strerror}"
            raise LackingError(self._verify_lacks) from None
        self._verified = True

    def _send_verify(self, memory: Shaped, sector: int) -> None:
        try:
            self._by_scsi("verify16", memory, sector, reads=False, compares=True)
        except LackingError:
            block = self.limits.block
            first, blocks = sector // block, sum(map(len, memory.pieces)) // SECTOR // block
            name = "verify16" if blocks > 0xFFFF or first + blocks > 1 << 32 else "verify10"
            self._perform(block_command(name, first, blocks), reads=False)

    def command(self, name: str, memory: Shaped, sector: int, sectors: int) -> None:
        """A command that is seldom sent; `memory` is what it takes or gives. Raises as `read`."""
        block = self.limits.block
        try:
            if name in ("zeroout", "discard"):
                request = _BLKZEROOUT if name == "zeroout" else _BLKDISCARD
                fcntl.ioctl(self.direct, request, struct.pack("<QQ", sector * SECTOR, sectors * SECTOR))
                return
        except OSError as problem:
            raise _lacking(problem, name) from None
        self._scsi_only()
        if name.startswith("unmap"):
            extents = parts_of(sector, sectors, block) if name == "unmap_parts" else [(sector, sectors)]
            unmap(self.direct, [(first // block, length // block) for first, length in extents])
        else:
            blocks = sectors // block
            if name == "compare_and_write" and blocks > self.limits.compare:
                raise LackingError(f"the drive takes it for {self.limits.compare} blocks at most (page B0)")
            reads = name.startswith("read")
            self._perform(block_command(name, sector // block, blocks), memory.pieces, reads=reads)

    def finds_difference(self, memory: Shaped, sector: int) -> bool:
        """Whether a VERIFY finds that the drive has other data than the pieces; True where it compares nothing."""
        try:
            self._by_scsi("verify16", memory, sector, reads=False, compares=True)
        except (LackingError, MiscompareError):
            return True
        return False

    def read_beyond(self, name: str, first: int, blocks: int) -> CommandEnd:
        """How a read ends that the drive must refuse; in its blocks. Raises LackingError, OSError."""
        self._scsi_only()
        command = block_command(name, first, blocks)
        memory = [memoryview(bytearray(blocks * self.limits.block * SECTOR))]
        if len(command) > _ANY_LENGTH:
            # finds out first whether the adapter takes commands of that length
            self._perform(block_command(name, 0, blocks), memory, reads=True)
        try:
            end = send(self.direct, command, memory, reads=True)
            return send(self.direct, command, memory, reads=True) if end.key == UNIT_ATTENTION else end
        except OSError as problem:
            raise _lacking(problem, name) from None

    def _by_ring(self, way: str, pieces: Sequence[memoryview], offset: int, size: int, *, reads: bool) -> None:
        if way not in self._rings:
            raise LackingError(self.ring_lacks[way])
        (result,) = self._rings[way].transfer(self.direct, [(pieces, offset)], reads=reads)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        _whole(result, size)

    def _scsi_only(self) -> None:
        if not self.limits.scsi:
            raise LackingError("this is no SCSI drive")

    def _perform(self, command: bytes, pieces: Sequence[memoryview] = (), *, reads: bool) -> None:
        """Send it, where the adapter takes commands of that length: one that does not fails a read as well."""
        size = len(command)
        if size > _ANY_LENGTH and size not in self._lengths:
            block = memoryview(bytearray(self.limits.block * SECTOR))
            try:
                end = send(self.direct, block_command(f"read{size}", 0, 1), [block], reads=True)
                failed = bool(end.host) or (bool(end.status) and end.key != UNIT_ATTENTION)
                self._lengths[size] = (
                    f"a READ({size}) of the first block ended with {end.description}" if failed else ""
                )
            except OSError as problem:
                self._lengths[size] = f"the kernel does not send it: {problem.strerror}"
        if self._lengths.get(size):
            raise LackingError(self._lengths[size])
        perform(self.direct, command, pieces, reads=reads)

    def _by_scsi(self, name: str, memory: Shaped, sector: int, *, reads: bool, compares: bool = False) -> None:
        """One command, or several where the driver takes no transfer of that length."""
        self._scsi_only()
        block = self.limits.block
        # pages may lie apart, and a command is never split
        most = min(self.limits.hard * SECTOR, max(2, self.limits.segments - 2) * PAGE)
        for pieces, first, size in _cut(memory.pieces, sector, most):
            command = block_command(name, first // block, size // SECTOR // block, compares=compares)
            self._perform(command, pieces, reads=reads)

    def _drop_cache(self, way: str) -> None:
        """Have no page of the drive in the cache: SCSI commands pass it by, and pages are written whole."""
        if way in _CACHED:
            try:
                fcntl.ioctl(self._cached, _BLKFLSBUF)
            except OSError:
                # a file is no block device; its pages are given up as far as the kernel takes the advice
                os.posix_fadvise(self._cached, 0, 0, os.POSIX_FADV_DONTNEED)

    @contextmanager
    def _mapped(self, offset: int, size: int) -> Iterator[tuple[memoryview, int, mmap.mmap]]:
        """A part of the drive, mapped: the view, where the part begins in it, and the mapping."""
        begin = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        at = offset - begin
        with mmap.mmap(self._cached, at + size, offset=begin) as mapping, memoryview(mapping) as view:
            yield view, at, mapping


def _whole(done: int, size: int) -> None:
    if done != size:
        raise OSError(errno.EIO, f"{done} of {size} bytes were transferred")


def _lacking(problem: OSError, way: str) -> Exception:
    if problem.errno in _REFUSED:
        return LackingError(f"the kernel refuses it: {problem.strerror} ({way})")
    return problem


def _cut(pieces: Sequence[memoryview], sector: int, most: int) -> list[tuple[list[memoryview], int, int]]:
    """The pieces in transfers of at most `most` bytes: pieces, sector and bytes of each."""
    transfers: list[tuple[list[memoryview], int, int]] = [([], sector, 0)]
    for piece in pieces:
        left = piece
        while len(left):
            now, first, size = transfers[-1]
            if size == most:
                transfers.append(([], first + size // SECTOR, 0))
                continue
            part = left[: most - size]
            now.append(part)
            transfers[-1] = (now, first, size + len(part))
            left = left[len(part) :]
    return transfers
