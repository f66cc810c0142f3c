# SPDX-License-Identifier: Apache-2.0
"""mkfs.xfs and mkfs.ext4: a fresh file system on a node, with nothing left for later.

- Nothing is discarded: what a drive knows of its blocks is the preconditioning's business.
- ext4 would write its inode tables and journal in the background after the first mount, under the first launches
  (mke2fs(8), lazy_itable_init, lazy_journal_init), and takes blocks of 1 KiB on small drives; XFS takes 4 KiB.
"""

from __future__ import annotations

from typing import Mapping, Sequence

from ..kit.command import Runner

_COMMANDS: Mapping[str, Sequence[str]] = {
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
    "ext4": (
        *("mkfs.ext4", "-q", "-F", "-b", "4096"),
        *("-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
    ),
}
_TIMEOUT_S = 900.0


def make(runner: Runner, kind: str, node: str) -> str:
    """Make a file system of this kind on `node`, whatever is there; the command. Raises ToolError, KeyError."""
    return runner([*_COMMANDS[kind], node], timeout=_TIMEOUT_S).expect().line
