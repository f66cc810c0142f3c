# SPDX-License-Identifier: Apache-2.0
"""Faults: what each is, the ways to bring it about, what proves that it was there, what it may cost (`faults.json`).

A way that is not in the table does not exist, and one that cannot be proven is not in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Mapping

from . import read_table

KERNEL_GRACE_S = 5.0
POWER = "power"
"""Where a way is brought about that removes the power of the bench."""
NOTHING = "nothing"
"""What the fault acts on that is none: its load is the test."""
LOGGING_WAY = "qmp_log_writes"
"""The way that leaves a log of the drive's writes, from which images of power cuts are built."""


@dataclass(frozen=True)
class Way:
    """One way to bring a fault about.

    `where` is `bench` for what the bench does to itself, `virtual` for what QEMU does to a virtual bench, `power` for
    what removes the power of the bench. `scope` is how far it reaches; `needs` is the file that must be there, with
    the drive's name, host, adapter and hctl in braces; `layered`: the load goes to the drive through a layer of
    device-mapper.

    Every proof must be there: `seen` are reports of who brought it about (`drive_gone`, `event:DEVICE_DELETED`),
    `kernel` patterns of lines that the kernel logged during the fault or within KERNEL_GRACE_S seconds after it.
    `returns` must be reported after the fault: without it the fault is proven, and the driver has failed.

    `drivers` is where the way is known to be provable; without them it is for every driver but those of `not_by`.
    `downs_bench`: the bench itself goes down, and only what was written before is read back. `spares_load`: the fault
    hits I/Os of its own, so no I/O of the load may fail; `fails_load`: while it lasts it hits all those of the load
    of these kinds (`turns/integrity_load.py` has the letters), and the kernel sends none of them again.
    `named_only`: no plan takes it unless a suite names it. `card`: it acts on a card, its function or its link, or on
    a drive as that shows it; an initiator that is software has none. `shared`: it takes paths
    away, and is for drives of several.
    `packages` must be installed on the bench, and its kernel's command line must have a word that begins with
    `boot_word`.
    """

    name: str
    where: str
    scope: str
    needs: str = ""
    layered: bool = False
    seen: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    not_by: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    downs_bench: bool = False
    spares_load: bool = False
    fails_load: str = ""
    named_only: bool = False
    card: bool = False
    shared: bool = False
    boot_word: str = ""

    def unproven(self, seen: frozenset[str], lines: tuple[str, ...]) -> list[str]:
        """The proofs that are missing, in words; none when the fault was there.

        `seen` is what was reported, `lines` the kernel's from the fault's begin to KERNEL_GRACE_S after its end.
        """
        missing = [name for name in self.seen if name not in seen]
        return missing + [
            f"a kernel line like /{pattern}/"
            for pattern in self.kernel
            if not any(re.search(pattern, line) for line in lines)
        ]


@dataclass(frozen=True)
class Fault:
    """One fault: what it acts on, whether I/Os may fail by it, what must outlast it, whether settings must.

    `keeps` is `acknowledged` for every write that was answered, `flushed` where a volatile cache may lose the others.
    """

    name: str
    acts_on: str
    sentence: str
    ways: tuple[Way, ...]
    io_errors: bool = False
    keeps: str = "acknowledged"
    settings_stay: bool = True


def _way(row: Mapping[str, Any]) -> Way:
    known = {each.name for each in fields(Way)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if name in known
    }
    values["kernel"] = tuple(line["pattern"] for line in row.get("kernel", ()))
    return Way(**values)


def _fault(row: Mapping[str, Any]) -> Fault:
    known = {each.name for each in fields(Fault)} - {"ways"}
    values = {name: value for name, value in row.items() if name in known}
    return Fault(ways=tuple(_way(way) for way in row["ways"]), **values)


FAULTS: Mapping[str, Fault] = {row["name"]: _fault(row) for row in read_table("faults")["faults"]}
WAYS: Mapping[str, tuple[Fault, Way]] = {way.name: (fault, way) for fault in FAULTS.values() for way in fault.ways}
"""Each way by its name, with its fault."""
