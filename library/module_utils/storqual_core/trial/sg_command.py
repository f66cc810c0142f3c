# SPDX-License-Identifier: Apache-2.0
"""One read through a drive's sg node, with a timeout of its own: how it ended, as the SCSI midlayer says."""

from __future__ import annotations

import ctypes
import fcntl
from dataclasses import dataclass

_SG_IO = 0x2285
_READ_10 = 0x28
_FROM_DEVICE = -3
_SENSE_BYTES = 32
_COMMAND_BYTES = 10

TIMED_OUT = 0x03
"""DID_TIME_OUT, the host status of a command that was aborted because its timeout had passed."""


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


@dataclass(frozen=True)
class Ended:
    """How a command ended: status of the drive and of the host, and how long it took (seconds)."""

    status: int
    host: int
    seconds: float


def read_blocks(descriptor: int, first: int, blocks: int, size: int, timeout_ms: int) -> Ended:
    """READ(10) of `blocks` blocks of `size` bytes, with that timeout. Raises OSError."""
    command = bytes((_READ_10, 0)) + first.to_bytes(4, "big") + b"\0" + blocks.to_bytes(2, "big") + b"\0"
    data = ctypes.create_string_buffer(blocks * size)
    words = ctypes.create_string_buffer(command, _COMMAND_BYTES)
    sense = ctypes.create_string_buffer(_SENSE_BYTES)
    header = _Header(
        interface_id=ord("S"),
        dxfer_direction=_FROM_DEVICE,
        cmd_len=_COMMAND_BYTES,
        mx_sb_len=_SENSE_BYTES,
        dxfer_len=len(data),
        dxferp=ctypes.addressof(data),
        cmdp=ctypes.addressof(words),
        sbp=ctypes.addressof(sense),
        timeout=timeout_ms,
    )
    fcntl.ioctl(descriptor, _SG_IO, header)
    return Ended(header.status, header.host_status, header.duration / 1000)
