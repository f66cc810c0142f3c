# SPDX-License-Identifier: Apache-2.0
"""How far a step reaches from a drive or PCI function, and the function that the alias of an adapter means.

A format, an image, a reset or a power switch rarely ends at the device node that it is sent through: namespaces share
a controller, LUNs a target, functions a card, adapters a slot. Each scope is a set of drives that is reached as a
whole; steps and faults name their scope, and the guard asks here.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Any, Collection, Iterable, Mapping, Sequence

from ..kit.errors import BadInputError, GuardRefusalError, ToolError
from ..kit.machine import Machine, visible
from .block_stack import above, describe, is_partition, node_of
from .counters import read_phys
from .fabric import read_drive_paths
from .identity import declared_address, designators
from .in_use import find_uses, read_mounts, system_disks
from .sysfs import SysfsDrive, pci_address, read_adapters, read_drives

SCOPES: Mapping[str, str] = {
    "path": "is the same path",
    "drive": "is the same drive",
    "device": "is a namespace, LUN or path of the same device",
    "port": "is linked through the same port",
    "target": "is at the same target",
    "bus": "is on the same bus",
    "adapter": "is behind the same card",
    "driver": "is behind an adapter of the same driver module",
    "link": "is below the same PCI port",
    "slot": "is in the same PCI slot",
}
"""How far something reaches, and how a drive that it reaches hangs together with the one that it is aimed at.

