# SPDX-License-Identifier: Apache-2.0
"""A quiet second before a drive is given out: whoever writes to it unlisted is seen by what is written.

The kernel counts what reaches a disk, whichever program, thread or ring sent it, and fanotify names who writes
through its node. A writer that does nothing in that second is not seen here; those that can be listed are
(open_files.py). Making the drive read-only for the look (BLKROSET) is no such way: it finds nobody, it breaks what a
program is doing that may do so rightly, and what is sent through sg goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

from ..host.disk_counts import read_inflight, read_stat
from ..kit.machine import Machine, visible

SECONDS = 1.0
_WRITTEN = (4, 6, 11, 13)
"""Columns of /sys/block/*/stat: writes, sectors written, discards, sectors discarded."""


@dataclass(frozen=True)
class _Counters:
    """What the kernel counted of one disk, and how many writes are under way; None where it does not tell."""

    written: tuple[int, ...] | None
    under_way: int


class Quiet:
    """The watch over disks, from now on: `disks` are kernel names and their nodes."""

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
        told = {}
        for name, before in self._before.items():
            now = _counters(machine, name)
            if before.written is None or now.written is None:
                told[name] = "the kernel does not count what is written to it"
            elif before.written != now.written or now.under_way:
                told[name] = "it is being written to" + (f" by {who}" if who else ", and no program can be told")
        return told


def _counters(machine: Machine, name: str) -> _Counters:
    columns = read_stat(machine, name)
    # kernels before 4.18 do not count discards
    written = tuple(columns[column] for column in _WRITTEN if column < len(columns))
    under_way = sum(read_inflight(machine, name)[1:2])
    return _Counters(written if len(columns) > max(_WRITTEN[:2]) else None, under_way)
