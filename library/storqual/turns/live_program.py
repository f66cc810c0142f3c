# SPDX-License-Identifier: Apache-2.0
"""One run of a foreign program: followed, its record derived, and the bench reset where it hangs by it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.inputs.trials import Program
from storqual.robustness.derived import kept_lines
from storqual.robustness.external_runs import PlannedExternal, Told, derive_program, run_line
from storqual.run.layout import now
from storqual.turns.connection import ConnectionLostError
from storqual.turns.live_turn import BenchHere, LiveTurn
from storqual.virtual_bench.power import reset
from storqual_core.kit.errors import StorqualError

_SLACK_S = 240.0
"""What a run may take beside its program: guard, the end of what hangs, a scan, the look at all disks."""
_BACK_S = 900.0
_AGAIN_S = 5.0
_SILENT = 60
"""After how many half seconds of silence the bench is asked whether it is still the same boot."""
_ANSWER_S = 20.0


class LiveProgram(LiveTurn):
    """One run of a program under way; a bench that hangs by it is reset. `boot` is what the bench runs."""

    def __init__(
        self,
        bench: BenchHere,
        batch: Mapping[str, Any],
        turn: Mapping[str, Any],
        planned: PlannedExternal,
        folder: Path,
        *,
        program: Program,
        boot: str,
    ) -> None:
        self._seen = Told()
        super().__init__(bench, batch, turn, folder, self._seen.take)
        self._planned, self._program, self._boot_id = planned, program, boot
        self.was_reset = False

    def run(self) -> dict[str, Any]:
        """The record. Raises ConnectionLostError for a bench that does not answer, or never again after a reset."""
        began, run = time.monotonic(), str(self._batch["run"])
        self._take(run_line(run, self._planned, bench=self._bench.name, boot=self._boot_id, start=now()))
        for line in self._follow("all", self._program.limit, self._boot_id):
            self._take(line)
        silent = self._seen.end is None
        if silent or self._seen.stuck:
            self._take({"kind": "recovered", "text": self._reset(self._boot_id, silent=silent)})
            self.was_reset = True
        self._take({"kind": "spent", "seconds": round(time.monotonic() - began, 1)})
        named = self._keep()
        # of what was kept, and not of what was seen: whoever has the run can do the same
        lines = kept_lines(self._folder, {"id": self._planned.id, **named}, "stream")
        return {**derive_program(lines, self._planned, self._program, run=run), **named}

    def _follow(self, part: str, limit_s: float, boot: str = "") -> Iterator[Mapping[str, Any]]:
        """Start the bench's program and give its lines as they come, until the bench has another boot than `boot`."""
        stream, silent = self._start(part), 0
        if not stream:
            return
        for line in self._bench.connection.lines(stream, limit_s=limit_s + _SLACK_S):
            if line is not None:
                silent = 0
                yield line
                continue
            silent += 1
            if boot and silent % _SILENT == 0 and self._boot(_ANSWER_S) not in ("", boot):
                return

    def _reset(self, before: str, *, silent: bool) -> str:
        """Reset the bench and take the drive back; a sentence about it. Raises ConnectionLostError, StorqualError."""
        why = "the bench fell silent" if silent else self._seen.stuck.partition(":")[0]
        if silent and self._boot(_ANSWER_S) not in ("", before):
            how = "it had restarted by itself"
        elif self._bench.virtual is not None:
            reset(self._bench.virtual)
            self._bench.connection.cut()
            how = "its reset button was pressed"
        else:
            self._restart(before)
            how = "its kernel was told to reset it"
        taken = None
        for line in self._follow("reclaim", _SLACK_S):
            taken = line if line["kind"] == "end" else taken
        if taken is None or taken["outcome"] != "done":
            told = "no answer" if taken is None else taken["message"]
            raise StorqualError(f"drive {self._planned.drive} cannot be taken back after a reset: {told}")
        return f"{why}; {how}, and the drive was stamped again"

    def _restart(self, before: str) -> None:
        """Have a bench without a reset button restart at once, and wait until it answers from another boot."""
        connection = self._bench.connection
        try:
            connection.run(
                "sync & echo 1 > /proc/sys/kernel/sysrq; (sleep 1; echo b > /proc/sysrq-trigger) >/dev/null 2>&1 &"
            )
        except ConnectionLostError as problem:
            raise ConnectionLostError(f"the bench hangs and takes no reset from here: {problem}") from None
        end = time.monotonic() + _BACK_S
        while time.monotonic() < end:
            time.sleep(_AGAIN_S)
            connection.cut()
            if self._boot(_ANSWER_S) not in ("", before):
                return
        raise ConnectionLostError(f"the bench did not come back within {_BACK_S:g} s after a reset")
