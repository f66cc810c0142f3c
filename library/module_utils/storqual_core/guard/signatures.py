# SPDX-License-Identifier: Apache-2.0
"""What is on a drive: known formats, storqual's stamps, unknown data at the ends; and what a guard makes of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Collection

from ..kit.command import Runner, run
from ..kit.errors import ToolError
from ..kit.machine import visible
from ..tools.blkid import Signature, probe
from .stamps import AREA, STAMP, read_stamp

END = 8 << 20
"""Bytes at each end in which anything that is not zero counts as data."""

_CHUNK = 256 << 10


@dataclass(frozen=True)
class Content:
    """Formats found, and the state of both ends: `empty`, `stamp`, `foreign` (another drive's stamp) or `data`.

    `stamps` are the ends whose first or last 4 KiB are this drive's stamp, whatever lies beside it.
    """

    signatures: tuple[Signature, ...]
    start: str
    end: str
    problem: str = ""
    stamps: tuple[str, ...] = ()

    @property
    def stamped(self) -> bool:
        """Both stamps are there and nothing is beside them."""
        return (self.start, self.end) == ("stamp", "stamp")


def read_content(path: str, drive: str, size: int, *, runner: Runner = run) -> Content:
    """Look at a device or file of `size` bytes that should be the drive `drive`; never raises, problems are told.

    A stamped drive costs two reads of 1 MiB and the probe; any other drive two reads of 8 MiB.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as problem:
        return Content((), "data", "data", f"cannot be opened: {problem.strerror}")
    try:
        # what another host or an sg command wrote is not in this kernel's cache
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        # one command at a time: reading ahead gains nothing here, and old adapters take it badly
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        start, end, stamps = _ends(descriptor, drive, size)
        return Content(tuple(probe(descriptor, path, runner=runner)), start, end, stamps=stamps)
    except OSError as problem:
        return Content((), "data", "data", f"cannot be read: {problem.strerror}")
    except ToolError as problem:
        return Content((), "data", "data", f"cannot be examined: {problem}")
    finally:
        os.close(descriptor)


def _ends(descriptor: int, drive: str, size: int) -> tuple[str, str, tuple[str, ...]]:
    if size < 2 * AREA:
        return _state_of(_read(descriptor, 0, size)), "empty", ()
    head, tail = _read(descriptor, 0, AREA), _read(descriptor, size - AREA, AREA)
    start = read_stamp(head[:STAMP], drive, size, end="start")
    end = read_stamp(tail[-STAMP:], drive, size, end="end")
    stamps = tuple(name for name, state in (("start", start), ("end", end)) if state == "stamp")
    if start in ("stamp", "empty") and any_set(head[STAMP:]):
        start = "data"
    if end in ("stamp", "empty") and any_set(tail[:-STAMP]):
        end = "data"
    if (start, end) == ("stamp", "stamp"):
        return start, end, stamps
    # without both stamps, everything else in the ends counts
    reach = min(END, size // 2)
    if start in ("stamp", "empty") and any_set(_read(descriptor, AREA, reach - AREA)):
        start = "data"
    if end in ("stamp", "empty") and any_set(_read(descriptor, size - reach, reach - AREA)):
        end = "data"
    return start, end, stamps


def _state_of(data: bytes) -> str:
    return "data" if any_set(data) else "empty"


def any_set(data: bytes) -> bool:
    """Whether any byte is not zero: one comparison in C, where a loop would take seconds on an emulated bench."""
    return data != bytes(len(data))


def _read(descriptor: int, offset: int, length: int) -> bytes:
    """Exactly `length` bytes. Raises OSError when the device ends before."""
    chunks = []
    while length > 0:
        chunk = os.pread(descriptor, min(length, _CHUNK), offset)
        if not chunk:
            raise OSError(5, "it ends before its stated size")
        chunks.append(chunk)
        offset += len(chunk)
        length -= len(chunk)
    return b"".join(chunks)


_USAGES = {
    "filesystem": "holds a file system",
    "raid": "is a member of a RAID, pool or volume group",
    "crypto": "holds encrypted data",
    "partition table": "has a partition table",
}


def objection(content: Content, *, made: Collection[str] = (), restamping: bool = False, lent: bool = False) -> str:
    """Why what is on a drive forbids to overwrite it, as the rest of a sentence; `` when it may be overwritten.

    `made` are the UUIDs of what storqual itself made on this drive; `restamping` says that storqual was interrupted
    while it cleared this very drive, so that one stamp is enough; `lent` that a program to which it was given for
    overwriting never ended, so that data of no known format is that program's.
    """
    if content.problem:
        return content.problem
    foreign = [signature for signature in content.signatures if signature.uuid not in made or not signature.uuid]
    if foreign:
        return "; ".join(_words(signature) for signature in foreign)
    # a mirror copies the stamp at one member's end to the others
    if "foreign" in (content.start, content.end) and not content.signatures:
        return "carries the scratch stamp of another drive, so it is a copy of that drive"
    own = bool(content.signatures) or (restamping and bool(content.stamps)) or lent
    if own or (content.start in ("stamp", "empty") and content.end in ("stamp", "empty")):
        return ""
    where = [name for name, state in (("first", content.start), ("last", content.end)) if state == "data"]
    return f"holds data of an unknown kind in its {' and its '.join(where)} 8 MiB"


def _words(signature: Signature) -> str:
    label = f" labelled {visible(signature.label)}" if signature.label else ""
    return f"{_USAGES.get(signature.usage, 'holds data')} ({visible(signature.kind)}{label})"
