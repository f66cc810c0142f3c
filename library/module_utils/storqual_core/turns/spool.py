# SPDX-License-Identifier: Apache-2.0
"""The spool: what a batch tells, one JSON line each, in one of two modes.

A durable spool has finished records, each on the disk before the next launch begins. A streamed one lies in memory
(`/run`) and is followed while it is written: what a bench knew when its power went is known by what had been sent off
it, never by what it finds again.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from ..kit.durable import fsync_folder, make_folder
from ..kit.errors import StorqualError

STREAMS = Path("/run/storqual/turns")
BATCH_S = 0.1
ALIVE_S = 5.0
"""After so long without a line a stream says that its turn goes on."""
ALIVE = "alive"
"""I/Os of a stream are told together, so far apart: else telling would cost more than doing them."""


def spool_path(state_dir: Path, run: str, block: str, attempt: tuple[str, str] | None) -> Path:
    """Where a batch's lines go; `attempt` are turn and part of a streamed one (see `batch_file.Attempt`)."""
    if attempt is None:
        return state_dir / "spool" / run / f"{block}.jsonl"
    turn, part = attempt
    return STREAMS / run / block / f"{turn}.{part}.jsonl"


class Spooled:
    """What a spool held when it was opened: its first start line, its end line, the indexes of its samples.

    `preconditioned` are the stages of preconditioning that were done.
    """

    def __init__(self) -> None:
        self.start: Mapping[str, Any] | None = None
        self.end: Mapping[str, Any] | None = None
        self.done: set[int] = set()
        self.preconditioned: set[str] = set()
        self.starts = 0


class Spool:
    """Appends records; safe from several threads. Opening it drops a torn last line: that was never finished.

    What a spool has that is not `durable` is in the file, and not on a disk, when an append returns.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        make_folder(path.parent)
        fresh = not path.exists()
        mode = 0o644 if durable else 0o600
        self._handle = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
        self._lock = threading.Lock()
        self._sync = os.fsync if durable else _no_sync
        self.path = path
        self.held = Spooled()
        good = 0
        for line, after in _lines(path):
            good = after
            _note(self.held, line)
        if os.fstat(self._handle).st_size != good:
            os.ftruncate(self._handle, good)
            self._sync(self._handle)
        if fresh and durable:
            fsync_folder(path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one record; it is on the disk when this returns."""
        self.append_all([record])

    def append_all(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records with one wait for the disk. Raises StorqualError.

        A write that fails half way (a full disk) is taken back, so that the spool stays readable.
        """
        data = b"".join(
            json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n" for record in records
        )
        with self._lock:
            before = os.fstat(self._handle).st_size
            try:
                done = 0
                while done < len(data):
                    done += os.write(self._handle, data[done:])
                self._sync(self._handle)
            except OSError as problem:
                os.ftruncate(self._handle, before)
                raise StorqualError(f"{self.path}: cannot be written: {problem.strerror}") from problem

    def reopen(self) -> None:
        """Take back the end line of a batch that goes on: what follows is the same batch."""
        size = 0
        for line, after in _lines(self.path):
            if line.get("kind") != "end":
                size = after
        if size != os.fstat(self._handle).st_size:
            os.ftruncate(self._handle, size)
            self._sync(self._handle)
        self.held.end = None

    def close(self) -> None:
        os.close(self._handle)


def _no_sync(_handle: int) -> None:
    """For what lies in memory."""


class Stream:
    """The lines of one turn as they come; `at` in them is the monotonic clock in nanoseconds.

    I/Os are told in batches. `told` counts them, so that who follows the stream knows that none is missing. A turn
    that has nothing to tell, because it waits, says at least that.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._ios: list[list[Any]] = []
        self.told = 0
        self._last = time.monotonic()
        self._waiting = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._batches, daemon=True, name="stream")
        self._thread.start()

    def line(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON holds
        self._last = time.monotonic()
        self._spool.append({"kind": kind, "at": time.monotonic_ns(), **fields})

    def tell(self, kind: str, sequence: int, sector: int, length: int, begin: int, end: int, problem: int) -> None:
        with self._waiting:
            self.told += 1
            self._ios.append([kind, sequence, sector, length, begin, end, problem])

    def _batches(self) -> None:
        while not self._stop.wait(BATCH_S):
            self.send()
            if time.monotonic() - self._last >= ALIVE_S:
                self.line(ALIVE, ios=self.told)

    def send(self) -> None:
        with self._waiting:
            batch, self._ios = self._ios, []
        if batch:
            self.line("io", ios=batch)

    def close(self) -> None:
        """Write what is left; the spool stays open."""
        self._stop.set()
        self._thread.join()
        self.send()


def read_spool(path: Path) -> Spooled:
    """What a spool holds; nothing when it is not there. A torn last line is left out, not removed."""
    held = Spooled()
    for line, _ in _lines(path):
        _note(held, line)
    return held


def _note(held: Spooled, line: Mapping[str, Any]) -> None:
    kind = line.get("kind")
    if kind == "start":
        held.start = held.start or line
        held.starts += 1
        held.end = None
    elif kind == "end":
        held.end = line
    elif kind == "precondition":
        held.preconditioned.add(str(line["stage"]))
    elif kind == "sample":
        held.done.add(int(str(line["sample"]["id"]).rpartition("/")[2]))


def _lines(path: Path) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Each record with the offset after it, one at a time. Raises StorqualError for damage that is no torn end."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        after = 0
        for number, data in enumerate(file, start=1):
            if not data.endswith(b"\n"):
                return
            after += len(data)
            try:
                line = json.loads(data)
            except ValueError:
                line = None
            if not isinstance(line, dict) or "kind" not in line:
                raise StorqualError(f"{path}, line {number}: is not a spool record: {data[:80]!r}")
            yield line, after
