# SPDX-License-Identifier: Apache-2.0
"""SCSI commands through SG_IO: a command block, its data in one or many pieces of memory, and how it ended.

Command blocks are laid out as SBC-4 has them. A drive that does not know a command, or a field of it, says so in its
sense data (ILLEGAL REQUEST): that is `LackingError`, and no failure.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
from dataclasses import dataclass
from typing import Sequence

_SG_IO = 0x2285
_TO_DEVICE, _FROM_DEVICE, _NO_DATA = -2, -3, -1
_SENSE_BYTES = 32
_TIMEOUT_MS = 60000
ILLEGAL_REQUEST, _MISCOMPARE, UNIT_ATTENTION = 0x5, 0xE, 0x6
CHECK_CONDITION = 2

TIMED_OUT = 0x03
"""DID_TIME_OUT, the host status of a command that was aborted because its timeout had passed."""


class LackingError(Exception):
    """A drive, a driver or a kernel that does not know what was asked for."""


class MiscompareError(Exception):
    """What is on the drive is not what was sent to be compared with it."""


class _Header(ctypes.Structure):
    """`struct sg_io_hdr` of <scsi/sg.h>."""

    _fields_ = (
        ("interface_id", ctypes.c_int),
        ("dxfer_direction", ctypes.c_int),
        ("cmd_len", ctypes.c_ubyte),
        ("mx_sb_len", ctypes.c_ubyte),
        ("iovec_count", ctypes.c_ushort),
        ("dxfer_len", ctypes.c_uint),
        ("dxferp", ctypes.c_void_p),
        ("cmdp", ctypes.c_void_p),
        ("sbp", ctypes.c_void_p),
        ("timeout", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("pack_id", ctypes.c_int),
        ("usr_ptr", ctypes.c_void_p),
        ("status", ctypes.c_ubyte),
        ("masked_status", ctypes.c_ubyte),
        ("msg_status", ctypes.c_ubyte),
        ("sb_len_wr", ctypes.c_ubyte),
        ("host_status", ctypes.c_ushort),
        ("driver_status", ctypes.c_ushort),
        ("resid", ctypes.c_int),
        ("duration", ctypes.c_uint),
        ("info", ctypes.c_uint),
    )


class IoVector(ctypes.Structure):
    """`struct iovec`, which `struct sg_iovec` is too: address and length of one piece of memory."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended: status of drive and host, how long it took (seconds), sense key and code, bytes left."""

    status: int
    host: int
    seconds: float
    key: int = 0
    code: int = 0
    residual: int = 0

    @property
    def description(self) -> str:
        return f"status {self.status:#x}, host status {self.host:#x}, sense {self.key:x}/{self.code:02x}"


def addresses_of(pieces: Sequence[memoryview]) -> ctypes.Array[IoVector]:
    """The pieces as the kernel takes them; they must be writable, and live as long as the call."""
    vectors = (IoVector * len(pieces))()
    for vector, piece in zip(vectors, pieces):
        vector.base = ctypes.addressof(ctypes.c_char.from_buffer(piece))
        vector.length = len(piece)
    return vectors


def send(
    descriptor: int, command: bytes, pieces: Sequence[memoryview] = (), *, reads: bool, timeout_ms: int = _TIMEOUT_MS
) -> CommandEnd:
    """Send one command with its data. Raises OSError where it cannot be sent."""
    vectors = addresses_of(pieces)
    words, sense = ctypes.create_string_buffer(command, len(command)), ctypes.create_string_buffer(_SENSE_BYTES)
    header = _Header(
        interface_id=ord("S"),
        dxfer_direction=_NO_DATA if not pieces else _FROM_DEVICE if reads else _TO_DEVICE,
        cmd_len=len(command),
        mx_sb_len=_SENSE_BYTES,
        iovec_count=len(pieces) if len(pieces) > 1 else 0,
        dxfer_len=sum(map(len, pieces)),
        cmdp=ctypes.addressof(words),
        sbp=ctypes.addressof(sense),
        timeout=timeout_ms,
    )
    if pieces:
        header.dxferp = ctypes.addressof(vectors) if len(pieces) > 1 else vectors[0].base
    fcntl.ioctl(descriptor, _SG_IO, header)
    key, code = _sense(sense.raw[: header.sb_len_wr])
    return CommandEnd(header.status, header.host_status, header.duration / 1000, key, code, header.resid)


