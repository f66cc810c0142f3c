# SPDX-License-Identifier: Apache-2.0
"""What the kernel counted of a disk, the hidden paths of an NVMe drive included.

With native multipath the I/O of a drive goes through one hidden disk for each controller. Before Linux 6.4 only those
count it, and the drive's own counters stay at 0; later both count the same I/O.
"""

from __future__ import annotations

import re

from ..kit.machine import Machine

_DRIVE = re.compile(r"^nvme(\d+)n(\d+)$")


def read_stat(machine: Machine, name: str) -> list[int]:
    """The columns of /sys/block/NAME/stat (Documentation/block/stat.rst); none where the kernel does not tell."""
    return _with_paths(machine, name, "stat")


def read_inflight(machine: Machine, name: str) -> list[int]:
    """Reads and writes that are under way; none where the kernel does not tell."""
    return _with_paths(machine, name, "inflight")


def _with_paths(machine: Machine, name: str, attribute: str) -> list[int]:
    """The larger of what a disk counts and what its hidden paths count together, column by column."""
    own = _columns(machine, name, attribute)
    paths = [_columns(machine, path, attribute) for path in _paths(machine, name)]
    together = [sum(column) for column in zip(*paths)]
    return [max(pair) for pair in zip(own, together)] if together else own


def _paths(machine: Machine, name: str) -> list[str]:
    drive = _DRIVE.match(name)
    if drive is None:
        return []
    path = re.compile(rf"^nvme{drive.group(1)}c\d+n{drive.group(2)}$")
    return [entry for entry in machine.names("/sys/block") if path.match(entry)]


def _columns(machine: Machine, name: str, attribute: str) -> list[int]:
    words = machine.text(f"/sys/class/block/{name}/{attribute}").split()
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []
