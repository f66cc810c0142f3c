# SPDX-License-Identifier: Apache-2.0
"""Mounts that only this process and its children see, and that end with them, however they end.

A mount in the bench's own namespace would outlive a program that is killed, and its drive would be in use then.
"""

from __future__ import annotations

import ctypes
import os

from .command import Runner
from .errors import ToolError

__all__ = ["make_mounts_private"]

_CLONE_NEWNS = 0x00020000


def make_mounts_private(runner: Runner) -> None:
    """Give this process a mount namespace of its own, which still follows the bench's. Raises ToolError."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise ToolError(f"file systems cannot be mounted here: no mount namespace of our own ({reason})")
    runner(["mount", "--make-rslave", "/"]).expect()
