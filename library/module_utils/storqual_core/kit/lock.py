# SPDX-License-Identifier: Apache-2.0
"""One writer on a bench at a time: `<state_dir>/lock`, held with flock, with the holder's name inside.

The kernel's lock is the truth: it is free the moment its holder is gone, however it died. What is written inside is
for people and for a program that asks whether it is its own batch that runs.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Iterator

from .durable import make_folder
from .errors import StorqualError

_POLL_S = 0.1
_SETTLE_S = 2.0


@dataclass(frozen=True)
class LockHolder:
    """Who holds the lock: run id, what for, batch (empty when it is no batch), process id, since (ISO, UTC)."""

    run: str
    purpose: str
    block: str
    pid: int
    since: str

    def describe(self) -> str:
        """For a message."""
        return f"run {self.run or '(not said)'}, {self.purpose}, process {self.pid}, since {self.since}"


@dataclass(frozen=True)
class BenchLock:
    """Proof that this process holds the lock of `state_dir` for `run`; what needs the lock asks for one."""

    state_dir: Path
    run: str


class LockedError(StorqualError):
    """Somebody asked to change a bench that another process is changing or measuring."""

    def __init__(self, path: Path, holder: LockHolder | None) -> None:
        self.holder = holder
        who = holder.describe() if holder else "an unknown process"
        super().__init__(f"{path} is held by {who}; wait for it, or stop it, then try again")


def lock_path(state_dir: Path) -> Path:
    """Where the lock of a bench is."""
    return state_dir / "lock"


@contextmanager
def hold_lock(
    state_dir: Path, run: str, purpose: str, *, block: str = "", wait_s: float = _SETTLE_S
) -> Iterator[BenchLock]:
    """Hold the bench for `run`, waiting up to `wait_s` seconds. Raises LockedError when it stays taken.

    Waiting two seconds is the least that makes sense: a follower asks with `flock -n`, and holds it for that moment.
    """
    make_folder(state_dir)
    path = lock_path(state_dir)
    handle = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + max(wait_s, 0.0)
        while not _try(handle):
            if time.monotonic() >= deadline:
                raise LockedError(path, _read(handle))
            time.sleep(_POLL_S)
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        _write(handle, json.dumps(asdict(LockHolder(run, purpose, block, os.getpid(), since))) + "\n")
        try:
            yield BenchLock(state_dir, run)
        finally:
            _write(handle, "")
    finally:
        os.close(handle)


def lock_holder(state_dir: Path) -> LockHolder | None:
    """Who holds the bench now; None when nobody does.

    A holder that has not written its name yet, or a follower that only probes, is given two seconds. When the lock
    stays taken by somebody without a name, LockedError is raised.
    """
    path = lock_path(state_dir)
    try:
        handle = os.open(str(path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        deadline = time.monotonic() + _SETTLE_S
        while not _try(handle):
            holder = _read(handle)
            if holder is not None:
                return holder
            if time.monotonic() >= deadline:
                raise LockedError(path, None)
            time.sleep(_POLL_S)
        return None
    finally:
        os.close(handle)


def _try(handle: int) -> bool:
    """Take the kernel's lock if it is free."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _read(handle: int) -> LockHolder | None:
    """What the holder wrote; None when nothing (readable) is there."""
    try:
        body = json.loads(os.pread(handle, 4096, 0).decode("utf-8"))
        return LockHolder(
            run=str(body["run"]),
            purpose=str(body["purpose"]),
            block=str(body["block"]),
            pid=int(body["pid"]),
            since=str(body["since"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _write(handle: int, text: str) -> None:
    """Replace what is inside; never by a rename, which would leave the lock on a file without a name."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)
