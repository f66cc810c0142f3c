# SPDX-License-Identifier: Apache-2.0
"""Many commands aborted beside the load: reads with a timeout that a busy drive cannot keep.

The kernel ends timeouts once a second, so each second all reads under way are aborted at once. I/Os of the load have
their own timeout and none of them is aborted; what a driver does to them meanwhile is what is tried. Each read goes
through the drive's sg node, which takes a timeout for one command and tells how it ended as the SCSI midlayer says.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass

from ..kit.errors import ToolError
from .aim import Aim, Tell

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


_READERS = 16
_READ_BYTES = 128 << 10
_TIMEOUT_MS = 1
_SPREAD = 64
_LEAST = 8
"""So many commands must have been aborted."""


class _Readers:
    """Reads from several threads until their end; `ended` counts them by host status."""

    def __init__(self, descriptor: int, first: int, blocks: int, size: int) -> None:
        self._asked = (descriptor, first, blocks, size)
        self._turn = threading.Lock()
        self.ended: Counter[int] = Counter()
        self.problem = ""

    def read(self, index: int, end: float) -> None:
        """Read one place after the other until `end` of the monotonic clock, or until reads cannot be sent."""
        descriptor, first, blocks, size = self._asked
        turn = index
        while time.monotonic() < end:
            try:
                done = read_blocks(descriptor, first + turn % _SPREAD * blocks, blocks, size, _TIMEOUT_MS)
            except OSError as problem:
                self.problem = problem.strerror or str(problem)
                return
            with self._turn:
                self.ended[done.host] += 1
            turn += _READERS


def abort_many(aim: Aim, tell: Tell) -> None:
    """Raises ToolError when fewer were aborted than make a storm, or a read does not come back."""
    machine, drive = aim.machine, aim.drive
    size = machine.number(f"/sys/block/{drive.name}/queue/logical_block_size") or 512
    place = f"/sys/block/{drive.name}/device/iotmo_cnt"
    descriptor = _open(aim)
    before, end = int(machine.text(place) or "0", 0), time.monotonic() + aim.away_s
    readers = _Readers(descriptor, aim.spare[0] // size, _READ_BYTES // size, size)
    threads = [threading.Thread(target=readers.read, args=(index, end), daemon=True) for index in range(_READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end + aim.limit_s - time.monotonic()))
    left = sum(thread.is_alive() for thread in threads)
    if left:
        # the descriptor stays open: a read under way still has it
        raise ToolError(f"{left} of {_READERS} reads had not come back {aim.limit_s:g} s after the last was sent")
    os.close(descriptor)
    timed_out, counted = readers.ended[TIMED_OUT], int(machine.text(place) or "0", 0) - before
    told = f"{timed_out} of {sum(readers.ended.values())} reads with a timeout of {_TIMEOUT_MS} ms were aborted"
    if min(timed_out, counted) < _LEAST:
        why = f"; {readers.problem}" if readers.problem else ""
        raise ToolError(f"{told}, the kernel counted {counted} timeouts, {_LEAST} make a storm{why}")
    tell("aborted", f"{told}, the kernel counted {counted} timeouts of drive {drive.id}")


def _open(aim: Aim) -> int:
    """The drive's sg node. Raises ToolError when it is another device by now."""
    path = aim.drive.sg
    if not path:
        raise ToolError(f"drive {aim.drive.id} has no sg node: modprobe sg")
    try:
        descriptor = os.open(aim.machine.path(path), os.O_RDWR | os.O_CLOEXEC)
    except OSError as problem:
        raise ToolError(f"{path} cannot be opened: {problem.strerror}") from problem
    found, known = (
        aim.machine.opened(descriptor),
        aim.machine.text(f"/sys/block/{aim.drive.name}/device/scsi_generic/{path[5:]}/dev"),
    )
    if found != known:
        os.close(descriptor)
        raise ToolError(f"{path} is device {found} now, {known or 'none'} was aimed at")
    return descriptor
