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

from ..host.disk_counts import read_stat
from ..host.error_counters import read_error_counters
from ..host.in_use import system_disks
from ..host.sysfs import Drive, read_drives
from ..kit.machine import Machine

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
        columns = read_stat(machine, drive.name)
        if _MEMORY.match(drive.name) or len(columns) <= _WRITTEN_SECTORS:
            continue
        disks[drive.name] = Disk(
            node=drive.name,
            id=drive.id,
            wwn=drive.identity.wwn,
            serial=drive.identity.serial,
            sectors_written=columns[_WRITTEN_SECTORS],
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
