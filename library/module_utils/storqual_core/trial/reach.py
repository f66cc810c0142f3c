# SPDX-License-Identifier: Apache-2.0
"""How far a fault reaches, and whether it may: claimed drives and tested adapters only.

A reset of a bus or an adapter is felt by every drive behind it, whatever drive it was aimed at. So each scope is
first turned into the drives it touches, and all of them must be claimed, unused by others, and none of the system's.
"""

from __future__ import annotations

import os
from typing import Sequence

from ..guard.claims import Claim
from ..guard.hold import STATE_DIR, check
from ..host.in_use import system_disks
from ..host.sysfs import Drive, pci_address, read_adapters, read_drives
from ..kit.command import Runner
from ..kit.errors import GuardRefusalError
from ..kit.machine import Machine

SCOPES = ("path", "drive", "target", "bus", "adapter", "link", "driver")
_BRIDGE, _STORAGE = "0x0604", ("0x01", "0x0c04")
"""What the class of a PCI function begins with."""


def reached(machine: Machine, drives: Sequence[Drive], aimed: Drive, scope: str) -> list[Drive]:
    """The drives that a fault of that scope touches when it is aimed at `aimed`, each of several paths by itself."""
    if scope in ("path", "drive"):
        return [aimed]
    if scope == "driver":
        return [drive for drive in drives if drive.adapter in driven_alike(machine, aimed.adapter)]
    if scope == "link":
        return [drive for drive in drives if drive.adapter in beside_on_link(machine, aimed.adapter)]
    behind = [drive for drive in drives if drive.adapter == aimed.adapter]
    if scope == "adapter" or not aimed.hctl:
        return behind
    parts = 3 if scope == "target" else 2
    place = aimed.hctl.split(":")[:parts]
    return [drive for drive in behind if drive.hctl.split(":")[:parts] == place]


def aimed_at(drives: Sequence[Drive], drive: str, adapter: str) -> Drive | None:
    """The drive of that id; of several paths to it the one through the PCI function `adapter`."""
    found = [one for one in drives if one.id == drive]
    return min(found, key=lambda one: one.adapter != adapter) if found else None


def driven_alike(machine: Machine, pci: str) -> list[str]:
    """The PCI functions whose driver is of the same module as that of `pci`, itself included."""
    modules = {adapter.identity.pci: adapter.module for adapter in read_adapters(machine)}
    return [one for one, module in modules.items() if one == pci or (module and module == modules.get(pci))]


def beside_on_link(machine: Machine, pci: str) -> list[str]:
    """The PCI functions below the port that `pci` is below, itself included: an error of the link is told to all."""
    port = os.path.dirname(machine.real(f"/sys/bus/pci/devices/{pci}"))  # noqa: PTH120 - a path of the machine
    if not pci_address(port):
        # on the root bus: no port is above it
        return [pci]
    names = machine.names("/sys/bus/pci/devices")
    return [one for one in names if machine.real(f"/sys/bus/pci/devices/{one}").startswith(f"{port}/")]


def _strangers_on_link(machine: Machine, drives: Sequence[Drive], pci: str) -> list[str]:
    """What is below the same port: no bridge, no adapter with drives and no storage function of the same card."""
    card, with_drives, found = pci.rpartition(".")[0], {drive.adapter for drive in drives}, []
    for one in beside_on_link(machine, pci):
        known = (_BRIDGE, *_STORAGE) if one.rpartition(".")[0] == card else (_BRIDGE,)
        if one not in with_drives and not machine.text(f"/sys/bus/pci/devices/{one}/class").startswith(known):
            found.append(one)
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

    `drive` is aimed at, `adapter` is the PCI function under test, `claims` are all claims behind it, or all of the
    bench where the fault is of the driver or of the link.
    """
    drives = read_drives(machine)
    aimed = aimed_at(drives, drive, adapter)
    if aimed is None:
        raise GuardRefusalError([f"drive {drive}: it is not on the bench; no fault is aimed at it"])
    refusals = []
    if aimed.adapter != adapter:
        refusals.append(f"drive {drive}: it is behind {aimed.adapter or 'no PCI function'}, {adapter} is under test")
    touched = reached(machine, drives, aimed, scope)
    if scope == "path" and not any(one.id == drive and one.adapter != adapter for one in drives):
        refusals.append(f"drive {drive}: it has no path beside the one through {adapter}, which would be all of it")
    if scope == "link":
        refusals += [
            f"PCI function {one}: it is no adapter under test, and a fault of the link would reach it"
            for one in _strangers_on_link(machine, drives, adapter)
        ]
    system = system_disks(machine, state_dir)
    claimed = {claim.id: claim for claim in claims}
    for one in touched:
        if one.name in system:
            refusals.append(f"drive {one.id}: it {system[one.name]}, and a fault of the {scope} would reach it")
        if one.id not in claimed:
            refusals.append(f"drive {one.id}: it is not claimed, and a fault of the {scope} would reach it")
    wanted = [claimed[one.id] for one in touched if one.id in claimed]
    refusals += [
        str(one) for one in check(wanted, purpose="settings", state_dir=state_dir, machine=machine, runner=runner)
    ]
    if refusals:
        raise GuardRefusalError(list(dict.fromkeys(refusals)))
    return [one.id for one in touched]
