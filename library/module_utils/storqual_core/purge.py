# SPDX-License-Identifier: Apache-2.0
"""Purge: bring a drive to the state in which its media know of no data. Only for drives that the guard holds."""

from __future__ import annotations

from pathlib import Path

from .block_targets import Place
from .command import Runner
from .errors import ToolError
from .fio_job import FioTarget

__all__ = ["discard", "format_drive"]

_DISCARD_S = 3600.0
_FORMAT_S = 24 * 3600.0
_UNMAP_BLOCKS = 65536
_UNKNOWN_OPTION = ("unrecognized option", "invalid option", "unknown option")


def discard(target: FioTarget, place: Place, runner: Runner) -> str:
    """Discard what fio may touch of a drive; how it was done, or why it cannot be. Raises ToolError.

    `blkdiscard` where the kernel discards, else UNMAP by `sg_unmap` where the drive says that it knows it. The
    guard's own areas at both ends are left as they are.
    """
    if target.is_file or place.device is None:
        return "not purged: a file has no media of its own"
    if _number(place.device / "queue" / "discard_max_bytes"):
        argv = ["blkdiscard", f"--offset={target.offset}", f"--length={target.size}"]
        # we hold the node exclusively ourselves; releases before 2.36 do not ask for that, and know no --force
        ended = runner([*argv, "--force", target.node], timeout=_DISCARD_S)
        if ended.rc != 0 and any(words in ended.stderr for words in _UNKNOWN_OPTION):
            ended = runner([*argv, target.node], timeout=_DISCARD_S)
        ended.expect()
        return "discarded by blkdiscard"
    if _unmaps(target.node, runner):
        block = _number(place.device / "queue" / "logical_block_size") or 512
        first, last = target.offset // block, (target.offset + target.size) // block - 1
        span = f"--all={first},{_UNMAP_BLOCKS},{last}"
        runner(["sg_unmap", "--force", span, target.node], timeout=_DISCARD_S).expect()
        return "unmapped by sg_unmap"
    return "not purged: neither kernel nor drive discards"


def format_drive(node: str, runner: Runner) -> str:
    """Format a whole drive, with the block size that it has; how. Raises ToolError."""
    if "nvme" in Path(node).name:
        runner(["nvme", "format", node, "--ses=1", "--force"], timeout=_FORMAT_S).expect()
        return "formatted by nvme format, user data erased"
    # without --quick it counts down for a person who could stop it
    runner(["sg_format", "--format", "--quick", node], timeout=_FORMAT_S).expect()
    return "formatted by sg_format"


def _unmaps(node: str, runner: Runner) -> bool:
    """Whether the drive's logical block provisioning page says that it knows UNMAP; no when it has no such page."""
    try:
        ended = runner(["sg_vpd", "--page=lbpv", node], timeout=60.0)
    except ToolError:
        return False
    lines = (line.strip().lower() for line in ended.stdout.splitlines())
    return ended.rc == 0 and any(line.startswith("unmap command supported (lbpu): 1") for line in lines)


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return 0
