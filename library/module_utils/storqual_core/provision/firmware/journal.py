# SPDX-License-Identifier: Apache-2.0
"""Where a flash stands, on disk before each step that a power cut could interrupt: `<state_dir>/firmware.json`.

saved.json tells what a bench was like before the run; this tells what was under way, so that the next run knows
whether an image may be half written, and what the settings were before it. An entry goes when the flash is proven.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping

from ...kit.durable import replace_json
from ...kit.errors import StorqualError
from ...kit.lock import BenchLock

DOWNLOADING = "downloading"
"""The image may be half written."""
DOWNLOADED = "downloaded"
"""The image is in; it runs after its activation."""

_SCHEMA = "storqual.firmware/1"


@dataclass(frozen=True)
class Entry:
    """One flash that is not proven yet: what replaces what, how far it came, in which boot, how often it was tried.

    `settings` is what the adapter or drive was set to before the first try.
    """

    phase: str
    tool: str
    component: str
    found: str
    wanted: str
    sha256: str
    boot_id: str
    tries: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    def downloaded(self) -> Entry:
        """The same, one step on."""
        return replace(self, phase=DOWNLOADED)


def _path(state_dir: Path) -> Path:
    return state_dir / "firmware.json"


def read_journal(state_dir: Path) -> dict[str, Entry]:
    """The entries, by the key that saved.json has for them too (`firmware.firmware@sas0`).

    Raises StorqualError when the file cannot be understood.
    """
    path = _path(state_dir)
    try:
        return _entries(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise StorqualError(
            f"{path} cannot be read ({problem}); it tells which firmware was being written: look at the adapters' "
            "and drives' versions, then remove the file"
        ) from problem


def _entries(body: Mapping[str, Any]) -> dict[str, Entry]:
    if body["schema"] != _SCHEMA:
        raise ValueError(f"found {body['schema']!r}, expected {_SCHEMA}")
    return {str(key): Entry(**fields) for key, fields in body["entries"].items()}


def note(lock: BenchLock, key: str, entry: Entry) -> None:
    """Put an entry in the place of the former one; it is on the disk when this returns."""
    _write(lock, {**read_journal(lock.state_dir), key: entry})


def clear(lock: BenchLock, key: str) -> None:
    """Forget an entry: its flash is proven."""
    entries = read_journal(lock.state_dir)
    if entries.pop(key, None) is not None:
        _write(lock, entries)


def _write(lock: BenchLock, entries: Mapping[str, Entry]) -> None:
    listed = {key: asdict(entry) for key, entry in entries.items()}
    replace_json(_path(lock.state_dir), {"schema": _SCHEMA, "entries": listed})
