# SPDX-License-Identifier: Apache-2.0
"""Factors and their levels as people say them: `4 KiB`, `QD 16`, `4 drives`, `drive.WCE=0`."""

from __future__ import annotations

from collections.abc import Iterable

from storqual_core.kit.quantities import format_size

AXIS_NAMES = {
    "bs": "block size",
    "iodepth": "queue depth per drive",
    "drives": "drives",
    "ports": "ports",
    "adapters": "adapters",
    "numjobs": "jobs",
    "raid.members": "members of a volume",
    "rwmixread": "reads, %",
}
_COUNTED = {
    "drives": "drives",
    "ports": "ports",
    "adapters": "adapters",
    "numjobs": "jobs",
    "raid.members": "members",
}
_BINARY = {"k": " KiB", "m": " MiB", "g": " GiB", "t": " TiB", "p": " PiB"}


def size_text(size: int) -> str:
    """A size in the largest exact binary unit: 4096 -> `4 KiB`, 512 -> `512 B`."""
    short = format_size(size)
    return short[:-1] + _BINARY[short[-1]] if short[-1] in _BINARY else f"{short} B"


def level_text(name: str, value: object) -> str:
    """One level as people say it: `4 KiB`, `QD 16`, `4 drives`, `drive.WCE=0`."""
    if name == "bs" and isinstance(value, int):
        return size_text(value)
    if name == "iodepth":
        return f"QD {value}"
    if name in _COUNTED:
        word = _COUNTED[name]
        return f"{value} {word if value != 1 else word[:-1]}"
    if name == "rwmixread":
        return f"{value} % reads"
    if name == "target":
        return {"raw": "drive"}.get(str(value), str(value).replace("xfs", "XFS").replace("_", " "))
    if name == "direct":
        return "direct" if value else "buffered"
    return f"{name}={value}"


def together(workload: str, levels: Iterable[tuple[str, object]]) -> str:
    """A workload with what is fixed of it: `rand_read, 4 KiB, QD 16`."""
    return ", ".join([workload, *(level_text(name, value) for name, value in levels)])
