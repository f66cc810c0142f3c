# SPDX-License-Identifier: Apache-2.0
"""What open-iscsi counts of the sessions behind disks: the kernel tells its program alone, in no file.

A command before and after a launch, outside of its window, and only on a bench with iSCSI disks. What cannot be asked
is not counted, as a counter that a driver does not keep. A recovery of a session is a finding of the kernel's log.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Iterable, Mapping

from ..guard.writes import DisksReading, read_disks
from ..host.counters import CounterSnapshot
from ..host.fabric import read_drive_paths
from ..kit import command
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..tools import iscsiadm

_COUNTERS = {
    "digest_err": "iscsi_digest_err",
    "timeout_err": "iscsi_timeout_err",
    "eh_abort_cnt": "iscsi_eh_abort_cnt",
}
"""Names of error counters by those that open-iscsi prints."""


def session_errors(machine: Machine, runner: Runner, disks: Iterable[str]) -> dict[str, tuple[str, dict[str, int]]]:
    """The iSCSI session behind each of these disks (kernel names) that has one, and its error counters."""
    ways = {
        disk: path["through"]
        for disk in disks
        for path in read_drive_paths(machine, disk)
        if path["fabric"] == "iscsi"
    }
    counted: Mapping[str, Mapping[str, int]] = {}
    if ways:
        with suppress(ToolError):
            counted = iscsiadm.read_statistics(runner)
    return {
        disk: (way, {name: counted[way][key] for key, name in _COUNTERS.items() if key in counted[way]})
        for disk, way in ways.items()
        if way in counted
    }


def errors_together(machine: Machine, runner: Runner, disks: Iterable[str]) -> dict[str, int]:
    """The same of all these disks, and of the paths below a multipath device, each session once."""
    below = [name for disk in disks for name in (disk, *machine.names(f"/sys/block/{disk}/slaves"))]
    sessions = dict(session_errors(machine, runner, below).values())
    kept = [name for name in _COUNTERS.values() if sessions and all(name in counts for counts in sessions.values())]
    return {name: sum(counts[name] for counts in sessions.values()) for name in kept}


def with_errors(snapshot: CounterSnapshot | None, errors: Mapping[str, int]) -> CounterSnapshot | None:
    """A snapshot of a launch's window with these counters of the launch among its own."""
    return snapshot._replace(errors={**snapshot.errors, **errors}) if snapshot and errors else snapshot


def read_counted_disks(
    machine: Machine | None = None,
    *,
    runner: Runner = command.run,
    **where: Any,  # noqa: ANN401 - as `read_disks`
) -> DisksReading:
    """`read_disks`, with the errors of sessions among those of each disk. Raises ToolError."""
    machine = machine or Machine()
    reading = read_disks(machine, **where)
    sessions = session_errors(machine, runner, reading.disks)
    return replace(
        reading,
        disks={
            name: replace(disk, errors={**disk.errors, **sessions[name][1]}) if name in sessions else disk
            for name, disk in reading.disks.items()
        },
    )
