# SPDX-License-Identifier: Apache-2.0
"""The process that renews a reservation while its owner lives: `python -m storqual.bench.keeper`, see `Keeper`."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.bench.lease import LOST, RENEW_S, boot_clock
from storqual_core.kit.durable import replace_file
from storqual_core.kit.lease import LAPSE_S

_LIMIT_S = 30.0


def keep(order: Mapping[str, Any], *, every_s: float = RENEW_S, clock: Callable[[], float] = boot_clock) -> None:
    """Renew every `every_s` seconds until the owner is gone, the reservation is lost, or it was given back.

    After a pause so long that others may have the bench, it is lost until a renewal was answered.
    """
    record, owner, ticks = Path(order["record"]), int(order["owner"]), order["ticks"]
    tried = clock()
    while ticks is not None and not child.await_end(owner, int(ticks), every_s):
        if not record.exists():
            return
        if is_stopped(owner):
            continue
        paused = clock() - tried > LAPSE_S
        if paused:
            _note(record, lost="this control node was stopped for too long")
        ended = [_renew(argv) for argv in order["renewals"]]
        if LOST in ended:
            _note(record, lost="somebody else has taken it")
            return
        if not paused or not any(ended):
            tried = clock()
            _note(record, lost="", tried=tried)
    record.unlink(missing_ok=True)


def _renew(argv: Sequence[str]) -> int:
    try:
        return int(child.run(argv, capture_output=True, timeout=_LIMIT_S).returncode)
    except (OSError, subprocess.TimeoutExpired):
        return 1


def _note(record: Path, **fields: object) -> None:
    try:
        known = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # it was given back meanwhile
        return
    replace_file(record, json.dumps({**known, **fields}), durable=False)


def is_stopped(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in {"T", "t"}


if __name__ == "__main__":
    keep(json.load(sys.stdin))
