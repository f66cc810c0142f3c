# SPDX-License-Identifier: Apache-2.0
"""Ask benches over the inventory's own connection: a playbook that only looks, one JSON answer per bench."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storqual.ansible_run import run_playbook
from storqual_core.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ask_benches"]


def ask_benches(
    playbook: str, inventories: Sequence[str], *, limit: str | None = None, variables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The answers by bench of `playbooks/<playbook>`, which writes `<folder>/<bench>.json` where it is told to.

    The folder is the variable `answers_folder`. Raises StorqualError with Ansible's last words when no bench answers.
    """
    with tempfile.TemporaryDirectory(prefix="storqual-answers-") as folder:
        log = Path(folder) / "log"
        status = run_playbook(
            playbook,
            inventories=inventories,
            variables={**(variables or {}), "answers_folder": folder},
            options=["--limit", limit] if limit else [],
            output=log,
        )
        found = {
            path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.json"))
        }
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if not found:
        raise StorqualError(f"no bench answered (status {status}): {said[-1] if said else 'Ansible said nothing'}")
    return found
