# SPDX-License-Identifier: Apache-2.0
"""The coverage ledger: planned x measured x skipped with reason, so that nothing is silently untested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from storqual.store.records import PlannedPoint, Sample
from storqual.store.run import Run

__all__ = ["Coverage", "Skipped", "coverage", "ledger"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A planned cell that was left out on purpose, and why."""

    bench: str
    adapter: str
    point: str
    reason: str


@dataclass(frozen=True)
class Coverage:
    """Counts are cells (bench, adapter, point). `holes` are cells with neither samples of every arm nor a reason."""

    planned: int
    measured: int
    skipped: tuple[Skipped, ...]
    holes: tuple[PlannedPoint, ...]

    def to_json(self) -> dict[str, Any]:
        """The `coverage` object of run.json and verdict.json; a hole is listed with an empty reason."""
        listed = [*self.skipped, *(Skipped(hole.bench, hole.adapter, hole.point, "") for hole in self.holes)]
        return {
            "planned": self.planned,
            "measured": self.measured,
            "skipped": [
                {"bench": cell.bench, "adapter": cell.adapter, "point": cell.point, "reason": cell.reason}
                for cell in listed
            ],
        }


def coverage(run: Run) -> Coverage:
    """The ledger of a run: a cell is measured when every arm has at least one finished sample there."""
    return ledger(run.plan.points, run.samples, run.arms)


def ledger(points: Iterable[PlannedPoint], samples: Iterable[Sample], arms: Iterable[str]) -> Coverage:
    """The same from its parts. A sample that was refused counts as measured: its outcome is an ERROR, not a hole."""
    seen: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for sample in samples:
        if sample.status != "lost":
            seen[(sample.bench, sample.adapter, sample.point)].add(sample.arm)
    wanted = set(arms)
    planned = measured = 0
    skipped: list[Skipped] = []
    holes: list[PlannedPoint] = []
    for point in points:
        planned += 1
        if wanted <= seen[point.key]:
            measured += 1
        elif point.skipped:
            skipped.append(Skipped(point.bench, point.adapter, point.point, point.skipped))
        else:
            holes.append(point)
    return Coverage(planned, measured, tuple(skipped), tuple(holes))
