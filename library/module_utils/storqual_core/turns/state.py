# SPDX-License-Identifier: Apache-2.0
"""What a bench is like before and after a trial: the adapter's drives, their settings, commands under way, memory."""

from __future__ import annotations

import time
from typing import Any

from ..host.sysfs import SysfsDrive, read_adapters, read_drives
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..tools.sg3 import received_of_short_command

_RESENT_S = 5.0
_SETTINGS = {
    "queue_depth": "device/queue_depth",
    "timeout": "device/timeout",
    "scheduler": "queue/scheduler",
    "nr_requests": "queue/nr_requests",
    "write_cache": "queue/write_cache",
}


def read_state(machine: Machine, adapter: str, runner: Runner, aimed: str) -> dict[str, Any]:
    """The drives behind the PCI function `adapter` by identity, its driver and link, and the memory in slabs.

    `residual` is what the driver said of a command that ends short, sent to the drive with the id `aimed`.
    `in_flight` counts commands that were sent and have not come back: those of the SCSI layer, for NVMe the block
    layer's.
    """
    drives = {}
    for drive in read_drives(machine):
        if drive.adapter == adapter:
            drives[drive.id] = {
                "name": drive.name,
                "hctl": drive.hctl,
                "wwn": drive.identity.wwn,
                "serial": drive.identity.serial,
                "size": drive.identity.size,
                "state": drive.state,
                "in_flight": in_flight(machine, drive),
                "settings": {
                    name: machine.text(f"/sys/block/{drive.name}/{place}") for name, place in _SETTINGS.items()
                },
            }
    matches = [entry for entry in read_adapters(machine) if entry.identity.pci == adapter]
    return {
        "drives": drives,
        "driver": matches[0].driver if matches else "",
        "link": f"{matches[0].link_speed} x{matches[0].link_width}" if matches and matches[0].link_speed else "",
        "slab_bytes": _slab_bytes(machine),
        "residual": next(
            (
                _residual(runner, disk)
                for disk in read_drives(machine)
                if (disk.id, disk.adapter) == (aimed, adapter) and disk.hctl
            ),
            {},
        ),
    }


def _residual(runner: Runner, drive: SysfsDrive) -> dict[str, Any]:
    """Bytes asked for, given by the drive, and received as the driver tells; `problem` where none were."""
    try:
        return received_of_short_command(runner, drive.node)
    except ToolError as problem:
        return {"problem": str(problem)}


def in_flight(machine: Machine, drive: SysfsDrive) -> int:
    """Waits a while, for after a recovery the kernel sends commands once more.

    Not by the difference of the counts of commands begun and ended, which recoveries leave behind.
    """
    end = time.monotonic() + _RESENT_S
    while (busy := _busy(machine, drive)) and time.monotonic() < end:
        time.sleep(0.1)
    return busy


def _busy(machine: Machine, drive: SysfsDrive) -> int:
    queue = f"/sys/block/{drive.name}"
    return sum(map(int, (machine.text(f"{queue}/device/device_busy") or machine.text(f"{queue}/inflight")).split()))


def _slab_bytes(machine: Machine) -> int:
    """`SUnreclaim` of /proc/meminfo, in bytes; 0 where it is not told."""
    for line in machine.lines("/proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == "SUnreclaim":
            return int(rest.split()[0]) * 1024
    return 0
