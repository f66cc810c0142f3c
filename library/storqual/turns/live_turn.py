# SPDX-License-Identifier: Apache-2.0
"""One streamed turn under way: the bench's program is started for it, and every line is kept before it is read.

Its record is made of what was kept and not of what was seen: whoever has the run can do the same.
"""

import json
import secrets
import shlex
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.bench.follow import SILENCE_S, ConnectionLostError, putting, stream
from storqual.bench.ladder import Recovery
from storqual.kinds.kind import PlannedTurn
from storqual.kinds.program import OUTPUT, ProgramStream, run_line
from storqual.run.collect import keep_raw
from storqual.run.layout import TURNS, now
from storqual.run.turns import derive_record
from storqual.turns.bring_back import BenchHere, Hung, bring_back
from storqual_core.kit.errors import StorqualError
from storqual_core.turns.requests import SILENCE_S as TURN_SILENCE_S
from storqual_core.turns.spool import ALIVE, spool_path

_START_S = 240.0


class TurnLostError(StorqualError):
    """A turn was cut short by what is none of its faults, and says nothing: it is made again.

    `rebooted` is True when the bench is on another boot, False when it could not be reached.
    """

    def __init__(self, message: str, *, rebooted: bool) -> None:
        self.rebooted = rebooted
        super().__init__(message)


class LiveTurn(ABC):
    """One turn of a streamed batch; `boot` is what the bench runs. `see` is told each line after it was kept.

    What an attempt left in the run that was cut short is removed.
    """

    stream_name = "stream"
    """What its raw file is called."""

    def __init__(
        self,
        run: Path,
        bench: BenchHere,
        batch: Mapping[str, Any],
        turn: Mapping[str, Any],
        see: Callable[..., None],
        *,
        boot: str,
    ) -> None:
        self._run, self._bench, self._batch, self._see, self._boot_id = run, bench, batch, see, boot
        self._planned = PlannedTurn.of(batch, turn)
        self._hung = Hung.of(batch, turn)
        self._console = bench.console_mark()
        self._request = self._planned.request
        self._lock = threading.Lock()
        self._clock = 0
        self._spool = ""
        self._silent = 0
        self._tag = secrets.token_hex(8)
        (run / TURNS).mkdir(exist_ok=True)
        self._kept = run / TURNS / f"{self._planned.id}.{self.stream_name}.jsonl"
        self._kept.unlink(missing_ok=True)

    def run(self) -> dict[str, Any]:
        """The record. Raises ConnectionLostError when the bench does not answer, TurnLostError for one cut short."""
        self._take({"at": 0, **self._head()})
        self._make()
        raw = [keep_raw(self._run, self._kept.read_bytes(), f"{self.stream_name}.jsonl.gz"), *self._beside()]
        self._kept.unlink()
        return derive_record(self._run, self._planned, raw)

    @abstractmethod
    def _head(self) -> dict[str, Any]:
        """The first line of its stream: what it was asked for."""

    @abstractmethod
    def _make(self) -> None:
        """What the bench and the control node do for it."""

    def _beside(self) -> list[dict[str, str]]:
        return []

    def _lines(self, part: str, limit_s: float) -> Iterator[dict[str, Any] | None]:
        """Start the bench's program for a part of the turn; its lines as they come, None in times of silence.

        That a turn goes on, and has nothing to tell, ends a silence and is no line of it.
        """
        path, self._silent = self._start(part), 0
        for line in stream(self._bench.connection, path, limit_s=limit_s) if path else ():
            self._silent = self._silent + 1 if line is None else 0
            if line is None or line["kind"] != ALIVE:
                yield line

    def _start(self, part: str) -> str:
        """Have the bench's program run this part of the turn; the path of its stream, empty where it did not start.

        Raises ConnectionLostError.
        """
        bench, batch = self._bench, self._batch
        attempt = {"turn": self._planned.id, "part": part, "tag": self._tag}
        file = f"{bench.state_dir}/spool/{batch['run']}/{batch['block']}.json"
        spool = str(spool_path(Path(bench.state_dir), batch["run"], batch["block"], (self._planned.id, part)))
        # of an attempt before this one, on the same boot
        # unpacked where it ran before, and without site packages: a slow bench compiles and searches for seconds
        folder, zipped = (shlex.quote(name) for name in (bench.program.removesuffix(".pyz"), bench.program))
        program = f'"$(test -d {folder} && echo {folder} || echo {zipped})"'
        start = f"{shlex.quote(bench.python)} -I -S {program} start {shlex.quote(file)}"
        command = f"{putting(file)} && rm -f {shlex.quote(spool)}* && {start}"
        request = json.dumps({**batch, "attempt": attempt}).encode()
        status, output = bench.connection.call(command, data=request, limit_s=_START_S)
        if status:
            lines = output.splitlines() or [f"it ended with {status}"]
            self._take({"kind": "end", "outcome": "stopped", "message": lines[-1], "ios": 0})
            return ""
        self._spool = spool
        return spool

    def _take(self, line: Mapping[str, Any]) -> None:
        """Keep a line, then read it; a line of the control node gets the time of the bench's clock."""
        with self._lock:
            body = {"at": time.monotonic_ns() + self._clock, **line}
            with self._kept.open("ab") as file:
                file.write(json.dumps(body, separators=(",", ":")).encode() + b"\n")
            self._see(body)

    def _bring_back(self, reason: str, *, hangs: bool, silent_s: float = 0.0) -> Recovery:
        """See `bring_back`. Raises OutOfServiceError."""
        return bring_back(
            self._run,
            self._bench,
            self._hung,
            boot=self._boot_id,
            hangs=hangs,
            reason=reason,
            silent_s=silent_s,
            console_mark=self._console,
        )

    def _boot(self, limit_s: float) -> str:
        """The bench's boot, empty while it does not answer."""
        try:
            return self._bench.connection.boot_id(limit_s=limit_s)
        except ConnectionLostError:
            return ""


