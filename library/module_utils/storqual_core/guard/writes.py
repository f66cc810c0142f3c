# SPDX-License-Identifier: Apache-2.0
"""Writes that the kernel counted: of a drive before it is given out, and of every disk of the bench (layer 7).

A reading is cheap (one small file per disk) and can be taken at any moment. Disks are known by identity, because
names change between boots. `sectors` are the kernel's 512-byte sectors, whatever the drive's own sector is. With
native multipath the I/O of an NVMe drive goes through one hidden disk for each controller: before Linux 6.4 only
those count it, and the drive's own counters stay at 0; later both count the same I/O.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Collection, Mapping, Sequence

from ..host.counters import read_error_counters
from ..host.fabric import hidden_paths
from ..host.in_use import served_serials, system_disks
from ..host.sysfs import SysfsDrive, read_drives
from ..kit.machine import Machine, visible
from ..kit.quantities import is_whole


def read_stat(machine: Machine, name: str) -> list[int]:
    """The columns of /sys/block/NAME/stat (Documentation/block/stat.rst); none where the kernel does not tell."""
    return _with_paths(machine, name, "stat")


def read_inflight(machine: Machine, name: str) -> list[int]:
    """Reads and writes that are under way; none where the kernel does not tell."""
    return _with_paths(machine, name, "inflight")


def _with_paths(machine: Machine, name: str, attribute: str) -> list[int]:
    """The larger of what a disk counts and what its hidden paths count together, column by column."""
    own = _columns(machine, name, attribute)
    paths = [_columns(machine, path, attribute) for path in hidden_paths(machine, name)]
    together = [sum(column) for column in zip(*paths)]
    return [max(pair) for pair in zip(own, together)] if together else own


def _columns(machine: Machine, name: str, attribute: str) -> list[int]:
    words = machine.text(f"/sys/class/block/{name}/{attribute}").split()
    return [int(word) for word in words] if all(is_whole(word) for word in words) else []


SECONDS = 1.0
_WRITTEN = (4, 6, 11, 13)
"""Columns of /sys/block/*/stat: writes, sectors written, discards, sectors discarded."""


@dataclass(frozen=True)
class _Counters:
    """What the kernel counted of one disk, and how many writes are under way; None where it does not tell."""

    written: tuple[int, ...] | None
    under_way: int


class Quiet:
    """A quiet second before drives are given out: whoever writes to one unlisted is seen by what is written.

    The kernel counts what reaches a disk, whichever program, thread or ring sent it, and fanotify names who writes
    through its node. A writer that does nothing in that second is not seen here; those that can be listed are
    (in_use.py). Making the drive read-only for the look (BLKROSET) is no such way: it finds nobody, it breaks
    what a program is doing that may do so rightly, and what is sent through sg goes on.

    It is watched from now on: `disks` are kernel names and their nodes.
    """

    def __init__(self, machine: Machine, disks: Mapping[str, str]) -> None:
        self._machine = machine
        self._watch = machine.watch_writes([machine.path(node) for node in disks.values() if node])
        self._since = machine.clock()
        self._before = {name: _counters(machine, name) for name in disks}

    def end(self) -> Mapping[str, str]:
        """Wait until the second is over; for each disk that was not left alone, what was seen."""
        machine = self._machine
        left = SECONDS - (machine.clock() - self._since)
        if left > 0:
            machine.wait(left)
        who = ", ".join(
            f"{visible(machine.text(f'/proc/{process}/comm')) or 'a program'} (process {process})"
            for process in self._watch.processes()
        )
        self._watch.close()
        uses = {}
        for name, before in self._before.items():
            now = _counters(machine, name)
            if before.written is None or now.written is None:
                uses[name] = "the kernel does not count what is written to it"
            elif before.written != now.written or now.under_way:
                uses[name] = "it is being written to" + (f" by {who}" if who else ", and the program is not known")
        return uses


def _counters(machine: Machine, name: str) -> _Counters:
    columns = read_stat(machine, name)
    # kernels before 4.18 do not count discards
    written = tuple(columns[column] for column in _WRITTEN if column < len(columns))
    under_way = sum(read_inflight(machine, name)[1:2])
    return _Counters(written if len(columns) > max(_WRITTEN[:2]) else None, under_way)


_WRITTEN_SECTORS = 6  # the seventh column of /sys/block/*/stat (Documentation/block/stat.rst)
_MEMORY = re.compile(r"(?:ram|zram|sr|fd)\d")


@dataclass(frozen=True)
class Disk:
    """One disk at one moment; `system` says what of the machine itself it carries, `` for nothing.

    `serves` is the serial of the LUN or subsystem that a target of this machine makes of it.
    """

    node: str
    id: str
    wwn: str
    serial: str
    sectors_written: int
    system: str = ""
    errors: Mapping[str, int] = field(default_factory=dict)
    serves: str = ""


@dataclass(frozen=True)
class DisksReading:
    """All disks of a bench at one moment of one boot, by kernel name."""

    boot_id: str
    disks: Mapping[str, Disk]

    def record(self) -> dict[str, Any]:
        return {"boot_id": self.boot_id, "disks": {name: asdict(disk) for name, disk in self.disks.items()}}


def read_disks(
    machine: Machine | None = None,
    *,
    state_dir: str | os.PathLike[str] = "/var/lib/storqual",
    drives: Sequence[SysfsDrive] | None = None,
) -> DisksReading:
    """Read every disk's counter. Raises ToolError when the mount table cannot be read (who is `system` is unknown).

    `drives` saves reading them again where the caller has just done so.
    """
    machine = machine or Machine()
    system, served = system_disks(machine, os.fspath(state_dir)), served_serials(machine)
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
            serves=served.get(drive.name, ""),
        )
    return DisksReading(machine.text("/proc/sys/kernel/random/boot_id"), disks)


def reading_of(record: Mapping[str, Any]) -> DisksReading:
    """A Reading from its `record()`. Raises KeyError or TypeError for anything else."""
    return DisksReading(str(record["boot_id"]), {name: Disk(**fields) for name, fields in record["disks"].items()})


def end_line(before: DisksReading, after: DisksReading, claimed: Collection[str]) -> dict[str, dict[str, Any]]:
    """`disks` of a spool's end line: each disk of either reading, by kernel name, with what its error counters did.

    A disk that was not there before counts from 0, one that is gone keeps its last count as both. What is written to
    a claimed LUN lands on the disk that a target here serves it from, which is then covered by the same claim.
    """
    lines = {}
    everyone = [*before.disks.values(), *after.disks.values()]
    serials = {disk.serial for disk in everyone if disk.id in claimed and disk.serial}
    for name in sorted({*before.disks, *after.disks}):
        first = before.disks.get(name)
        disk = after.disks.get(name) or before.disks[name]
        same = first is not None and first.id == disk.id
        lines[name] = {
            "id": disk.id,
            "wwn": disk.wwn,
            "serial": disk.serial,
            "write_sectors_before": first.sectors_written if first is not None and same else 0,
            "write_sectors_after": disk.sectors_written,
            "claimed": disk.id in claimed or disk.serves in serials,
            "system": disk.system,
            "errors": _grown(first.errors, disk.errors) if first is not None and same else {},
        }
    return lines


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What each error counter counted meanwhile; one that went back began anew."""
    counted = {name: value - before.get(name, 0) for name, value in after.items()}
    return {name: grown if grown >= 0 else after[name] for name, grown in counted.items()}
