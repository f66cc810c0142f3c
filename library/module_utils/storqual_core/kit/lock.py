# SPDX-License-Identifier: Apache-2.0
"""The state folder of a bench: one writer at a time (`lock`, with flock), and what was there before the first write.

The kernel's lock is the truth: it is free the moment its holder is gone, however it died. What is written inside is
for people and for a program that asks whether it is its own batch that runs.

A value is remembered before the first write that changes it. The first value stays: a run that is resumed, or a
second write to the same setting, must not take its own change for the state it found. Whoever writes here shows the
bench's lock (`kit/lock.py`), so two runs cannot mix their memories.
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
from typing import Any, Iterator, Mapping

from .durable import fsync_folder, make_folder, replace_json
from .errors import StorqualError
from .lease import LeaseBook, given_number

_POLL_S = 0.1
_SETTLE_S = 2.0


@dataclass(frozen=True)
class LockHolder:
    """Who holds the lock: run id, what for, batch (empty when it is no batch), process id, since (ISO, UTC).

    `lease` is the number of the reservation under which it does, 0 without one.
    """

    run: str
    purpose: str
    block: str
    pid: int
    since: str
    lease: int = 0

    def describe(self) -> str:
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
    return state_dir / "lock"


@contextmanager
def hold_lock(
    state_dir: Path, run: str, purpose: str, *, block: str = "", wait_s: float = _SETTLE_S
) -> Iterator[BenchLock]:
    """Hold the bench for `run`, waiting up to `wait_s` seconds. Raises LockedError when it stays taken.

    Raises ReservedError where somebody else has reserved it, LeaseLostError for a command of a reservation that
    counts no longer: asked when the lock is held, so a new owner who finds it free meets nobody who asked before.

    Waiting two seconds is the least that makes sense: a follower asks with `flock -n`, and holds it for that moment.
    """
    make_folder(state_dir)
    path = lock_path(state_dir)
    handle = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + max(wait_s, 0.0)
        while not _try(handle):
            if time.monotonic() >= deadline:
                raise LockedError(path, _read(handle))
            time.sleep(_POLL_S)
        number = given_number(state_dir)
        LeaseBook(state_dir).refuse_others(number)
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        _write(handle, json.dumps(asdict(LockHolder(run, purpose, block, os.getpid(), since, number))) + "\n")
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
            lease=int(body.get("lease", 0)),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _write(handle: int, text: str) -> None:
    """Replace what is inside; never by a rename, which would leave the lock on a file without a name."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


_SCHEMA = "storqual.saved/1"


@dataclass(frozen=True)
class SavedState:
    """The run that wrote first, when (ISO, UTC), in which boot, and each value by its key."""

    run: str
    since: str
    boot_id: str
    values: Mapping[str, Any]


class ForeignStateError(StorqualError):
    """A run met the memory of another run, which was never restored."""

    def __init__(self, path: Path, saved: SavedState) -> None:
        self.saved = saved
        super().__init__(
            f"{path} holds the state before run {saved.run} ({saved.since}), which was not restored: "
            f"restore it first (playbooks/restore.yml)"
        )


def saved_path(state_dir: Path) -> Path:
    return state_dir / "saved.json"


def read_saved(state_dir: Path) -> SavedState | None:
    """What is remembered; None when nothing is. Raises StorqualError when the file cannot be understood."""
    path = saved_path(state_dir)
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StorqualError(
            f"{path} cannot be read ({problem}); it holds the state of the bench before the first write"
        ) from problem
    if not isinstance(body, dict) or body.get("schema") != _SCHEMA or not isinstance(body.get("values"), dict):
        raise StorqualError(f"{path}: found no {_SCHEMA}; it holds the state of the bench before the first write")
    return SavedState(str(body.get("run")), str(body.get("since")), str(body.get("boot_id")), body["values"])


def remember(lock: BenchLock, values: Mapping[str, Any]) -> dict[str, Any]:
    """Remember `values` as they are before the first write; returns those that were new.

    Keys are free text that names one thing, such as `drive.WCE@0x5000c50015ea71a0`. A key that is known keeps its
    first value. It is on the disk when this returns. Raises ForeignStateError when the memory is of another run.
    """
    saved = read_saved(lock.state_dir)
    if saved is not None and saved.run != lock.run:
        raise ForeignStateError(saved_path(lock.state_dir), saved)
    known = dict(saved.values) if saved else {}
    fresh = {key: value for key, value in values.items() if key not in known}
    if fresh:
        replace_json(
            saved_path(lock.state_dir),
            {
                "schema": _SCHEMA,
                "run": lock.run,
                "since": saved.since if saved else datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "boot_id": saved.boot_id if saved else _boot_id(),
                "values": {**known, **fresh},
            },
        )
    return fresh


def remove_after_proof(lock: BenchLock, read_back: Mapping[str, Any]) -> None:
    """Remove the memory of `lock.run` when `read_back` shows every remembered value in place again.

    Raises StorqualError that names each value that is not as it was; nothing is removed then. Without a memory this
    does nothing.
    """
    saved = read_saved(lock.state_dir)
    if saved is None:
        return
    if saved.run != lock.run:
        raise ForeignStateError(saved_path(lock.state_dir), saved)
    missing = object()
    wrong = [
        f"{key}: found {'nothing' if reading is missing else repr(reading)}, expected {value!r}"
        for key, value in sorted(saved.values.items())
        for reading in [read_back.get(key, missing)]
        if reading is missing or reading != value
    ]
    if wrong:
        raise StorqualError("the bench was not restored to the state in which it was found:\n" + "\n".join(wrong))
    saved_path(lock.state_dir).unlink()
    fsync_folder(lock.state_dir)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
