# SPDX-License-Identifier: Apache-2.0
"""The factors of points in words, and which of them a chart runs along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storqual.store import PlannedPoint

__all__ = ["along", "combination", "levels"]

_PREFERRED = ("bs", "iodepth", "drives", "ports", "numjobs", "rwmixread")


def levels(point: PlannedPoint) -> dict[str, Any]:
    """All factors of a point, varied settings included."""
    return {**point.factors, **point.varied}


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
