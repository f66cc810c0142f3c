# SPDX-License-Identifier: Apache-2.0
"""The factors of points in words, and which of them a chart runs along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual_core.quantities import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storqual.store import PlannedPoint

__all__ = ["AXIS_NAMES", "along", "combination", "level_text", "levels", "size_text"]

_PREFERRED = ("bs", "iodepth", "drives", "ports", "numjobs", "rwmixread")
AXIS_NAMES = {
    "bs": "block size",
    "iodepth": "queue depth per drive",
    "drives": "drives",
    "ports": "ports",
    "numjobs": "jobs",
    "rwmixread": "reads, %",
}
_BINARY = {"k": " KiB", "m": " MiB", "g": " GiB", "t": " TiB", "p": " PiB"}


def size_text(size: int) -> str:
    """A size in the largest exact binary unit: 4096 -> `4 KiB`, 512 -> `512 B`."""
    short = format_size(size)
    return short[:-1] + _BINARY[short[-1]] if short[-1] in _BINARY else f"{short} B"


def levels(point: PlannedPoint) -> dict[str, Any]:
    """All factors of a point, varied settings included."""
    return {**point.factors, **point.varied}


def level_text(name: str, value: object) -> str:
    """One level as people say it: `4 KiB`, `QD 16`, `4 drives`, `drive.WCE=0`."""
    if name == "bs" and isinstance(value, int):
        return size_text(value)
    if name == "iodepth":
        return f"QD {value}"
    if name in ("drives", "ports", "numjobs"):
        word = "jobs" if name == "numjobs" else name
        return f"{value} {word if value != 1 else word[:-1]}"
    if name == "rwmixread":
        return f"{value} % reads"
    return f"{name}={value}"


def along(points: Iterable[PlannedPoint]) -> str | None:
    """The factor to put on the horizontal axis: the first of the usual ones that has several numeric levels.

    Block size wins wherever it varies; with nothing that varies it is still the axis. None without any number.
    """
    seen: dict[str, set[Any]] = {}
    for point in points:
        for name, value in point.factors.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
                seen.setdefault(name, set()).add(value)
    several = [name for name in _PREFERRED if len(seen.get(name, ())) > 1]
    several += [name for name in seen if name not in _PREFERRED and len(seen[name]) > 1]
    return several[0] if several else next((name for name in (*_PREFERRED, *seen) if name in seen), None)


def combination(point: PlannedPoint, names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The levels of the factors `names` at a point."""
    have = levels(point)
    return tuple((name, have[name]) for name in names if name in have)
