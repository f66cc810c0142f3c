# SPDX-License-Identifier: Apache-2.0
"""One streamed turn under way: the bench's program is started for it, and every line is kept before it is read."""

from __future__ import annotations

import json
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.robustness.derived import keep_packed
from storqual.turns.connection import Connection, ConnectionLostError
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
    """One turn of a streamed batch. `see` is told each line after it was kept.

    `folder` is where its stream stays in the run directory; what an attempt left there that was cut short is removed.
    """

    def __init__(
        self,
        bench: BenchHere,
        batch: Mapping[str, Any],
        turn: Mapping[str, Any],
        folder: Path,
        see: Callable[..., None],
    ) -> None:
        self._bench, self._batch, self._turn, self._folder, self._see = bench, batch, turn, folder, see
        self._lock = threading.Lock()
        self._clock = 0
        self._tag = secrets.token_hex(8)
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = folder / f"{turn['id']}.stream.jsonl"
        self._kept.unlink(missing_ok=True)

    @property
    def _request(self) -> Mapping[str, Any]:
        request: Mapping[str, Any] = self._turn["request"]
        return request

    def _start(self, part: str) -> str:
        """Have the bench's program run this part of the turn; the path of its stream, empty where it did not start.

        Raises ConnectionLostError.
        """
        bench, batch = self._bench, self._batch
        attempt = {"turn": self._turn["id"], "part": part, "tag": self._tag}
        file = f"{bench.state_dir}/spool/{batch['run']}/{batch['block']}.json"
        bench.connection.put(json.dumps({**batch, "attempt": attempt}).encode(), file)
        stream = str(spool_path(Path(bench.state_dir), batch["run"], batch["block"], (self._turn["id"], part)))
        # of an attempt before this one, on the same boot
        command = f"rm -f {shlex.quote(stream)}*; {shlex.join([bench.python, bench.program, 'start', file])}"
        status, said = bench.connection.call(command, limit_s=_START_S)
        if status:
            told = said.splitlines() or [f"it ended with {status}"]
            self._take({"kind": "end", "outcome": "stopped", "message": told[-1], "ios": 0})
            return ""
        return stream

    def _take(self, line: Mapping[str, Any]) -> None:
        """Keep a line, then read it; a line of the control node gets the time of the bench's clock."""
        with self._lock:
            body = {"at": time.monotonic_ns() + self._clock, **line}
            with self._kept.open("ab") as file:
                file.write(json.dumps(body, separators=(",", ":")).encode() + b"\n")
            self._see(body)

    def _keep(self) -> dict[str, str]:
        """Pack the stream; how a record names it."""
        stream = keep_packed(self._kept.with_name(f"{self._kept.name}.gz"), self._kept.read_bytes())
        self._kept.unlink()
        return dict(zip(("stream", "stream_sha256"), stream, strict=True))

    def _boot(self, limit_s: float) -> str:
        """The bench's boot, empty while it does not answer."""
        try:
            return self._bench.connection.boot_id(limit_s=limit_s)
        except ConnectionLostError:
            return ""