`path` is one way to a drive, `device` all that shares the firmware and the medium of one: the namespaces of an NVMe
subsystem, the LUNs of a target, through every path. `adapter` is every function of the card.
"""

_DEVICES = "/sys/bus/pci/devices"
_SLOTS = "/sys/bus/pci/slots"
_SUBSYSTEMS = "/sys/class/nvme-subsystem"
_CONTROLLER = re.compile(r"nvme\d+\Z")
_TARGET_DEVICE = 2
_LASTING_NAMES = (2, 3, 8)
"""Types of designators that name a device for good: EUI-64, NAA, SCSI name string (SPC-5, 7.7.6)."""


@dataclass(frozen=True)
class Reached:
    """A drive that is reached, and how it hangs together with what the step is aimed at (the rest of a sentence)."""

    drive: SysfsDrive
    why: str


def reached(machine: Machine, drives: Sequence[SysfsDrive], aimed: SysfsDrive, scope: str) -> list[Reached]:
    """What a step or fault of that scope touches when it is aimed at `aimed`; each path of a drive by itself.

    Raises KeyError for a scope that does not exist.
    """
    why = SCOPES[scope]
    if scope in ("path", "drive"):
        group: Collection[SysfsDrive] = [aimed]
    elif scope == "device":
        group = _connected(drives, aimed, {drive.name: _device(machine, drive) for drive in drives})
    elif scope == "port":
        parts = {drive.name: {*_place(drive, 3), *read_phys(machine, drive.name)} for drive in drives}
        group = _connected(drives, aimed, parts)
    elif scope in ("target", "bus") and aimed.hctl:
        place = _place(aimed, 3 if scope == "target" else 2)
        group = [drive for drive in drives if _place(drive, 3 if scope == "target" else 2) == place]
    else:
        wider = "adapter" if scope in ("target", "bus") else scope
        return behind(machine, drives, functions_of(machine, aimed), wider)
    return [Reached(drive, why) for drive in drives if drive in group or drive.name == aimed.name]


def behind(machine: Machine, drives: Sequence[SysfsDrive], functions: Iterable[str], scope: str) -> list[Reached]:
    """The drives that a step of that scope touches when it is aimed at PCI functions: adapter, driver, link, slot."""
    touched = {other for function in functions for other in functions_reached(machine, function, scope)}
    return [Reached(drive, SCOPES[scope]) for drive in drives if touched.intersection(functions_of(machine, drive))]


def functions_reached(machine: Machine, pci: str, scope: str) -> list[str]:
    """The PCI functions that a step of that scope touches when it is aimed at one of them, itself included."""
    if scope == "driver":
        return driven_alike(machine, pci)
    if scope == "link":
        return beside_on_link(machine, pci)
    if scope == "slot":
        slots = (functions_in_slot(machine, slot) for slot in machine.names(_SLOTS))
        inside = {name for functions in slots if pci in functions for name in functions}
        return sorted({*inside, *(other for name in {pci, *inside} for other in beside_on_link(machine, name))})
    card = _card(machine, pci)
    return [pci, *(name for name in machine.names(_DEVICES) if name != pci and _card(machine, name) == card)]


def functions_of(machine: Machine, drive: SysfsDrive) -> tuple[str, ...]:
    """The PCI functions that a drive is reached through: several where an NVMe subsystem has several controllers."""
    controllers = _controllers(machine, drive) if drive.transport == "nvme" else ()
    addresses = (pci_address(place) for place in controllers)
    return tuple(dict.fromkeys([drive.adapter, *(pci for pci in addresses if pci)]))


def driven_alike(machine: Machine, pci: str) -> list[str]:
    """The PCI functions whose driver is of the same module as that of `pci`, itself included."""
    modules = {adapter.identity.pci: adapter.module for adapter in read_adapters(machine)}
    alike = [name for name, module in modules.items() if module and module == modules.get(pci)]
    return alike if pci in alike else [pci, *alike]


def beside_on_link(machine: Machine, pci: str) -> list[str]:
    """The PCI functions below the port that `pci` is below, itself included: an error of the link is told to all."""
    port = os.path.dirname(machine.real(f"{_DEVICES}/{pci}"))  # noqa: PTH120 - a path of the machine
    if not pci_address(port):
        # on the root bus: no port is above it
        return [pci]
    names = machine.names(_DEVICES)
    return [name for name in names if machine.real(f"{_DEVICES}/{name}").startswith(f"{port}/")]


def functions_in_slot(machine: Machine, slot: str) -> set[str]:
    """The PCI functions of a slot: those at its address (`0000:3b:00`) and those behind a bridge in it."""
    address = machine.text(f"{_SLOTS}/{slot}/address")
    places = {name: machine.real(f"{_DEVICES}/{name}").split("/") for name in machine.names(_DEVICES)}
    own = {name for name, parts in places.items() for part in parts if part.rpartition(".")[0] == address}
    return own if address else set()


def _card(machine: Machine, pci: str) -> str:
    """What all functions of a card have in common; a virtual function is one of the card that it was made of."""
    physical = machine.target(f"{_DEVICES}/{pci}/physfn") or pci
    return physical.rpartition(".")[0] or physical


def _place(drive: SysfsDrive, parts: int) -> tuple[str, ...]:
    """The start of `host:channel:target:lun` as one word in a tuple; empty for what has no such place."""
    return (":".join(drive.hctl.split(":")[:parts]),) if drive.hctl.count(":") == 3 else ()


def _device(machine: Machine, drive: SysfsDrive) -> set[str]:
    """Every name that the device behind a drive has; two drives with a name in common are one device."""
    names = {f"name {drive.name}", f"id {drive.identity.id}"} - {"id "}
    if drive.transport == "nvme":
        controllers = _controllers(machine, drive)
        nqns = (machine.text(f"{place}/subsysnqn") for place in controllers)
        return names.union(controllers, (f"nqn {nqn}" for nqn in nqns if nqn))
    page = machine.read(f"/sys/block/{drive.name}/device/vpd_pg83") or b""
    lasting = (
        f"device {kind} {value.hex()}"
        for association, kind, value in designators(page)
        if association == _TARGET_DEVICE and kind in _LASTING_NAMES and any(value)
    )
    return names.union(_place(drive, 3), lasting)


def _controllers(machine: Machine, drive: SysfsDrive) -> tuple[str, ...]:
    """Where the controllers of an NVMe drive's subsystem are in sysfs, whichever of them the namespace is below."""
    device = machine.real(f"/sys/block/{drive.name}/device")
    name = device.rpartition("/")[2]
    own = _CONTROLLER.match(name)
    places = [device] if own else [f"{device}/{entry}" for entry in machine.names(device) if _CONTROLLER.match(entry)]
    for subsystem in machine.names(_SUBSYSTEMS):
        members = [entry for entry in machine.names(f"{_SUBSYSTEMS}/{subsystem}") if _CONTROLLER.match(entry)]
        if own and name in members:
            places += [f"{_SUBSYSTEMS}/{subsystem}/{entry}" for entry in members]
    return tuple(dict.fromkeys(place for place in map(machine.real, places) if place))


def _connected(
    drives: Sequence[SysfsDrive], aimed: SysfsDrive, names: Mapping[str, Collection[str]]
) -> list[SysfsDrive]:
    """The drives that have a name in common with `aimed`, or with one that has, and so on."""
    known, group = set(names.get(aimed.name, ())), {aimed.name}
    grown = True
    while grown:
        near = [drive for drive in drives if drive.name not in group and known.intersection(names[drive.name])]
        grown = bool(near)
        for drive in near:
            group.add(drive.name)
            known.update(names[drive.name])
    return [drive for drive in drives if drive.name in group]


def logins_to(machine: Machine, drive: str) -> list[str]:
    """The iSCSI sessions and NVMe controllers of a fabric that lead to the drive with this id."""
    return sorted({way for disk in read_drives(machine) if disk.id == drive for way in _logins(machine, disk)})


def behind_logins(machine: Machine, ways: Collection[str]) -> list[SysfsDrive]:
    """The drives that any of these sessions and controllers leads to."""
    return [disk for disk in read_drives(machine) if _logins(machine, disk).intersection(ways)]