_SLACK_S = 240.0
"""What a run may take beside its program: guard, the end of what hangs, a scan, the look at all disks."""
_SILENT = 60
"""After how many half seconds of silence the bench is asked whether it is still the same boot."""
_ANSWER_S = 20.0


class LiveProgram(LiveTurn):
    """One run of a program under way; a bench that hangs by it is brought back."""

    stream_name = OUTPUT

    def __init__(
        self, run: Path, bench: BenchHere, batch: Mapping[str, Any], turn: Mapping[str, Any], *, boot: str
    ) -> None:
        self._seen = ProgramStream()
        super().__init__(run, bench, batch, turn, self._seen.take, boot=boot)
        self.was_reset = False
        self._recovery: Recovery | None = None

    def _head(self) -> dict[str, Any]:
        return run_line(self._planned, boot=self._boot_id, start=now())

    def _make(self) -> None:
        """Raises ConnectionLostError for a bench that does not answer, or never again after a reset."""
        began = time.monotonic()
        for line in self._lines("all", self._request["limit_s"] + _SLACK_S):
            if line is not None:
                self._take(line)
            elif self._silent % _SILENT == 0 and (self._boot(_ANSWER_S) or self._returned_boot()) != self._boot_id:
                break
        silent = self._seen.end is None
        if silent or self._seen.stuck:
            self._take({"kind": "recovered", "text": self._reset(self._boot_id, silent=silent)})
            self.was_reset = True
        self._take({"kind": "spent", "seconds": round(time.monotonic() - began, 1)})

    def _returned_boot(self) -> str:
        """The boot of a bench that did not answer. Raises OutOfServiceError when it stays away."""
        silent_s = self._silent * SILENCE_S
        if silent_s < self._request.get("silence_s", TURN_SILENCE_S):
            return self._boot_id
        self._recovery = self._bring_back("it stopped answering", hangs=False, silent_s=silent_s)
        return self._recovery.boot_id

    def _reset(self, before: str, *, silent: bool) -> str:
        """Bring the bench back and take the drive back; a sentence. Raises StorqualError."""
        why = "the bench fell silent" if silent else self._seen.stuck.partition(":")[0]
        recovery = self._recovery
        if recovery is None or recovery.boot_id == before:
            recovery = self._bring_back(why, hangs=True)
        how = f"ended by {recovery.ended_by}" if recovery.ended_by else "it had restarted by itself"
        taken = None
        for line in self._lines("reclaim", 2 * _SLACK_S):
            taken = line if line is not None and line["kind"] == "end" else taken
        if taken is None or taken["outcome"] != "done":
            reason = "no answer" if taken is None else taken["message"]
            raise StorqualError(f"drive {self._planned.drive} cannot be taken back after a reset: {reason}")
        return f"{why}; {how}, and the drive was stamped again"
