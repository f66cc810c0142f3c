# SPDX-License-Identifier: Apache-2.0
"""Whose packages a bench has; what looks for them by itself is still while it is measured, then as it was.

Timers and services read repositories and write to the system disk when it suits them, holding the lock of packages.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Sequence

from ..kit.command import Runner, find_program
from ..kit.errors import StorqualError, ToolError
from ..kit.lock import remember
from ..kit.machine import Machine
from ..kit.results import Provisioned, partial_errors
from ..tools import TOOLS
from ..tools.capabilities import Packages
from .engine import Call, StepOutcome

_LISTS = "/var/lib/dpkg/info"
_PROGRAMS = {"rpm": "rpm", "dpkg": "dpkg-query"}


def package_manager(machine: Machine, runner: Runner, release: str) -> tuple[str, str]:
    """`dpkg` or `rpm`, whose package the image of the running kernel is from, and the evidence. Raises nothing.

    Where it is from no package, the name is empty, and the evidence is what was looked at.
    """
    places = [f"/boot/vmlinuz-{release}", f"/lib/modules/{release}/vmlinuz", f"/usr/lib/modules/{release}/vmlinuz"]
    images = [place for place in places if machine.exists(place)]
    # a list of files lies beside each package of dpkg, so that it need not be asked
    for name in machine.names(_LISTS):
        if name.endswith(".list") and release and release in name:
            owned = sorted(set(images).intersection(machine.lines(f"{_LISTS}/{name}")))
            if owned:
                return "dpkg", f"{owned[0]} is from package {name[: -len('.list')]}"
    for tool, program in _PROGRAMS.items():
        packages: Packages = TOOLS[tool]()
        for image in images if find_program(machine, program) else ():
            with suppress(StorqualError):
                package = packages.owner(runner, image)
                if package:
                    return tool, f"{image} is from package {package}"
    return "", f"{', '.join(images or places)} {'is from no package of rpm or dpkg' if images else 'are not there'}"


def packages_of(machine: Machine, runner: Runner, release: str) -> Packages:
    """What installs packages on this bench; with a kernel that is from no package, the one that is installed."""
    name, _ = package_manager(machine, runner, release)
    alone = find_program(machine, "rpm") and not find_program(machine, "dpkg-query")
    tool: Packages = TOOLS[name or ("rpm" if alone else "dpkg")]()
    return tool


UNITS = (
    *("dnf-makecache.timer", "dnf-automatic.timer", "dnf-automatic-download.timer", "dnf-automatic-install.timer"),
    *("dnf-automatic-notifyonly.timer", "packagekit-background.timer", "packagekit.service"),
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
