# SPDX-License-Identifier: Apache-2.0
"""Take in a block's spool piece by piece while the block runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from storqual.follow import BlockPaths
from storqual.store import append_event, collect, iter_events, read_block, read_run_json

if TYPE_CHECKING:
    from pathlib import Path

    from storqual.follow import Progress

__all__ = ["Collector"]


class Collector:
    """One block of one run; it is started in the run's record once, however often it is followed."""

    def __init__(self, run: Path, bench: str, block: str) -> None:
        self._run = run
        self._block = block
        self._planned = read_block(run, block)
        self._bench = bench
        self._kept: list[str] = []
        document = read_run_json(run)
        self._created = datetime.fromisoformat(str(document["created"]))
        self._expected_s = document["plan"].get("expected_seconds")
        fields = {"bench": bench, "session": self._planned["session"], "block": block}
        if not any(e.kind == "block_started" and e.fields.get("block") == block for e in iter_events(run)):
            append_event(run, "block_started", fields)

    @property
    def measured(self) -> bool:
        """Whether the run holds any sample yet."""
        path = self._run / "samples.jsonl"
        return path.is_file() and path.stat().st_size > 0

    def take(self, text: str) -> int:
        """Store the samples in complete spool lines; returns how many were new.

        Everything but samples is kept and given again, because the event that ends a block needs its start and all
        of its kernel log.
        """
        lines = text.splitlines(keepends=True)
        self._kept += [line for line in lines if json.loads(line).get("kind") != "sample"]
        samples = [line for line in lines if json.loads(line).get("kind") == "sample"]
        first, rest = self._kept[:1], self._kept[1:]
        return collect(self._run, self._block, "".join([*first, *samples, *rest])).new

    def lose(self, reason: str) -> None:
        """Close the block: its program ended without a last line, and why."""
        collect(self._run, self._block, "".join(self._kept), lost=reason)

    def arm_of(self, progress: Progress) -> str:
        """The arm of the launch that runs now."""
        launches = self._planned["launches"]
        return str(launches[min(progress.index, len(launches) - 1)]["arm"]) if launches else ""

    def seconds_left(self, progress: Progress) -> float | None:
        """Until the run is done: the plan's expectation less what has passed, at least the block's own."""
        if self._expected_s is None:
            return progress.eta_s
        passed = (datetime.now(UTC) - self._created).total_seconds()
        return max(progress.eta_s or 0.0, float(self._expected_s) - passed)

    def paths(self, state_dir: str, program: str, python: str) -> BlockPaths:
        """Where this block lives under the bench's state folder."""
        spool = f"{state_dir}/spool/{self._planned['run']}"
        return BlockPaths(
            program=f"{state_dir}/{program}",
            block_file=f"{spool}/{self._block}.json",
            spool=f"{spool}/{self._block}.jsonl",
            progress=f"{spool}/progress.json",
            lock=f"{state_dir}/lock",
            python=python,
        )
