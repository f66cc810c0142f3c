# SPDX-License-Identifier: Apache-2.0
"""Which drivers have yet to start again, so that they work with what was written for them.

A driver is named by the PCI address of its adapter (unbound and bound again) or by its module (loaded again). It is
written down before the write that makes it so: a program that dies between the write and the start, or between the
halves of a start, would otherwise find everything as declared the next time, with a driver that works with something
else or is not there. A boot starts every driver, so what was noted in another boot is done.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Collection

from .durable import replace_json
from .errors import StorqualError
from .machine import Machine

__all__ = ["forget_start", "note_starts", "pending_starts"]

_FILE = "driver_starts.json"


def pending_starts(machine: Machine, state_dir: str) -> frozenset[str]:
    """The drivers that have not started since something was written for them. Raises StorqualError for a bad file."""
    path = Path(state_dir) / _FILE
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return frozenset(map(str, body["drivers"])) if body["boot_id"] == _boot(machine) else frozenset()
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise StorqualError(f"{path} cannot be read ({problem}); boot the bench, then remove it") from problem


def note_starts(machine: Machine, state_dir: str, drivers: Collection[str]) -> None:
    """These must start; on the disk when this returns. The caller holds the bench's lock."""
    _write(machine, state_dir, pending_starts(machine, state_dir) | frozenset(drivers))


def forget_start(machine: Machine, state_dir: str, driver: str) -> None:
    """`driver` has started."""
    _write(machine, state_dir, pending_starts(machine, state_dir) - {driver})


def _write(machine: Machine, state_dir: str, drivers: Collection[str]) -> None:
    path = Path(state_dir) / _FILE
    if drivers:
        replace_json(path, {"boot_id": _boot(machine), "drivers": sorted(drivers)})
    elif path.exists():
        path.unlink()


def _boot(machine: Machine) -> str:
    return machine.text("/proc/sys/kernel/random/boot_id")
