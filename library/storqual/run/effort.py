# SPDX-License-Identifier: Apache-2.0
"""What measuring costs on a bench, how much of it a campaign may do, and how long the campaign still takes there.

The plan wrote it into run.json: packages, boots, RAID, batches and the way back are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.base.text import terminal_text
from storqual.run import iter_events, read_block, read_run_json
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


def seconds_after(
    effort: Effort, sessions: Iterable[Mapping[str, Any]], begun: Collection[str], launches: Mapping[str, int]
) -> float:
    """Seconds from the end of the last batch in `begun` to a bench that is put back.

    `sessions` are the bench's as the plan has them, `launches` how many each batch has.
    """
    seconds = effort.restore_s
    for session in sessions:
        left = [block for block in session["blocks"] if block not in begun]
        seconds += sum(launches[block] * effort.launch_s + effort.block_s for block in left)
        # a session of which no batch began is still to be provisioned
        seconds += effort.session_s if left and len(left) == len(session["blocks"]) else 0.0
    return seconds


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


class TimeLeft:
    """What the plan of a run expects of `bench` from now on; a `batch` that is named has begun."""

    def __init__(self, run: Path, bench: str, batch: str = "") -> None:
        self._bench = bench
        document = read_run_json(run)
        self._created = datetime.fromisoformat(str(document["created"]))
        self._expected_s = document["plan"].get("expected_seconds")
        self._after_s = _seconds_after(run, document["plan"], bench, batch)

    def seconds(self, of_batch: float = 0.0) -> float | None:
        """Until the bench is put back: what the plan expects less what has passed, at least what is still to come.

        `of_batch` is what the batch under way still takes. None for a run whose plan expects nothing.
        """
        if self._expected_s is None:
            return None
        passed = (datetime.now(UTC) - self._created).total_seconds()
        return max(of_batch + self._after_s, float(self._expected_s) - passed)

    def told(self, what: str, *, over: bool = False) -> str:
        """A line on a bench that is not measuring: `b1 | session s1 is prepared | about 12 min left`.

        `over`: the campaign ends there, perhaps before the plan expected it.
        """
        left = self._after_s if over else self.seconds()
        parts = [self._bench, what, *([] if left is None else [f"about {max(1, round(left / 60))} min left"])]
        return terminal_text(" | ".join(parts))


def _seconds_after(run: Path, plan: Mapping[str, Any], bench: str, batch: str) -> float:
    """What comes after the batches that began: batches, sessions with their boots and packages, restore."""
    entry = (plan.get("effort") or {}).get(bench)
    if entry is None:
        return 0.0
    begun = {batch, *(event.text("block") for event in iter_events(run) if event.kind == "block_started")}
    sessions = [session for session in plan["sessions"] if session["bench"] == bench]
    waiting = [block for session in sessions for block in session["blocks"] if block not in begun]
    launches = {block: len(read_block(run, block)["turns"]) for block in waiting}
    return seconds_after(Effort(**entry), sessions, begun, launches)
