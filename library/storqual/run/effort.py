# SPDX-License-Identifier: Apache-2.0
"""What measuring costs on a bench, and how much of it a campaign may do. The plan wrote it into run.json."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from storqual.run.event_kinds import EVENT_KINDS, Stage
from storqual.run.records import Event
from storqual.run.run import Run


@dataclass(frozen=True)
class Effort:
    """Seconds that measuring takes on one bench, and limits.

    `launch_s` is one launch with all that it costs, `block_s` what a block costs beside its launches, `session_s` a
    session beside its batches, `restore_s` putting the bench back at the end. `most` is how many pairs (sessions per
    arm) a point may get, `launches` how many launches it gets in one session, `longest_block_s` and `budget_s` are
    limits (None: none).
    """

    by_session: bool
    launch_s: float
    block_s: float
    session_s: float
    most: int
    launches: int
    longest_block_s: float
    budget_s: float | None = None
    restore_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.effort`."""
        return asdict(self)

    def unit_seconds(self, points: int = 1) -> float:
        """Seconds of one more pair (one more session of each arm) at so many points."""
        if self.by_session:
            return 2 * (self.session_s + self.block_s + points * self.launches * self.launch_s)
        return 2 * points * self.launch_s


def effort_of(run: Run, bench: str) -> Effort | None:
    """What the plan says of `bench`; None for a run that was planned without."""
    entry = (run.plan.fields.get("effort") or {}).get(bench)
    return None if entry is None else Effort(**entry)


def bench_seconds(events: Iterable[Event], bench: str) -> float:
    """How long the campaign has had the bench, in seconds, from its first event there.

    The time between an interruption and the `resumed` that ends it is nobody's: it is not counted.
    """
    used = 0.0
    before: datetime | None = None
    for event in events:
        if event.bench not in (bench, None) or EVENT_KINDS[event.kind].stage is Stage.ANY:
            # a note that somebody writes next week is no use of the bench
            continue
        moment = datetime.fromisoformat(event.time)
        if before is not None and EVENT_KINDS[event.kind].stage is not Stage.OPENING:
            used += max((moment - before).total_seconds(), 0.0)
        if before is not None or event.bench == bench:
            before = moment
    return used
