# SPDX-License-Identifier: Apache-2.0
"""Layer 7 of the guard: what the kernel counted as written, on every disk of the bench, per boot and summed.

A reading is cheap (one small file per disk) and can be taken at any moment. Disks are known by identity, because
names change between boots. `sectors` are the kernel's 512-byte sectors, whatever the drive's own sector is.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Collection, Mapping, Sequence

from ..host.error_counters import read_error_counters
from ..host.in_use import system_disks
from ..host.sysfs import Drive, read_drives
from ..kit.machine import Machine, visible

_WRITTEN_SECTORS = 6  # the seventh column of /sys/block/*/stat (Documentation/block/stat.rst)
_MEMORY = re.compile(r"(?:ram|zram|sr|fd)\d")


@dataclass(frozen=True)
class Disk:
    """One disk at one moment; `system` says what of the machine itself it carries, `` for nothing."""

    node: str
    id: str
    wwn: str
    serial: str
    sectors_written: int
    system: str = ""
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """All disks of a bench at one moment of one boot, by kernel name."""

    boot_id: str
    disks: Mapping[str, Disk]

    def record(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {"boot_id": self.boot_id, "disks": {name: asdict(disk) for name, disk in self.disks.items()}}


@dataclass(frozen=True)
class Outcome:
    """Sectors written outside the claims, a sentence for each disk that got any, and the sums of all disks."""

    sectors: int
    findings: tuple[str, ...]
    disks: tuple[dict[str, Any], ...]


def read_disks(
    machine: Machine | None = None,
    *,
    state_dir: str | os.PathLike[str] = "/var/lib/storqual",
    drives: Sequence[Drive] | None = None,
) -> Reading:
    """Read every disk's counter. Raises ToolError when the mount table cannot be read (who is `system` is unknown).

    `drives` saves reading them again where the caller has just done so.
    """
    machine = machine or Machine()
    system = system_disks(machine, os.fspath(state_dir))
    disks = {}
    for drive in read_drives(machine) if drives is None else drives:
        columns = machine.text(f"/sys/block/{drive.name}/stat").split()
        if _MEMORY.match(drive.name) or len(columns) <= _WRITTEN_SECTORS:
            continue
        disks[drive.name] = Disk(
            node=drive.name,
            id=drive.id,
            wwn=drive.identity.wwn,
            serial=drive.identity.serial,
            sectors_written=int(columns[_WRITTEN_SECTORS]),
            system=system.get(drive.name, ""),
            errors=read_error_counters(machine, drive.name),
        )
    return Reading(machine.text("/proc/sys/kernel/random/boot_id"), disks)


def reading_of(record: Mapping[str, Any]) -> Reading:
    """A Reading from its `record()`. Raises KeyError or TypeError for anything else."""
    return Reading(str(record["boot_id"]), {name: Disk(**fields) for name, fields in record["disks"].items()})


def end_line(before: Reading, after: Reading, claimed: Collection[str]) -> dict[str, dict[str, Any]]:
    """`disks` of a spool's end line: each disk of either reading, by kernel name, with what its error counters did.

    A disk that was not there before counts from 0, one that is gone keeps its last count as both.
    """
    lines = {}
    for name in sorted({*before.disks, *after.disks}):
        first, last = before.disks.get(name), after.disks.get(name)
        disk = last or first
        assert disk is not None  # noqa: S101 - the name comes from one of the two
        same = first is not None and first.id == disk.id
        lines[name] = {
            "id": disk.id,
            "wwn": disk.wwn,
            "serial": disk.serial,
            "write_sectors_before": first.sectors_written if first is not None and same else 0,
            "write_sectors_after": disk.sectors_written,
            "claimed": disk.id in claimed,
            "system": disk.system,
            "errors": _grown(first.errors, disk.errors) if first is not None and same else {},
        }
    return lines


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What each error counter counted meanwhile; one that went back began anew."""
    counted = {name: value - before.get(name, 0) for name, value in after.items()}
    return {name: grown if grown >= 0 else after[name] for name, grown in counted.items()}


def outside_claims(readings: Sequence[Reading], claimed: Collection[str]) -> Outcome:
    """What was written to each disk over all readings, which are in time order and from one or more boots.

    Between two readings of one boot the difference counts. In a later boot everything since its start counts, and so
    does everything on a disk that appeared, or whose counter went back because it was unplugged and came again.
    """
    written: dict[str, int] = {}
    boots: dict[str, dict[str, int]] = {}
    known: dict[str, Disk] = {}
    last: dict[tuple[str, str], int] = {}
    boot = ""
    for index, reading in enumerate(readings):
        fresh = index > 0 and reading.boot_id != boot
        if fresh:
            last = {}
        boot = reading.boot_id
        for disk in reading.disks.values():
            seen = disk.sectors_written if index == 0 else last.get((disk.node, disk.id), 0)
            more = disk.sectors_written - seen if disk.sectors_written >= seen else disk.sectors_written
            written[disk.id] = written.get(disk.id, 0) + more
            boots.setdefault(disk.id, {})[boot] = boots.get(disk.id, {}).get(boot, 0) + more
            last[disk.node, disk.id] = disk.sectors_written
            known[disk.id] = _remembering_system(known.get(disk.id), disk)
    disks: tuple[dict[str, Any], ...] = tuple(
        {
            "id": name,
            "node": known[name].node,
            "serial": known[name].serial,
            "claimed": name in claimed,
            "system": known[name].system,
            "sectors_written": written[name],
            "per_boot": boots[name],
        }
        for name in sorted(known)
    )
    outside = [disk for disk in disks if disk["sectors_written"] and not disk["claimed"] and not disk["system"]]
    return Outcome(
        sectors=sum(int(disk["sectors_written"]) for disk in outside),
        findings=tuple(
            f"{disk['sectors_written']} sectors were written to drive {visible(str(disk['id']))} ({disk['node']}), "
            "which is neither claimed nor a system disk"
            for disk in outside
        ),
        disks=disks,
    )


def _remembering_system(before: Disk | None, now: Disk) -> Disk:
    """A disk counts as a system disk when it was one at any reading: its system writes came before or after."""
    if before is None or now.system or not before.system:
        return now
    return Disk(now.node, now.id, now.wwn, now.serial, now.sectors_written, before.system)
