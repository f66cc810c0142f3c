# SPDX-License-Identifier: Apache-2.0
"""What a launch on a file system asks for, as it stands in a block file: which one, and how large its file is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KINDS", "FileSystemAsk", "part_bytes", "read_file_system"]

KINDS = ("ext4", "xfs")
_MIB = 1 << 20
_KEYS = frozenset({"kind", "file_bytes"})
_OWN_MIB = 384
"""What a file system gets beyond its file: mkfs.xfs makes none below 300 MiB, and its log alone takes 64 MiB."""


@dataclass(frozen=True)
class FileSystemAsk:
    """One file of `file_bytes` on a fresh file system of this kind, on each drive of the launch."""

    kind: str
    file_bytes: int


def part_bytes(file_bytes: int) -> int:
    """How much of a drive a file system with a file of this size takes, in whole MiB (bytes).

    The same on every drive, large or small: so the file lies where drives are compared, and mkfs has the same to do.
    """
    return (file_bytes * 5 // 4 // _MIB + 1 + _OWN_MIB) * _MIB


def read_file_system(entry: object, where: str, problems: list[str]) -> FileSystemAsk | None:
    """The `file_system` of a launch; None where there is none, or where `problems` says what is wrong with it."""
    if entry is None:
        return None
    if not isinstance(entry, dict) or set(entry) != _KEYS or entry["kind"] not in KINDS:
        expected = f"a mapping of {', '.join(sorted(_KEYS))} with kind one of {', '.join(KINDS)}"
        problems.append(f"{where}: found {str(entry)[:120]!r}, expected {expected}")
        return None
    size = entry["file_bytes"]
    if not isinstance(size, int) or isinstance(size, bool) or size < _MIB or size % _MIB:
        problems.append(f"{where}: file_bytes: found {str(size)[:40]!r}, expected bytes in whole MiB, at least one")
        return None
    return FileSystemAsk(entry["kind"], size)
