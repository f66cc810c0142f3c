# SPDX-License-Identifier: Apache-2.0
"""The coverage ledger: planned x measured x skipped with reason, so that nothing is silently untested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storqual.run.collect import read_block
from storqual.run.records import Event, PlannedPoint, planned_session
from storqual.run.run import Run
from storqual.run.samples import read_launches
from storqual_core.kit.errors import BadInputError


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
    finished: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for launch in read_launches(run.path):
        if launch.status != "lost":
            finished[launch.key].add(launch.arm)
    return ledger(run.plan.points, finished, run.arms)


def ledger(
    points: Iterable[PlannedPoint], finished: Mapping[tuple[str, str, str], Collection[str]], arms: Iterable[str]
) -> Coverage:
    """The same from the arms that have a sample at each point which is not lost.

    One that was refused counts as measured: its outcome is an ERROR, not a hole.
    """
    wanted = set(arms)
    planned = measured = 0
    skipped: list[Skipped] = []
    holes: list[PlannedPoint] = []
    for point in points:
        planned += 1
        if wanted <= set(finished.get(point.key, ())):
            measured += 1
        elif point.skipped:
            skipped.append(Skipped(point.bench, point.adapter, point.point, point.skipped))
        else:
            holes.append(point)
    return Coverage(planned, measured, tuple(skipped), tuple(holes))


def is_measured(run: Run, bench: str, blocks: Iterable[str]) -> bool:
    """Whether each launch of these blocks has a sample; False for a block that was never planned.

    A launch that a reset cut off is tried again in another session: it is the same by adapter, arm, point and number.
    Raises StorqualError for a block file that is damaged.
    """
    try:
        launches = [launch for block in blocks for launch in read_block(run.path, block)["launches"]]
    except BadInputError:
        return False
    wanted = {(bench, str(one["adapter"]), str(one["point"]), str(one["arm"]), int(one["n"])) for one in launches}
    return bool(wanted) and wanted <= run.measured


_MEASURED = "its launches were measured later"


def recovered(run: Run, event: Event) -> str:
    """How the campaign got over a failure that `event` tells; empty when it did not, or when there is none.

    What the bench did meanwhile is not undone: a panic, a drive that vanished. A task that failed is one that was
    tried again: a resumed campaign repeats it, and what fails again is on record again. What a reset cut off is
    measured in a session of its own. Raises StorqualError for a block file that is damaged.
    """
    if event.kind == "block_finished":
        lost = event.text("outcome") not in ("", "done")
        return _MEASURED if lost and is_measured(run, event.bench or "", [event.text("block")]) else ""
    if event.kind == "session_lost":
        planned = (event.bench, planned_session(event.text("session")))
        blocks = [block for one in run.sessions if (one.bench, one.id) == planned for block in one.blocks]
        return _MEASURED if is_measured(run, event.bench or "", blocks) else ""
    return _tried_again(run, event)


def _tried_again(run: Run, event: Event) -> str:
    later = run.events[run.events.index(event) + 1 :]
    for other in (one for one in later if one.bench in (event.bench, None)):
        if event.kind == "provision_failed" and other.kind == "session_started":
            if other.fields.get("session") == event.fields.get("session"):
                return "the session started later"
        elif event.kind == "restore_failed" and other.kind == "restored":
            return "it was later"
        elif event.kind == "failed" and other.kind == "resumed":
            return "the campaign was resumed and went on"
    return ""
