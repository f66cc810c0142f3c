# SPDX-License-Identifier: Apache-2.0
"""May an adapter, or all adapters of a driver, go away for a moment: who uses the drives behind it.

Loading a driver again takes every drive behind it from the kernel, claimed or not, so all of them are looked at. The
rules are those of the guard's layer 3; nothing here writes.
"""

from __future__ import annotations

import time
from typing import Collection, Iterable, Sequence

from .block_stack import above, describe, is_partition, node_of
from .errors import GuardRefusalError, ToolError
from .in_use import find_uses, read_mounts, system_disks
from .machine import Machine, visible
from .sysfs import Drive, read_drives

__all__ = ["behind", "refuse_when_used", "uses_of", "wait_for_drives"]

_POLL_S = 0.1


def behind(machine: Machine, adapters: Collection[str]) -> list[Drive]:
    """The drives behind adapters, which are given by PCI address."""
    return [drive for drive in read_drives(machine) if drive.adapter in adapters]


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


def refuse_when_used(machine: Machine, adapters: Collection[str], state_dir: str, what: str) -> list[Drive]:
    """The drives behind adapters whose driver is about to be loaded again. Raises GuardRefusalError when one is used.

    `what` says for the sentence what would happen to them.
    """
    drives = behind(machine, adapters)
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
