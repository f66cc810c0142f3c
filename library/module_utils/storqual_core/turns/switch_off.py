# SPDX-License-Identifier: Apache-2.0
"""Links, bays and slots switched off under load and on again: by attributes that the kernel has for them.

What is about to be switched off is on disk before it is, so that it is switched on again before a bench is changed or
restored, also where the bench program was killed meanwhile.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Sequence

from ..host.counters import read_phys
from ..host.reach import functions_in_slot
from ..host.sysfs import read_drives
from ..kit.durable import replace_file
from ..kit.errors import ToolError
from ..kit.machine import write_attribute
from .aim import Aim, Tell

MEMORY = "switched_off"
"""The file in the state folder that names what is off: a line each, the value for on and the attribute."""
_LOOK_S = 0.05


@dataclass(frozen=True)
class Switch:
    """An attribute of the kernel with its values for off and on."""

    path: str
    off: str
    on: str


def phys_of(aim: Aim) -> list[Switch]:
    """The phys that the drive is linked through. Raises ToolError without any."""
    phys = read_phys(aim.machine, aim.drive.name)
    if not phys:
        raise ToolError(f"drive {aim.drive.id} is on no SAS link")
    return [Switch(f"{phy}/enable", "0", "1") for phy in phys]


def bay_of(aim: Aim) -> list[Switch]:
    """The power of the enclosure's bay that holds the drive. Raises ToolError when no enclosure tells of it."""
    machine, device = aim.machine, aim.machine.real(f"/sys/block/{aim.drive.name}/device")
    for enclosure in machine.names("/sys/class/enclosure"):
        for bay in machine.names(f"/sys/class/enclosure/{enclosure}"):
            place = f"/sys/class/enclosure/{enclosure}/{bay}"
            if device and machine.real(f"{place}/device") == device and machine.exists(f"{place}/power_status"):
                return [Switch(f"{place}/power_status", "off", "on")]
    raise ToolError(f"no enclosure has a power switch for the bay of drive {aim.drive.id}")


def slot_of(aim: Aim) -> list[Switch]:
    """The power of the PCI slot that holds the adapter. Raises ToolError when the slot has none to switch."""
    machine, pci = aim.machine, aim.drive.adapter
    for slot in machine.names("/sys/bus/pci/slots"):
        place = f"/sys/bus/pci/slots/{slot}"
        if pci in functions_in_slot(machine, slot) and machine.exists(f"{place}/power"):
            return [Switch(f"{place}/power", "0", "1")]
    raise ToolError(f"the kernel has no power switch for the slot of the adapter at {pci}")


def switch_off(find: Callable[[Aim], Sequence[Switch]], gone: str) -> Callable[[Aim, Tell], None]:
    """The way that switches off what `find` finds; `gone` is the place in sysfs that goes by it."""

    def way(aim: Aim, tell: Tell) -> None:
        machine, switches = aim.machine, find(aim)
        place = gone.format(number=aim.drive.number, adapter=aim.drive.adapter)
        with _switched_on_again(aim, switches):
            for one in switches:
                write_attribute(machine.path(one.path), one.off)
            tell("switched_off", ", ".join(one.path for one in switches))
            _await(aim, lambda: not machine.exists(place), f"{place} did not go")
            tell("gone", f"{place} is no longer there")
            time.sleep(aim.away_s)
        back = f"drive {aim.drive.id} did not come back"
        _await(aim, lambda: any(one.id == aim.drive.id for one in read_drives(machine)), back)
        tell("back", f"drive {aim.drive.id} is in sysfs again")

    return way


@contextmanager
def _switched_on_again(aim: Aim, switches: Sequence[Switch]) -> Iterator[None]:
    memory = Path(aim.machine.path(aim.state_dir)) / MEMORY
    replace_file(memory, "".join(f"{one.on} {one.path}\n" for one in switches))
    try:
        yield
    finally:
        for one in switches:
            write_attribute(aim.machine.path(one.path), one.on)
        with suppress(FileNotFoundError):
            memory.unlink()


def _await(aim: Aim, seen: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + aim.limit_s
    while not seen():
        if time.monotonic() > end:
            raise ToolError(f"{what} within {aim.limit_s:g} s")
        time.sleep(_LOOK_S)
