# SPDX-License-Identifier: Apache-2.0
"""Have a driver start again: for one adapter (unbind and bind), or the whole module (modprobe).

Both take every drive behind it away for some seconds; whether that is allowed was decided before (`adapter_drives`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterable, Sequence

from .adapter_drives import behind, wait_for_drives
from .attributes import read_attribute, write_attribute
from .command import Runner
from .errors import ToolError
from .machine import Machine

__all__ = ["adapters_of_module", "bind_unbound", "driver_of", "holders_of", "rebind", "reload_module"]

_LIMIT_S = 120.0


def driver_of(machine: Machine, pci: str) -> str:
    """The driver that is bound to a PCI function; empty when none is."""
    return machine.target(f"/sys/bus/pci/devices/{pci}/driver")


def adapters_of_module(machine: Machine, module: str) -> list[str]:
    """The PCI addresses that a loaded module drives, in order; a virtio driver's by the function below it."""
    folder = f"/sys/module/{module.replace('-', '_')}/drivers"
    found: set[str] = set()
    for driver in machine.names(folder):
        for device in machine.names(f"{folder}/{driver}"):
            if device.count(":") == 2:
                found.add(device)
            elif device.startswith("virtio"):
                place = machine.real(f"{folder}/{driver}/{device}")
                found.add(os.path.basename(os.path.dirname(place)))  # noqa: PTH119, PTH120 - a path of the machine
    return sorted(found)


def holders_of(machine: Machine, module: str) -> list[str]:
    """The modules that need a loaded module, so that it cannot be taken out."""
    return machine.names(f"/sys/module/{module.replace('-', '_')}/holders")


def rebind(machine: Machine, pci: str, limit_s: float = _LIMIT_S) -> None:
    """Unbind an adapter from its driver and bind it again; its drives are back then. Raises ToolError."""
    driver = driver_of(machine, pci)
    if not driver:
        raise ToolError(f"no driver is bound to the adapter at {pci}, so none can be started again")
    drives = [drive.id for drive in behind(machine, [pci])]
    folder = machine.path(f"/sys/bus/pci/drivers/{driver}")
    write_attribute(f"{folder}/unbind", pci)
    write_attribute(f"{folder}/bind", pci)
    if driver_of(machine, pci) != driver:
        raise ToolError(f"driver {driver} did not take the adapter at {pci} again: the kernel's log says why")
    wait_for_drives(machine, drives, limit_s)


def bind_unbound(machine: Machine, adapters: Iterable[str]) -> list[str]:
    """Have the kernel find a driver for those of `adapters` that have none; which those were. Raises ToolError.

    A program that dies between the halves of `rebind` leaves an adapter so.
    """
    left = [pci for pci in adapters if machine.exists(f"/sys/bus/pci/devices/{pci}") and not driver_of(machine, pci)]
    for pci in left:
        write_attribute(machine.path("/sys/bus/pci/drivers_probe"), pci)
    return left


def reload_module(
    machine: Machine, runner: Runner, module: str, words: Sequence[str] = (), limit_s: float = _LIMIT_S
) -> None:
    """Take a module out and load it again, with `words` as further parameters; its drives are back after it.

    Raises ToolError; a module that is out and does not load again is named with the kernel's reason.
    """
    adapters = adapters_of_module(machine, module)
    drives = [drive.id for drive in behind(machine, adapters)]
    state = machine.path(f"/sys/module/{module.replace('-', '_')}/initstate")
    if Path(state).exists():
        runner(["modprobe", "-r", module], timeout=limit_s).expect()
    if read_attribute(state) is not None:
        raise ToolError(f"module {module} is still loaded after `modprobe -r {module}`")
    runner(["modprobe", module, *words], timeout=limit_s).expect()
    if read_attribute(state) is None:
        raise ToolError(f"module {module} is not loaded after `modprobe {module}`")
    lost = [pci for pci in adapters if not driver_of(machine, pci)]
    if lost:
        raise ToolError(f"after it was loaded again, module {module} drives no more: {', '.join(lost)}")
    wait_for_drives(machine, drives, limit_s)
