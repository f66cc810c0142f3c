# SPDX-License-Identifier: Apache-2.0
"""util-linux: a part of a disk that only the kernel knows of (addpart, delpart), and mounts.

- Nothing is discarded: what a drive knows of its blocks is the preconditioning's business.
- ext4 would write its inode tables and journal in the background after the first mount, under the first launches
  (mke2fs(8), lazy_itable_init, lazy_journal_init), and takes blocks of 1 KiB on small drives; XFS takes 4 KiB.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import MissingToolError, ToolError

_COMMANDS: Mapping[str, Sequence[str]] = {
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
    "ext4": (*("mkfs.ext4", "-q", "-F", "-b", "4096"), *("-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0")),
}
_TIMEOUT_S = 900.0


def make(runner: Runner, kind: str, node: str) -> str:
    """Make a file system of this kind on `node`, whatever is there; the command. Raises ToolError, KeyError."""
    return runner([*_COMMANDS[kind], node], timeout=_TIMEOUT_S).expect().line


_SECTOR = 512
_CLONE_NEWNS = 0x00020000
_BUSY = "busy"
_TRY_AGAIN_S = 0.2


def add_part(runner: Runner, node: str, number: int, offset: int, size: int) -> None:
    """Tell the kernel of part `number` of a disk, from byte `offset` on; nothing is written. Raises ToolError."""
    runner(["addpart", node, str(number), str(offset // _SECTOR), str(size // _SECTOR)]).expect()


def delete_part(runner: Runner, node: str, number: int, *, wait_s: float = 20.0) -> None:
    """Have the kernel forget part `number` of a disk. Raises ToolError.

    udev looks into every new device for a moment, and a part that is open stays: what fails as busy is tried again.
    """
    deadline = time.monotonic() + wait_s
    while True:
        ended = runner(["delpart", node, str(number)])
        if ended.rc == 0 or _BUSY not in ended.stderr.lower() or time.monotonic() > deadline:
            ended.expect()
            return
        try:
            runner(["udevadm", "settle", "--timeout=10"])
        except MissingToolError:
            time.sleep(_TRY_AGAIN_S)


def make_mounts_private(runner: Runner) -> None:
    """Give this process a mount namespace of its own, which still follows the bench's. Raises ToolError."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise ToolError(f"file systems cannot be mounted here: no mount namespace of our own ({reason})")
    runner(["mount", "--make-rslave", "/"]).expect()


def mount(runner: Runner, kind: str, node: str, point: str) -> str:
    """Mount a file system for measuring: reads write no access times; the options. Raises ToolError."""
    options = "noatime,nodev,nosuid,noexec"
    runner(["mount", "-t", kind, "-o", options, node, point]).expect()
    return options


def unmount(runner: Runner, point: str) -> None:
    """Unmount what is mounted there; what is not on the drive yet is written first. Raises ToolError."""
    runner(["umount", point], timeout=900.0).expect()
