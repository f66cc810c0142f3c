# SPDX-License-Identifier: Apache-2.0
"""Whether a fault may reach what it reaches: claimed drives and tested adapters only.

A reset of a bus or an adapter is felt by every drive behind it, whatever drive it was aimed at. So each scope is
first turned into the drives it touches (`host/reach.py`, as for any step that erases or takes away), and all of them
must be claimed, unused by others, and none of the system's.
"""

from __future__ import annotations

from typing import Sequence

from ..guard.claims import Claim
from ..guard.hold import STATE_DIR, check
from ..host.in_use import system_disks
from ..host.reach import functions_of, functions_reached, reached
from ..host.sysfs import Drive, read_drives
from ..kit.command import Runner
from ..kit.errors import GuardRefusalError
from ..kit.machine import Machine

_BRIDGE, _STORAGE = "0x0604", ("0x01", "0x0c04")
"""What the class of a PCI function begins with."""


def aimed_at(drives: Sequence[Drive], drive: str, adapter: str) -> Drive | None:
    """The drive of that id; of several paths to it the one through the PCI function `adapter`."""
    found = [one for one in drives if one.id == drive]
    return min(found, key=lambda one: one.adapter != adapter) if found else None


def _other_functions(machine: Machine, drives: Sequence[Drive], pci: str, scope: str) -> list[str]:
    """What else is reached: no bridge, no adapter with drives and no storage function of the same card."""
    with_drives = {name for drive in drives for name in functions_of(machine, drive)}
    card, found = pci.rpartition(".")[0], []
    for name in functions_reached(machine, pci, scope):
        known = (_BRIDGE, *_STORAGE) if name.rpartition(".")[0] == card else (_BRIDGE,)
        if name not in with_drives and not machine.text(f"/sys/bus/pci/devices/{name}/class").startswith(known):
            found.append(name)
    return found


def refuse_beyond(
    machine: Machine,
    claims: Sequence[Claim],
    *,
    drive: str,
    adapter: str,
    scope: str,
    state_dir: str = STATE_DIR,
    runner: Runner | None = None,
) -> list[str]:
    """The ids of the drives that the fault may touch. Raises GuardRefusalError with every reason against it.

    `drive` is aimed at, `adapter` is the PCI function under test, `claims` are all claims of the bench.
    """
    drives = read_drives(machine)
    aimed = aimed_at(drives, drive, adapter)
    if aimed is None:
        raise GuardRefusalError([f"drive {drive}: it is not on the bench; no fault is aimed at it"])
    refusals = []
    if aimed.adapter != adapter:
        refusals.append(f"drive {drive}: it is behind {aimed.adapter or 'no PCI function'}, {adapter} is under test")
    touched = [each.drive for each in reached(machine, drives, aimed, scope)]
    if scope == "path" and not any(one.id == drive and one.adapter != adapter for one in drives):
        refusals.append(f"drive {drive}: it has no path beside the one through {adapter}, which would be all of it")
    if scope in ("link", "slot"):
        refusals += [
            f"PCI function {name}: it is no adapter under test, and a fault of the {scope} would reach it"
            for name in _other_functions(machine, drives, adapter, scope)
        ]
    system = system_disks(machine, state_dir)
    claimed = {claim.id: claim for claim in claims}
    for one in touched:
        if one.name in system:
            refusals.append(f"drive {one.id}: it {system[one.name]}, and a fault of the {scope} would reach it")
        if one.id not in claimed:
            refusals.append(f"drive {one.id}: it is not claimed, and a fault of the {scope} would reach it")
    ids = list(dict.fromkeys(one.id for one in touched))
    wanted = [claimed[name] for name in ids if name in claimed]
    refusals += [
        str(one) for one in check(wanted, purpose="settings", state_dir=state_dir, machine=machine, runner=runner)
    ]
    if refusals:
        raise GuardRefusalError(list(dict.fromkeys(refusals)))
    return ids
