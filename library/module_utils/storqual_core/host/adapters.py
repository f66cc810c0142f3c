# SPDX-License-Identifier: Apache-2.0
"""From an adapter's alias in the inventory to the PCI function on this bench."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Collection, Iterable, Mapping, Sequence

from ..kit.errors import BadInputError, GuardRefusalError, ToolError
from ..kit.machine import Machine, visible
from . import reach
from .block_stack import above, describe, is_partition, node_of
from .identity import declared_address
from .in_use import find_uses, read_mounts, system_disks
from .sysfs import Drive, read_adapters, read_drives


@dataclass(frozen=True)
class Place:
    """Where an adapter is: its address (`pci`), driver, the driver's module, its SCSI hosts, the inventory's tool."""

    alias: str
    pci: str
    driver: str
    module: str
    hosts: tuple[str, ...]
    tool: str


def find_adapters(machine: Machine, adapters: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Place]:
    """The adapters with the aliases `wanted`. Raises BadInputError with every alias that means no adapter here.

    The address decides; without one the driver does, when one adapter has it.
    """
    present = read_adapters(machine)
    found: dict[str, Place] = {}
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
        one = fitting[0]
        hosts = tuple(str(host["host"]) for host in one.hosts)
        found[alias] = Place(alias, one.identity.pci, one.driver, one.module, hosts, str(declared.get("tool") or ""))
    if problems:
        raise BadInputError(problems)
    return found


_POLL_S = 0.1


def behind(machine: Machine, adapters: Collection[str]) -> list[Drive]:
    return [drive for drive in read_drives(machine) if set(adapters).intersection(reach.functions_of(machine, drive))]


def uses_of(machine: Machine, drives: Sequence[Drive], state_dir: str) -> list[str]:
    """One sentence for each use of each drive; none when all of them may vanish for a moment.

    Raises ToolError when the machine's mount table cannot be read.
    """
    if not drives:
        return []
    mounts = read_mounts(machine)
    uses, system = find_uses(machine, mounts), system_disks(machine, state_dir, mounts)
    found: list[str] = []
    for drive in drives:
        reasons = [system[drive.name]] if drive.name in system else []
        reasons += uses.get(drive.name, [])
        for upper in above(machine, drive.name):
            if not is_partition(machine, upper):
                reasons.append(f"is part of {describe(machine, upper)}")
            reasons += uses.get(upper, [])
        busy = "" if reasons else machine.busy(node_of(machine, drive.name) or drive.node)
        reasons += [busy] if busy else []
        named = f"drive {visible(drive.id)} ({drive.name}) behind the adapter at {drive.adapter}"
        found += [f"{named}: {reason}" for reason in dict.fromkeys(reasons)]
    return found


def refuse_when_used(
    machine: Machine, adapters: Collection[str], state_dir: str, what: str, *, scope: str = "driver"
) -> list[Drive]:
    """The drives that go away when the driver of adapters starts again. Raises GuardRefusalError when one is used.

    `what` says for the sentence what would happen to them, `scope` how far that reaches beyond these adapters.
    """
    drives = [each.drive for each in reach.behind(machine, read_drives(machine), adapters, scope)]
    used = uses_of(machine, drives, state_dir)
    if used:
        raise GuardRefusalError([f"{line}; {what}, so end that first" for line in used])
    return drives


def wait_for_drives(machine: Machine, wanted: Iterable[str], limit_s: float) -> None:
    """Wait until drives (by id) are there and ready. Raises ToolError that names those which are not in time.

    The kernel tells of a new drive by uevents to a socket that only root of the first network namespace hears; asking
    sysfs works everywhere and costs one listing.
    """
    names = set(wanted)
    deadline = time.monotonic() + limit_s
    while True:
        missing = names - {drive.id for drive in read_drives(machine) if drive.state in ("running", "live", "")}
        if not missing:
            return
        if time.monotonic() >= deadline:
            listed = ", ".join(visible(name) for name in sorted(missing))
            raise ToolError(f"{len(missing)} drives did not come back within {limit_s:g} s: {listed}")
        time.sleep(_POLL_S)
