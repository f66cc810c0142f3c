# SPDX-License-Identifier: Apache-2.0
"""Files on file systems as targets, of drives or of volumes: where they can be, and what making them costs."""

from collections.abc import Iterable, Sequence
from typing import Any

from storqual.inputs.inventory import Bench, Drive
from storqual.inputs.suite import Profile
from storqual.plan.budget import WRITTEN_BYTES_S
from storqual.plan.points import Pattern
from storqual.plan.volumes import NO_VOLUMES, ON_VOLUME, Layout
from storqual_core.guard.signatures import AREA
from storqual_core.turns.batch_file import FILE_SYSTEMS, FileSystemAsk, part_bytes

_MIB = 1 << 20
_MAKING_S = 8.0
"""mkfs, mount, unmount, and the guard's look at the drive around each."""


def ask_of(pattern: Pattern, profile: Profile) -> FileSystemAsk | None:
    """The file system that a pattern works on; None when it works on drives or volumes."""
    kind = str(pattern.values.get("target")).removesuffix(ON_VOLUME)
    return FileSystemAsk(kind, -(-profile.file // _MIB) * _MIB) if kind in FILE_SYSTEMS else None


def to_batch(ask: FileSystemAsk | None) -> dict[str, Any]:
    """What a launch of a batch file says of it; nothing where there is none."""
    return {} if ask is None else {"file_system": {"kind": ask.kind, "file_bytes": ask.file_bytes}}


def no_room(bench: Bench, drives: Sequence[Drive], ask: FileSystemAsk | None, layout: Layout = NO_VOLUMES) -> str:
    """Why these drives cannot carry a file system with its file; empty when they can, or need not.

    Without drives it is the volumes of `layout` that are to carry it.
    """
    if ask is None:
        return ""
    if bench.kind == "local":
        return f"{ask.kind} needs a drive, and the targets of this bench are files"
    size = part_bytes(ask.file_bytes)
    if not drives and 0 < layout.room < size + AREA:
        return f"{ask.kind} with a file of {ask.file_bytes // _MIB} MiB takes {size // _MIB} MiB of a volume"
    for drive in drives:
        if drive.size is None or drive.size < size + 2 * AREA:
            return (
                f"{ask.kind} with a file of {ask.file_bytes // _MIB} MiB takes {size // _MIB} MiB of drive {drive.id}"
            )
    return ""


def file_system_seconds(bench: Bench, patterns: Iterable[Pattern], profile: Profile) -> float:
    """Expected seconds of a batch that makes each of these file systems once, on all of a launch's drives at once."""
    asks = {(pattern.on_volumes, ask_of(pattern, profile)) for pattern in patterns}
    return sum(_MAKING_S + ask.file_bytes / WRITTEN_BYTES_S[bench.kind] for _, ask in asks if ask is not None)
