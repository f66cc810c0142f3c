# SPDX-License-Identifier: Apache-2.0
"""Timers and services that look for packages by themselves: still while a bench is measured, then as they were.

They read repositories and write to the system disk when it suits them, and hold the lock of packages meanwhile.
"""

from __future__ import annotations

from typing import Any, Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.lock import remember
from ..kit.machine import Machine
from ..kit.results import Provisioned, partial_errors
from .engine import Call, StepOutcome

UNITS = (
    "dnf-makecache.timer",
    "dnf-automatic.timer",
    "dnf-automatic-download.timer",
    "dnf-automatic-install.timer",
    "dnf-automatic-notifyonly.timer",
    "packagekit-background.timer",
    "packagekit.service",
)
PREFIX = "unit:"
_FOLDERS = ("/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system")
_TIMEOUT = 90.0
_ACTIVE = ("active", "activating", "reloading")
_STATE = (*_ACTIVE, "inactive", "failed", "deactivating", "unknown", "maintenance", "refreshing")


def _active(runner: Runner, units: Sequence[str]) -> list[str]:
    """Those that run, of `units`. Raises ToolError."""
    if not units:
        return []
    # the status tells of the last one that does not run
    answer = runner(["systemctl", "is-active", *units], timeout=_TIMEOUT)
    states = answer.stdout.split()
    if len(states) != len(units) or not set(states) <= set(_STATE):
        raise answer.failure(f"systemd does not tell whether {', '.join(units)} run", of="stdout")
    return [unit for unit, state in zip(units, states) if state in _ACTIVE]


def hold_services(call: Call, machine: Machine, runner: Runner) -> dict[str, Any]:
    """Stop those that run; the module's result. Raises ToolError before anything is stopped, else PartialError."""
    installed = [unit for unit in UNITS if any(machine.exists(f"{folder}/{unit}") for folder in _FOLDERS)]
    running = _active(runner, installed)
    steps: list[str] = []
    settings = [Provisioned(f"os.{PREFIX}{unit}", None, "active", "inactive", changed=True) for unit in running]
    if running and not call.check:
        with call.lock("package services") as lock, partial_errors(steps):
            if lock is not None:
                remember(lock, {f"os.{PREFIX}{unit}@bench": "active" for unit in running})
            runner(["systemctl", "stop", *running], timeout=_TIMEOUT).expect()
            steps += [f"{unit} stopped until the bench is restored" for unit in running]
            left = _active(runner, running)
            if left:
                raise ToolError(f"{', '.join(left)} still run after systemd was told to stop them")
    outcome = StepOutcome(settings, steps or [f"{unit} would be stopped" for unit in running])
    return outcome.result()


def give_back(units: Sequence[str], runner: Runner, *, check: bool) -> StepOutcome:
    """Start what ran when the bench was found. Raises ToolError."""
    running = _active(runner, units)
    idle = [unit for unit in units if unit not in running]
    if idle and not check:
        runner(["systemctl", "start", *idle], timeout=_TIMEOUT).expect()
        running = _active(runner, units)
    states = {unit: "active" if unit in running else "inactive" for unit in units}
    settings = [
        Provisioned(
            f"os.{PREFIX}{unit}", "active", "inactive" if unit in idle else "active", state, changed=unit in idle
        )
        for unit, state in states.items()
    ]
    return StepOutcome(settings, [f"{unit} started again" for unit in idle if states[unit] == "active"])
