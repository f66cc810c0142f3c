# SPDX-License-Identifier: Apache-2.0
"""One streamed turn under way: the bench's program is started for it, and every line is kept before it is read.

Its record is made of what was kept and not of what was seen: whoever has the run can do the same.
"""

from __future__ import annotations

import json
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.bench.connection import Connection, ConnectionLostError
from storqual.bench.follow import stream
from storqual.kinds.kind import PlannedTurn
from storqual.run.collect import keep_raw
from storqual.run.layout import TURNS
from storqual.run.turns import derive_record
from storqual.virtual_bench.places import BenchPlaces
from storqual_core.kit.errors import StorqualError
from storqual_core.turns.spool import spool_path

_START_S = 240.0


@dataclass(frozen=True)
class BenchHere:
    """One bench while its turns run: how it is reached, where its program lies, its virtual state if any."""

    name: str
    connection: Connection
    python: str
    state_dir: str
    program: str
    virtual: BenchPlaces | None


class TurnLostError(StorqualError):
    """A turn was cut short by what is none of its faults, and says nothing: it is made again.

    `rebooted` is True when the bench is on another boot, False when it could not be reached.
    """

    def __init__(self, message: str, *, rebooted: bool) -> None:
        self.rebooted = rebooted
        super().__init__(message)


class LiveTurn:
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

    def _head(self) -> dict[str, Any]:
        """Its first line: whose it is."""
        raise NotImplementedError

    def _make(self) -> None:
        """What the bench and the control node do for it."""
        raise NotImplementedError

    def _beside(self) -> list[dict[str, str]]:
        """The raw files that it leaves beside its stream."""
        return []

    def _lines(self, part: str, limit_s: float) -> Iterator[dict[str, Any] | None]:
        """Start the bench's program for a part of the turn; its lines as they come, None in times of silence."""
        path, self._silent = self._start(part), 0
        for line in stream(self._bench.connection, path, limit_s=limit_s) if path else ():
            self._silent = self._silent + 1 if line is None else 0
            yield line

    def _start(self, part: str) -> str:
        """Have the bench's program run this part of the turn; the path of its stream, empty where it did not start.

        Raises ConnectionLostError.
        """
        bench, batch = self._bench, self._batch
        attempt = {"turn": self._planned.id, "part": part, "tag": self._tag}
        file = f"{bench.state_dir}/spool/{batch['run']}/{batch['block']}.json"
        bench.connection.put(json.dumps({**batch, "attempt": attempt}).encode(), file)
        spool = str(spool_path(Path(bench.state_dir), batch["run"], batch["block"], (self._planned.id, part)))
        # of an attempt before this one, on the same boot
        command = f"rm -f {shlex.quote(spool)}*; {shlex.join([bench.python, bench.program, 'start', file])}"
        status, said = bench.connection.call(command, limit_s=_START_S)
        if status:
            told = said.splitlines() or [f"it ended with {status}"]
            self._take({"kind": "end", "outcome": "stopped", "message": told[-1], "ios": 0})
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

    def _boot(self, limit_s: float) -> str:
        """The bench's boot, empty while it does not answer."""
        try:
            return self._bench.connection.boot_id(limit_s=limit_s)
        except ConnectionLostError:
            return ""
