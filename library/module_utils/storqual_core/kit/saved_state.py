# SPDX-License-Identifier: Apache-2.0
"""What a bench was like before the first write: `<state_dir>/saved.json`, removed only by a proven restore.

A value is remembered before the first write that changes it. The first value stays: a run that is resumed, or a
second write to the same setting, must not take its own change for the state it found. Whoever writes here shows the
bench's lock (`kit/lock.py`), so two runs cannot mix their memories.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Mapping

from .durable import fsync_folder, replace_json
from .errors import StorqualError
from .lock import BenchLock

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
    """Where the memory is."""
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
        f"{key}: found {'nothing' if found is missing else repr(found)}, expected {value!r}"
        for key, value in sorted(saved.values.items())
        for found in [read_back.get(key, missing)]
        if found is missing or found != value
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
