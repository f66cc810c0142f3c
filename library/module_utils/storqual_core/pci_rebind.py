# SPDX-License-Identifier: Apache-2.0
"""Have the kernel's driver let go of an adapter and take it again, which resets it; wait for its drives."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable

from .attributes import write_attribute
from .errors import ToolError
from .machine import Machine
from .sysfs import read_drives

__all__ = ["rebind"]

_WAIT_S = 180.0
_POLL_S = 1.0


def rebind(
    pci: str,
    machine: Machine | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Unbind and bind the PCI function `pci` (`0000:3b:00.0`), and wait until every drive behind it is back.

    Everything behind it goes away meanwhile: the caller has made sure that nobody uses it. Raises ToolError when the
    function has no driver, or when its drives are not back in three minutes.
    """
    machine = machine or Machine()
    driver = machine.target(f"/sys/bus/pci/devices/{pci}/driver")
    if not driver:
        raise ToolError(f"adapter {pci} has no driver that could let go of it")
    before = _drives(machine, pci)
    folder = Path(machine.path(f"/sys/bus/pci/drivers/{driver}"))
    write_attribute(folder / "unbind", pci)
    write_attribute(folder / "bind", pci)
    deadline = clock() + _WAIT_S
    while True:
        # a driver announces each drive by itself; there is no event for the last one
        missing = before - _drives(machine, pci)
        if not missing:
            return
        if clock() >= deadline:
            raise ToolError(
                f"adapter {pci} was reset and {', '.join(sorted(missing))} did not come back; power-cycle the bench"
            )
        sleep(_POLL_S)


def _drives(machine: Machine, pci: str) -> set[str]:
    return {drive.id for drive in read_drives(machine) if drive.adapter == pci}
