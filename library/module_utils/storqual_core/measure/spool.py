# SPDX-License-Identifier: Apache-2.0
"""The spool: finished records of a batch, one JSON line each, on the disk before the next launch begins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from ..kit.durable import fsync_folder, make_folder
from ..kit.errors import StorqualError


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
    """Appends records. Opening it drops a torn last line: a crash can only have cut what was never finished."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        fresh = not path.exists()
        self._handle = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.path = path
        self.held = Spooled()
        good = 0
        for line, after in _lines(path):
            good = after
            _note(self.held, line)
        if os.fstat(self._handle).st_size != good:
            os.ftruncate(self._handle, good)
            os.fsync(self._handle)
        if fresh:
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
        before = os.fstat(self._handle).st_size
        try:
            done = 0
            while done < len(data):
                done += os.write(self._handle, data[done:])
            os.fsync(self._handle)
        except OSError as problem:
            os.ftruncate(self._handle, before)
            raise StorqualError(f"{self.path}: cannot be written: {problem.strerror}") from problem

    def reopen(self) -> None:
        """Take back the end line of a batch that goes on: what follows is the same batch."""
        kept = 0
        for line, after in _lines(self.path):
            if line.get("kind") != "end":
                kept = after
        if kept != os.fstat(self._handle).st_size:
            os.ftruncate(self._handle, kept)
            os.fsync(self._handle)
        self.held.end = None

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def read_spool(path: Path) -> Spooled:
    """What a spool holds; nothing when it is not there. A torn last line is left out, not removed."""
    held = Spooled()
    for line, _ in _lines(path):
        _note(held, line)
    return held


def read_from(path: Path, offset: int) -> tuple[str, int]:
    """The complete lines from byte `offset` on, and the offset after them; a torn last line is left for later."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return "", offset
    data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8"), offset + len(data)


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
