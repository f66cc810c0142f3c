# SPDX-License-Identifier: Apache-2.0
"""Ask benches over the inventory's own connection: a playbook that only looks, one JSON answer per bench."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.bench.ansible_run import run_playbook
from storqual.inputs.lab import missing_inventories
from storqual.inputs.shape import raise_all
from storqual_core.kit.errors import StorqualError


@dataclass(frozen=True)
class Answers:
    """What each bench answered, and why each of the others did not."""

    found: Mapping[str, Any]
    silent: Mapping[str, str]


def ask_every_bench(
    playbook: str, inventories: Sequence[str], *, limit: str | None = None, variables: Mapping[str, Any] | None = None
) -> Answers:
    """The answers by bench of `playbooks/<playbook>`, which writes `<folder>/<bench>.json` where it is told to.

    The folder is the variable `answers_folder`. Raises StorqualError with the reason of each bench, or with Ansible's
    last words, when no bench answers; BadInputError for an inventory that is not there.
    """
    raise_all(missing_inventories([Path(source) for source in inventories if "," not in source]))
    with tempfile.TemporaryDirectory(prefix="storqual-answers-") as folder:
        log, events = Path(folder) / "log", Path(folder) / "events.jsonl"
        status = run_playbook(
            playbook,
            inventories=inventories,
            variables={**(variables or {}), "answers_folder": folder},
            options=["--limit", limit] if limit else [],
            environment={"STORQUAL_PROGRESS_FILE": str(events)},
            output=log,
        )
        found = {
            path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.json"))
        }
        silent = {bench: why for bench, why in silent_benches(read_events(events)).items() if bench not in found}
        log_lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["Ansible said nothing"]
    if not found:
        raise StorqualError(none_of_them(f"no bench answered (status {status})", silent, log_lines[-1]))
    return Answers(found, silent)


def read_events(events: Path) -> list[dict[str, Any]]:
    """The event stream of a play (STORQUAL_PROGRESS_FILE); nothing where the play came to none."""
    if not events.is_file():
        return []
    return [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]


def silent_benches(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why benches did not answer, from the events of a play: the first line of each failure."""
    failures = [event for event in events if event.get("kind") in ("failed", "unreachable")]
    return {
        str(event.get("host")): (str(event.get("message") or "").strip() or "no message").splitlines()[0]
        for event in failures
    }


def none_of_them(sentence: str, silent: Mapping[str, str], otherwise: str) -> str:
    """`sentence` with a line for each bench; behind it what is known `otherwise` where no bench has a reason."""
    if not silent:
        return f"{sentence}: {otherwise}"
    return "\n".join([f"{sentence}:", *(f"{bench} did not answer: {why}" for bench, why in sorted(silent.items()))])


def ask_benches(
    playbook: str, inventories: Sequence[str], *, limit: str | None = None, variables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return dict(ask_every_bench(playbook, inventories, limit=limit, variables=variables).found)
