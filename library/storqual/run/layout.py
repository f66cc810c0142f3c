# SPDX-License-Identifier: Apache-2.0
"""Where things lie in a run directory, and how they are written: whole or not at all, one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.run.files import read_json
from storqual_core.kit.errors import BadInputError, StorqualError

RUN_SCHEMA = "storqual.run/2"
TRIAL_SCHEMA = "storqual.trial/2"
"""The `evidence` of a plan whose records of trials and programs are derived again; former plans have none."""
FORMER_RUN_SCHEMA = "storqual.run/1"
"""Of runs without a digest of their plan, an end of their chain, and records of their launches."""
RUN_FILE = "run.json"
SAMPLES = "samples.jsonl"
CHECKS = "checks.jsonl"
CHECK_INPUT = "check:"
"""Before the name of a file: the input of a run that is a hand-written check."""
EVENTS = "events.jsonl"
INPUTS = "inputs"
BLOCKS = "blocks"
RAW = "raw"
_APPENDED = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ANNEX = "annex"
"""What is added to a run after it was signed: judgements by other rules, notes. No sign-off is about it."""


def now() -> str:
    """The time in UTC as ISO 8601 with milliseconds, as every file of a run writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sha256_of(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def dump_line(value: Mapping[str, Any]) -> bytes:
    """One line of a `.jsonl` file; NaN is refused, because other people's parsers refuse it. Raises ValueError."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class NoSpaceError(StorqualError):
    """The disk, or what this user may have of it, is used up; what was written before is whole."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place}: no space left on this disk; what was written before is kept: free some space, then resume the"
            " campaign with `storqual qualify --resume`, or repeat the command"
        )


def is_full(problem: BaseException) -> bool:
    """Whether a write failed because there is no space left."""
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Raises StorqualError for the kernel's error: NoSpaceError when there is no space left for `path`."""
    try:
        yield
    except OSError as problem:
        if is_full(problem):
            raise NoSpaceError(str(path)) from None
        raise StorqualError(f"{path}: cannot be written ({problem.strerror})") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write `path` so that a reader, or a machine that loses power, sees the old file or the whole new one.

    Raises NoSpaceError.
    """
    with room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Make every file below `folder` durable; all are written before the first is waited for: that is faster."""
    for path in sorted(folder.rglob("*")):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    _sync_folder(folder)


def dump_json(value: Mapping[str, Any], *, ascii_only: bool = False) -> bytes:
    """`value` as readable JSON. Raises ValueError for NaN and infinity."""
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, indent=1).encode() + b"\n"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` as readable JSON, atomically. Raises ValueError for NaN and infinity."""
    write_bytes(path, dump_json(value))


def append_lines(path: Path, lines: bytes) -> None:
    """Append whole lines and make them durable; a torn last line (a writer that was killed) is cut off first.

    A torn line was never acknowledged to anybody: its sample is still in the bench's spool, its event happens again.
    The caller holds `locked`. Raises NoSpaceError.
    """
    with room_for(path), os.fdopen(os.open(path, _APPENDED, 0o644), "ab+") as file:
        size = file.seek(0, os.SEEK_END)
        keep = _end_of_last_line(file.fileno(), size)
        if keep < size:
            file.truncate(keep)
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def is_signed(run: Path) -> bool:
    """Whether somebody has signed this run: it is not changed any more, or the signature would be worth nothing."""
    return any(path.name != "signoff.manifest.json" for path in run.glob("signoff*.json"))


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Hold the run directory against other writers on this machine; waits.

    Raises BadInputError when it is none, or is signed: what people signed takes no more writers.
    """
    if is_signed(run):
        raise BadInputError(
            [f"{run}: this run is signed, so nothing is written to it; only `storqual judge` works on it"]
        )
    try:
        handle = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        raise BadInputError([f"{run}: no run directory ({problem.strerror})"]) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_run_json(run: Path) -> dict[str, Any]:
    """`run.json` of a run directory. Raises BadInputError when there is none or it is of another schema."""
    path = run / RUN_FILE
    try:
        document = read_json(run, RUN_FILE)
    except OSError:
        raise BadInputError([f"{path}: cannot be read; this is not a run directory"]) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema not in (RUN_SCHEMA, FORMER_RUN_SCHEMA):
        raise BadInputError([f"{path}:1: found schema {schema!r}, expected {RUN_SCHEMA!r} or {FORMER_RUN_SCHEMA!r}"])
    return dict(document)


def _end_of_last_line(handle: int, size: int) -> int:
    """The offset after the last line end in the first `size` bytes."""
    step = 65536
    position = size
    while position > 0:
        begin = max(0, position - step)
        found = os.pread(handle, position - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        position = begin
    return 0


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
