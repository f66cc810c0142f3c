# SPDX-License-Identifier: Apache-2.0
"""Look at what differs on benches from a drop, without touching them: `setup.yml --check`, and what it reports."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from storqual.ansible_run import run_playbook
from storqual.ask_benches import read_events, silent_benches
from storqual_core.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Drift", "look_for_drift"]


@dataclass(frozen=True)
class Drift:
    """Differences by bench, none for one that is as declared; why a bench was not looked at, by bench."""

    found: Mapping[str, Sequence[str]]
    unseen: Mapping[str, str]


def look_for_drift(inventories: Sequence[str], drop: str, *, limit: str | None = None) -> Drift:
    """Compare benches with `drop`. Raises StorqualError with Ansible's last words when no bench could be compared."""
    with tempfile.TemporaryDirectory(prefix="storqual-drift-") as folder:
        log, events = Path(folder) / "log", Path(folder) / "events.jsonl"
        run_playbook(
            "setup.yml",
            inventories=inventories,
            variables={"drop": drop},
            options=["--check", *(["--limit", limit] if limit else [])],
            environment={"STORQUAL_PROGRESS_FILE": str(events)},
            output=log,
        )
        told = read_events(events)
        reports = [event for event in told if event.get("kind") == "drift"]
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if not reports:
        why = next((f"{bench}: {reason}" for bench, reason in silent_benches(told).items()), "")
        last = said[-1] if said else "Ansible said nothing"
        raise StorqualError(f"no bench could be compared with {drop}: {why or last}")
    return Drift(reports[-1]["benches"], reports[-1]["unseen"])
