# SPDX-License-Identifier: Apache-2.0
"""makedumpfile: dumps of a crashed kernel as a stream ("flattened"), and the kernel log that lies in one."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Callable

from ..kit.command import Runner
from ..kit.errors import ToolError

PROGRAM = "makedumpfile"
_SIGNATURE = b"makedumpfile\0"
_HEAD = 4096
_RECORD = struct.Struct(">qq")
_END = -1
_MOST_BYTES = 1 << 30
_READ_S = 300.0


def unflatten(read: Callable[[int, int], bytes], path: Path) -> int:
    """Write the dump that lies as a stream behind `read(offset, length)` to a file; the bytes of the stream.

    Raises ToolError when there is no dump, or not all of one.
    """
    if not read(0, _HEAD).startswith(_SIGNATURE):
        raise ToolError("no dump of makedumpfile lies there")
    at = _HEAD
    with path.open("wb") as file:
        while True:
            offset, length = _RECORD.unpack(_whole(read(at, _RECORD.size), _RECORD.size, at))
            at += _RECORD.size
            if offset == _END:
                return at
            if offset < 0 or not 0 < length <= _MOST_BYTES:
                raise ToolError(f"the dump is not whole: no record at byte {at}")
            file.seek(offset)
            file.write(_whole(read(at, length), length, at))
            at += length


def _whole(data: bytes, length: int, at: int) -> bytes:
    if len(data) != length:
        raise ToolError(f"the dump is not whole: {len(data)} of {length} bytes at byte {at}")
    return data


def read_kernel_log(runner: Runner, dump: Path) -> str:
    """The kernel log in a dump. Raises ToolError."""
    log = dump.with_name(dump.name + ".log")
    runner([PROGRAM, "--dump-dmesg", str(dump), str(log)], timeout=_READ_S).expect()
    return log.read_text(encoding="utf-8", errors="replace")
