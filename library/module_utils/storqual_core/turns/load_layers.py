# SPDX-License-Identifier: Apache-2.0
"""The kernel's own users on top of a held drive, as witnesses: file systems, dm-crypt, dm-integrity.

Each lies on a device of device-mapper that nobody else can open, in the part of the drive that a load may write, and
is gone when its load ends; the guard holds the drive before and after it. Mounts are this process' own.
"""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterator

from ..guard.hold import Hold
from ..host.sysfs import SysfsDrive
from ..kit.command import Runner
from ..kit.errors import MissingToolError, ToolError
from ..kit.machine import Machine
from ..tools import util_linux
from .drive_faults import layered
from .scsi_command import LackingError
from .sectors import SECTOR

MOST_BYTES = 384 << 20
_POINT = Path("/run/storqual/layer")
_FORMATTED = struct.Struct("<8s8xQ")
_MAGIC = b"integrt\0"
_KEY_BYTES, _PAGE = 64, 4096


@contextmanager
def layer_on(name: str, held: Hold, drive: SysfsDrive, machine: Machine, runner: Runner, size: int) -> Iterator[str]:
    """A device or a file of `size` bytes at least, through which the drive is used; it ends with the block.

    Raises LackingError where the kernel or a program has it not, ToolError where it fails on this drive, and
    GuardRefusalError when the drive cannot be taken again.
    """
    window = held.window(drive.id)
    first, sectors = window.offset // SECTOR, min(window.size, MOST_BYTES) // SECTOR // 8 * 8
    if sectors * SECTOR < size:
        raise LackingError(f"the drive has no room for {size >> 20} MiB")
    if name == "integrity":
        sectors = min(sectors, _format(held, drive, machine, runner, first))
    with ExitStack() as stack:
        table = {
            "crypt": f"crypt aes-xts-plain64 {os.urandom(_KEY_BYTES).hex()} 0 {drive.number} {first}",
            "integrity": _integrity(drive, first),
        }.get(name, f"linear {drive.number} {first}")
        is_device = name in ("crypt", "integrity")
        node = _enter(stack, held, drive, machine, runner, f"0 {sectors} {table}", is_device=is_device)
        yield node if is_device else stack.enter_context(_file_on(name, node, runner, size))


def _enter(
    stack: ExitStack, held: Hold, drive: SysfsDrive, machine: Machine, runner: Runner, table: str, *, is_device: bool
) -> str:
    try:
        return stack.enter_context(layered(held, drive, machine, runner, table, exclusive=is_device))[drive.id]
    except ToolError as problem:
        raise LackingError(str(problem)) from None


def _integrity(drive: SysfsDrive, first: int) -> str:
    # no tag comes from above: the kernel sums up each sector itself, and writes both by its journal
    return f"integrity {drive.number} {first} 4 J 2 journal_sectors:2048 internal_hash:crc32c"


def _format(held: Hold, drive: SysfsDrive, machine: Machine, runner: Runner, first: int) -> int:
    """Have dm-integrity format the drive, which it does where it finds zeros; how many sectors it has then."""
    _write(held.opened(drive.id), first, bytes(_PAGE))
    with ExitStack() as stack:
        _enter(stack, held, drive, machine, runner, f"0 8 {_integrity(drive, first)}", is_device=True)
    magic, sectors = _FORMATTED.unpack_from(_read(held.opened(drive.id), first))
    if magic != _MAGIC:
        raise ToolError("dm-integrity did not find its superblock again where it wrote it")
    return int(sectors) // 8 * 8


def _write(path: str, sector: int, data: bytes) -> None:
    with _direct(path) as descriptor, mmap.mmap(-1, _PAGE) as page:
        page[:] = data
        os.pwrite(descriptor, page, sector * SECTOR)
        os.fdatasync(descriptor)


def _read(path: str, sector: int) -> bytes:
    with _direct(path) as descriptor, mmap.mmap(-1, _PAGE) as page:
        os.preadv(descriptor, [page], sector * SECTOR)
        return bytes(page)


@contextmanager
def _direct(path: str) -> Iterator[int]:
    """The very device that is held, past the cache, which knows nothing of what device-mapper writes."""
    descriptor = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _file_on(kind: str, node: str, runner: Runner, size: int) -> Iterator[str]:
    """A file on a fresh file system. Raises LackingError, ToolError."""
    util_linux.make_mounts_private(runner)
    try:
        util_linux.make(runner, kind, node)
    except MissingToolError as problem:
        raise LackingError(str(problem)) from None
    _POINT.mkdir(mode=0o700, parents=True, exist_ok=True)
    util_linux.mount(runner, kind, node, str(_POINT))
    try:
        path = _POINT / "file"
        with path.open("wb") as file:
            file.truncate(size)
        yield str(path)
    finally:
        util_linux.unmount(runner, str(_POINT))