def _sense(data: bytes) -> tuple[int, int]:
    """Key and additional code of sense data of either format."""
    if len(data) < 4:
        return 0, 0
    if data[0] & 0x7F >= 0x72:
        return data[1] & 0xF, data[2]
    return data[2] & 0xF, data[12] if len(data) > 12 else 0


def perform(descriptor: int, command: bytes, pieces: Sequence[memoryview] = (), *, reads: bool) -> None:
    """Send a command that must end well; one that only delivers the news of a reset is sent again.

    Raises LackingError, MiscompareError, and OSError for any other end, a residual among them.
    """
    try:
        end = send(descriptor, command, pieces, reads=reads)
        if end.key == UNIT_ATTENTION:
            end = send(descriptor, command, pieces, reads=reads)
    except OSError as problem:
        if problem.errno in (errno.ENOTTY, errno.EINVAL, errno.ENOMEM, errno.EPERM, errno.EOPNOTSUPP):
            raise LackingError(f"the kernel does not send it: {problem.strerror}") from None
        raise
    if end.key == ILLEGAL_REQUEST and end.status == CHECK_CONDITION:
        raise LackingError(f"the drive does not know it (sense 5/{end.code:02x})")
    if end.key == _MISCOMPARE:
        raise MiscompareError
    if end.status or end.host or end.residual:
        raise OSError(errno.EIO, f"{end.description}, residual {end.residual}")


def read_blocks(descriptor: int, first: int, blocks: int, size: int, timeout_ms: int) -> CommandEnd:
    """READ(10) of `blocks` blocks of `size` bytes, with that timeout. Raises OSError."""
    data = memoryview(bytearray(blocks * size))
    return send(descriptor, block_command("read10", first, blocks), [data], reads=True, timeout_ms=timeout_ms)


_CODES = {
    "read6": 0x08,
    "read10": 0x28,
    "read12": 0xA8,
    "read16": 0x88,
    "write6": 0x0A,
    "write10": 0x2A,
    "write12": 0xAA,
    "write16": 0x8A,
    "write_verify10": 0x2E,
    "write_verify16": 0x8E,
    "verify10": 0x2F,
    "verify16": 0x8F,
    "write_same10": 0x41,
    "write_same16": 0x93,
    "compare_and_write": 0x89,
}
_BYTCHK, _FUA = 0x02, 0x08
_LONGEST = {6: (1 << 21, 256), 10: (1 << 32, 0xFFFF), 12: (1 << 32, 1 << 32), 16: (1 << 64, 1 << 32)}


def block_command(name: str, first: int, blocks: int, *, compares: bool = False, through: bool = False) -> bytes:
    """The command block, `through` with FUA; `first` and `blocks` in the drive's blocks.

    Raises LackingError where it has no room.
    """
    code = _CODES[name]
    size = {0x00: 6, 0x20: 10, 0x40: 10, 0x80: 16, 0xA0: 12}[code & 0xE0]
    reach, most = _LONGEST[size]
    if name == "compare_and_write":
        most = 255
    if first + blocks > reach or blocks > most:
        raise LackingError(f"its {size}-byte command block takes {most} blocks and reaches block {reach} at most")
    flags = (_BYTCHK if compares else 0) | (_FUA if through else 0)
    if size == 6:
        return bytes((code, *first.to_bytes(3, "big"), blocks % 256, 0))
    if size == 10:
        return bytes((code, flags, *first.to_bytes(4, "big"), 0, *blocks.to_bytes(2, "big"), 0))
    if size == 12:
        return bytes((code, flags, *first.to_bytes(4, "big"), *blocks.to_bytes(4, "big"), 0, 0))
    return bytes((code, flags, *first.to_bytes(8, "big"), *blocks.to_bytes(4, "big"), 0, 0))


def unmap(descriptor: int, extents: Sequence[tuple[int, int]]) -> None:
    """UNMAP of ranges, each its first block and how many. Raises what `perform` does."""
    described = b"".join(first.to_bytes(8, "big") + blocks.to_bytes(4, "big") + bytes(4) for first, blocks in extents)
    head = (len(described) + 6).to_bytes(2, "big") + len(described).to_bytes(2, "big") + bytes(4)
    data = bytearray(head + described)
    perform(descriptor, bytes((0x42, *bytes(6), *len(data).to_bytes(2, "big"), 0)), [memoryview(data)], reads=False)
