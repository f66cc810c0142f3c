# SPDX-License-Identifier: Apache-2.0
"""How long a campaign still takes on one bench: packages, boots, RAID, batches and the way back are counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.base.text import terminal_text
from storqual.run import iter_events, read_block, read_run_json
from storqual.run.effort import Effort, seconds_after


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
    launches = {block: len(read_block(run, block)["launches"]) for block in waiting}
    return seconds_after(Effort(**entry), sessions, begun, launches)
