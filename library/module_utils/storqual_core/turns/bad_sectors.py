# SPDX-License-Identifier: Apache-2.0
"""A few sectors of a drive that cannot be read: marked by a command of the drive's own, read, and written anew.

They lie beside the load's region, within the guard's window: what was acknowledged to the load stays readable, so
none of its I/Os may fail. They are written before they are marked, which also puts right what was left by a bench
that went down in the middle of an earlier trial.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from dataclasses import dataclass
from typing import Callable

from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..tools import nvme, sg3
from .aim import Aim, Tell

_LEAST_BYTES = 4096
_AGAIN_S = 0.05
_UNREADABLE = (errno.EIO, errno.ENODATA)
"""What a read of a sector ends with that the drive does not give out: ENODATA where the kernel knows that it is the
medium, EIO where the driver does not tell it."""


class Sectors:
    """A device node, opened past the page cache. Raises ToolError when it is another device than that of `number`.

    The guard holds the drive meanwhile: the load of the same trial does.
    """

    def __init__(self, machine: Machine, node: str, number: str = "") -> None:
        try:
            self._descriptor = os.open(machine.path(node), os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError as problem:
            raise ToolError(f"{node} cannot be opened: {problem.strerror}") from problem
        found = machine.opened(self._descriptor) if number else ""
        if found != number:
            self.close()
            raise ToolError(f"{node} is device {found} now, {number} was aimed at")

    @property
    def path(self) -> str:
        """Leads to the very device that is open, whatever its node leads to by now."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def read(self, first: int, size: int) -> int:
        """Read `size` bytes at byte `first`; the errno, 0 for none."""
        buffer = mmap.mmap(-1, size)
        try:
            return 0 if os.preadv(self._descriptor, [buffer], first) == size else errno.EIO
        except OSError as problem:
            return problem.errno or errno.EIO

    def write(self, first: int, size: int) -> int:
        """Write zeros; the errno, 0 for none."""
        try:
            return 0 if os.pwritev(self._descriptor, [mmap.mmap(-1, size)], first) == size else errno.EIO
        except OSError as problem:
            return problem.errno or errno.EIO

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)


@dataclass(frozen=True)
class Spot:
    """What is marked: first byte, length, and bytes of a logical block. As much behind it is read beside it."""

    first: int
    size: int
    block: int


Mark = Callable[[Aim, Sectors, Spot], None]


def mark_by_scsi(aim: Aim, sectors: Sectors, spot: Spot) -> None:
    """WRITE LONG with WR_UNCOR, block by block. Raises ToolError."""
    for at in range(spot.first, spot.first + spot.size, spot.block):
        sg3.mark_uncorrectable(aim.runner, sectors.path, at // spot.block)


def mark_by_nvme(aim: Aim, _sectors: Sectors, spot: Spot) -> None:
    """Write Uncorrectable of all blocks at once. Raises ToolError."""
    nvme.write_uncorrectable(aim.runner, aim.drive.node, spot.first // spot.block, spot.size // spot.block)


def find_spot(aim: Aim) -> Spot:
    """Whole physical blocks beside the load's region. Raises ToolError when the guard's window ends before them."""
    queue = f"/sys/block/{aim.drive.name}/queue"
    block = aim.machine.number(f"{queue}/logical_block_size") or 0
    physical = aim.machine.number(f"{queue}/physical_block_size") or 0
    if block < 512:
        raise ToolError(f"{queue}/logical_block_size does not say how long a block of {aim.drive.id} is")
    # a drive with longer physical blocks may mark a whole one
    size = max(_LEAST_BYTES, block, physical)
    begin, length = aim.spare
    first = -(-begin // size) * size
    if first + 2 * size > begin + length:
        raise ToolError(
            f"drive {aim.drive.id} has {length} bytes beside the load that may be written, too few to mark"
        )
    return Spot(first, size, block)


def reads_fail(mark: Mark) -> Callable[[Aim, Tell], None]:
    """The way that marks a spot by `mark`: reads of it fail while it lasts, and no read beside it."""

    def way(aim: Aim, tell: Tell) -> None:
        spot = find_spot(aim)
        sectors = Sectors(aim.machine, aim.drive.node, aim.drive.number)
        try:
            _write(aim, sectors, spot.first, 2 * spot.size)
            _expect_readable(aim, sectors, spot.first, 2 * spot.size, "before anything was marked")
            try:
                mark(aim, sectors, spot)
                tell("marked", f"the drive took {spot.size} bytes at byte {spot.first} for unreadable")
                _read_on(aim, sectors, spot, tell)
            finally:
                _write(aim, sectors, spot.first, spot.size)
            _expect_readable(aim, sectors, spot.first, spot.size, "after they were written anew")
            tell("mended", f"{spot.size} bytes at byte {spot.first} were written anew and can be read")
        finally:
            sectors.close()

    return way


def _read_on(aim: Aim, sectors: Sectors, spot: Spot, tell: Tell) -> None:
    """Read what is marked and what lies beside it, in turns. Raises ToolError when either ends as it must not."""
    end, failed = time.monotonic() + aim.away_s, 0
    while not failed or time.monotonic() < end:
        problem = sectors.read(spot.first, spot.size)
        if problem not in _UNREADABLE:
            how = f"failed with {errno.errorcode.get(problem, problem)}" if problem else "gave data"
            raise ToolError(f"read {failed + 1} of the marked bytes at byte {spot.first} {how}, no medium error")
        if not failed:
            tell("unreadable", f"a read at byte {spot.first} failed with {errno.errorcode[problem]}")
        failed += 1
        _expect_readable(aim, sectors, spot.first + spot.size, spot.size, "beside the marked ones")
        time.sleep(_AGAIN_S)


def _expect_readable(aim: Aim, sectors: Sectors, first: int, size: int, which: str) -> None:
    problem = sectors.read(first, size)
    if problem:
        name = errno.errorcode.get(problem, problem)
        raise ToolError(f"drive {aim.drive.id}: {size} bytes at byte {first}, {which}, cannot be read: {name}")


def _write(aim: Aim, sectors: Sectors, first: int, size: int) -> None:
    problem = sectors.write(first, size)
    if problem:
        name = errno.errorcode.get(problem, problem)
        raise ToolError(
            f"drive {aim.drive.id}: {size} bytes at byte {first} cannot be written: {name}; they may be unreadable"
        )