def _logins(machine: Machine, disk: SysfsDrive) -> set[str]:
    return {str(path["through"]) for path in read_drive_paths(machine, disk.name) if path["fabric"] != "fc"}


@dataclass(frozen=True)
class AdapterFunction:
    """Where an adapter is: its address (`pci`), driver, the driver's module, its SCSI hosts, the inventory's tool."""

    alias: str
    pci: str
    driver: str
    module: str
    hosts: tuple[str, ...]
    tool: str


def find_adapters(machine: Machine, adapters: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, AdapterFunction]:
    """The adapters with the aliases `wanted`. Raises BadInputError with every alias that means no adapter here.

    The address decides; without one the driver does, when one adapter has it.
    """
    present = read_adapters(machine)
    functions: dict[str, AdapterFunction] = {}
    problems = []
    for alias in wanted:
        declared = adapters.get(alias)
        if declared is None:
            known = ", ".join(adapters) or "none"
            problems.append(f"{alias!r} is no adapter of this bench's inventory (known: {known})")
            continue
        address, driver = declared_address(declared), str(declared.get("driver") or "")
        fitting = [each for each in present if (each.identity.pci == address if address else driver == each.driver)]
        if len(fitting) != 1:
            what = f"at {address}" if address else f"with driver {driver or '(not given)'}"
            problems.append(f"adapter {alias}: {len(fitting)} adapters of this bench are {visible(what)}, not one")
            continue
        adapter = fitting[0]
        hosts = tuple(str(host["host"]) for host in adapter.hosts)
        functions[alias] = AdapterFunction(
            alias, adapter.identity.pci, adapter.driver, adapter.module, hosts, str(declared.get("tool") or "")
        )
    if problems:
        raise BadInputError(problems)
    return functions


_POLL_S = 0.1


def drives_of_function(machine: Machine, adapters: Collection[str]) -> list[SysfsDrive]:
    return [drive for drive in read_drives(machine) if set(adapters).intersection(functions_of(machine, drive))]


def uses_of(
    machine: Machine, drives: Sequence[SysfsDrive], state_dir: str, *, maps: Collection[str] = ()
) -> list[str]:
    """One sentence for each use of each drive; none when all of them may vanish for a moment.

    `maps` are multipath devices whose paths may vanish, so that they are no use by themselves, and are asked instead.
    Raises ToolError when the machine's mount table cannot be read.
    """
    if not drives:
        return []
    mounts = read_mounts(machine)
    uses, system = find_uses(machine, mounts), system_disks(machine, state_dir, mounts)
    sentences: list[str] = []
    for drive in drives:
        reasons = [system[drive.name]] if drive.name in system else []
        reasons += uses.get(drive.name, [])
        for upper in above(machine, drive.name):
            if not is_partition(machine, upper) and upper not in maps:
                reasons.append(f"is part of {describe(machine, upper)}")
            reasons += uses.get(upper, [])
        top = next((upper for upper in above(machine, drive.name) if upper in maps), drive.name)
        busy = "" if reasons else machine.busy(node_of(machine, top) or drive.node)
        reasons += [busy] if busy else []
        named = f"drive {visible(drive.id)} ({drive.name}) behind the adapter at {drive.adapter}"
        sentences += [f"{named}: {reason}" for reason in dict.fromkeys(reasons)]
    return sentences


def refuse_when_used(
    machine: Machine, adapters: Collection[str], state_dir: str, what: str, *, scope: str = "driver"
) -> list[SysfsDrive]:
    """The drives that go away when the driver of adapters starts again. Raises GuardRefusalError when one is used.

    `what` says for the sentence what would happen to them, `scope` how far that reaches beyond these adapters.
    """
    drives = [each.drive for each in behind(machine, read_drives(machine), adapters, scope)]
    used = uses_of(machine, drives, state_dir)
    if used:
        raise GuardRefusalError([f"{line}; {what}, so end that first" for line in used])
    return drives


def wait_for_drives(machine: Machine, ids: Iterable[str], limit_s: float) -> None:
    """Wait until drives (by id) are there and ready. Raises ToolError that names those which are not in time.

    The kernel tells of a new drive by uevents to a socket that only root of the first network namespace hears; asking
    sysfs works everywhere and costs one listing.
    """
    names = set(ids)
    deadline = time.monotonic() + limit_s
    while True:
        missing = names - {drive.id for drive in read_drives(machine) if drive.state in ("running", "live", "")}
        if not missing:
            return
        if time.monotonic() >= deadline:
            listed = ", ".join(visible(name) for name in sorted(missing))
            raise ToolError(f"{len(missing)} drives did not come back within {limit_s:g} s: {listed}")
        time.sleep(_POLL_S)
