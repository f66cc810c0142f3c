# SPDX-License-Identifier: Apache-2.0
"""What was done to a bench's drives before they were measured, as a table: purge, fill, rounds until steady."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from storqual.report.figures import DASH, Figure, count, percent, seconds
from storqual.report.view import ChartTable

if TYPE_CHECKING:
    from storqual.report.material import Material

__all__ = ["preconditioning_of"]

_HEADS = ("Stage", "Result", "Rounds", "Drift", "from", "to", "SNIA range", "SNIA excursion")
_NOTHING = (DASH,) * 6

Row = tuple[Figure | str, ...]


def preconditioning_of(material: Material, bench: str) -> ChartTable:
    """The table of a bench; without rows where nothing was done."""
    rows: list[Row] = []
    for at, entry in enumerate(material.document.get("preconditioned") or ()):
        if entry["bench"] == bench:
            rows += _rows(entry["report"], f"run:/preconditioned/{at}/report")
    return ChartTable("Drives before the first launch", _HEADS, tuple(rows))


def _rows(report: dict[str, Any], source: str) -> Iterator[Row]:
    for drive, done in (report.get("purge") or {}).items():
        yield (f"Purge of {drive}", str(done), *_NOTHING)
    fill = report.get("fill")
    if fill:
        yield ("Fill", seconds(fill["seconds"], f"{source}/fill/seconds"), *_NOTHING)
    steady = report.get("steady")
    if steady:
        at = f"{source}/steady"
        drift = steady.get("drift") or (None, None, None)
        snia = steady.get("snia") or {}
        yield (
            "Steady state",
            "steady" if steady.get("steady") else "not steady",
            count(steady["rounds"], f"{at}/rounds"),
            *(_share(value, f"{at}/drift/{place}") for place, value in enumerate(drift)),
            *(_share(snia.get(name), f"{at}/snia/{name}") for name in ("range", "excursion")),
        )


def _share(value: float | None, source: str) -> Figure:
    """A fraction in percent."""
    return percent(None if value is None else 100 * value, source)
