# SPDX-License-Identifier: Apache-2.0
"""One run of a foreign program: followed, its record derived, and the bench reset where it hangs by it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storqual.bench.connection import ConnectionLostError
from storqual.kinds.program import OUTPUT, Told, run_line
from storqual.run.layout import now
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
    """One run of a program under way; a bench that hangs by it is reset."""

    stream_name = OUTPUT

    def __init__(
        self, run: Path, bench: BenchHere, batch: Mapping[str, Any], turn: Mapping[str, Any], *, boot: str
    ) -> None:
        self._seen = Told()
        super().__init__(run, bench, batch, turn, self._seen.take, boot=boot)
        self.was_reset = False

    def _head(self) -> dict[str, Any]:
        return run_line(self._planned, boot=self._boot_id, start=now())

    def _make(self) -> None:
        """Raises ConnectionLostError for a bench that does not answer, or never again after a reset."""
        began = time.monotonic()
        for line in self._lines("all", self._request["limit_s"] + _SLACK_S):
            if line is not None:
                self._take(line)
            elif self._silent % _SILENT == 0 and self._boot(_ANSWER_S) not in ("", self._boot_id):
                break
        silent = self._seen.end is None
        if silent or self._seen.stuck:
            self._take({"kind": "recovered", "text": self._reset(self._boot_id, silent=silent)})
            self.was_reset = True
        self._take({"kind": "spent", "seconds": round(time.monotonic() - began, 1)})

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
        for line in self._lines("reclaim", 2 * _SLACK_S):
            taken = line if line is not None and line["kind"] == "end" else taken
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
