# SPDX-License-Identifier: Apache-2.0
"""A part of a drive that only the kernel knows of: the window that fio has of it, as a device for a file system.

No partition table is written, so the guard's stamps at both ends stay, and at every moment, a power cut included, the
drive is recognised as scratch. The part goes when its block ends, with the next boot, or with the restore.
"""

from __future__ import annotations

from ..guard.stamps import AREA
from ..host.block_stack import node_of, partitions
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..kit.results import Provisioned
from ..tools import util_linux

MEMORY = "file_system"
"""In saved.json, `file_system@<drive>`: null, because a claimed drive has no part when it is found."""
_PART = 1
_SECTOR = 512


def make_part(runner: Runner, machine: Machine, disk: str, size: int) -> str:
    """Make the part of the drive with kernel name `disk`, `size` bytes from the guard's area on; its kernel name.

    Raises ToolError where the kernel makes none (a device-mapper device has no parts).
    """
    drop_part(runner, machine, disk)
    util_linux.add_part(runner, _node(machine, disk), _PART, AREA, size)
    names = partitions(machine, disk)
    if len(names) != 1:
        raise ToolError(f"{disk} shows parts {', '.join(names) or 'none'} after one was made, expected one")
    return names[0]


def drop_part(runner: Runner, machine: Machine, disk: str) -> list[str]:
    """Have the kernel forget the part that was made here, where there is one; its name. The guard holds the drive.

    Raises ToolError for a part that is somebody else's: nothing is done then.
    """
    names = partitions(machine, disk)
    for name in names:
        number, start = (machine.number(f"/sys/class/block/{name}/{what}") for what in ("partition", "start"))
        if (number, start) != (_PART, AREA // _SECTOR):
            raise ToolError(f"part {name} of {disk} was not made by storqual: have it forgotten yourself (delpart)")
    for _ in names:
        util_linux.delete_part(runner, _node(machine, disk), _PART)
    return names


def restore_part(runner: Runner, machine: Machine, drive: str, disk: str, *, check: bool) -> Provisioned:
    """Take away what a block that was killed left of its part; the record of it. Raises ToolError."""
    before = ", ".join(partitions(machine, disk)) or None
    if not check:
        drop_part(runner, machine, disk)
    now = ", ".join(partitions(machine, disk)) or None
    return Provisioned(MEMORY, None, before, now, drive=drive, changed=before != now)


def _node(machine: Machine, disk: str) -> str:
    node = node_of(machine, disk)
    if not node:
        raise ToolError(f"the device node of {disk} is missing or is another device: repair /dev (udev)")
    return node
