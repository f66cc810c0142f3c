# SPDX-License-Identifier: Apache-2.0
"""A layer of device-mapper between the load and its drive: it passes all on, and fails writes while a fault lasts.

What fails lies above the driver. The load and the oracle meet the error, the driver and the adapter do not, so no
plan takes this way by itself: a suite names it.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from typing import Iterator, Mapping, Protocol

from ..host.sysfs import Drive
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..tools import dmsetup
from .aim import Aim, Tell
from .bad_sectors import Sectors, find_spot

LAYER = "storqual-layer-"
"""What the name of every layer begins with; one that was left behind is known by it."""
_HOURS_S = 360000


class Held(Protocol):
    """What the guard gives out: a drive can be let go for what must open it exclusively, and taken again."""

    def release(self, drive: str) -> str:
        """Let go of a drive."""

    def retake(self, drive: str) -> str:
        """Take it again; raises GuardRefusalError."""


def layer_node(drive: Drive) -> str:
    """The device node of the layer over a drive."""
    return f"/dev/mapper/{LAYER}{drive.name}"


def _passing(drive: Drive) -> str:
    return f"0 {drive.identity.size // 512} linear {drive.number} 0"


def _failing(drive: Drive) -> str:
    # never up, always down; reads go through
    return f"0 {drive.identity.size // 512} flakey {drive.number} 0 0 {_HOURS_S} 1 error_writes"


@contextmanager
def layered(held: Held, drive: Drive, machine: Machine, runner: Runner) -> Iterator[Mapping[str, str]]:
    """The node of a layer over a drive that is held, by the drive's id, until the block ends.

    The kernel gives the drive to the layer alone, and the layer is opened exclusively here, so that nobody else gets
    hold of either. Raises ToolError, and GuardRefusalError when the drive cannot be taken again.
    """
    node, name = layer_node(drive), f"{LAYER}{drive.name}"
    held.release(drive.id)
    try:
        dmsetup.create_device(runner, name, _passing(drive))
        try:
            with _exclusive(machine.path(node)):
                yield {drive.id: node}
        finally:
            dmsetup.remove_device(runner, name)
    finally:
        held.retake(drive.id)


@contextmanager
def _exclusive(path: str) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise ToolError(f"{path} cannot be opened: {problem.strerror}") from problem
    try:
        yield
    finally:
        os.close(descriptor)


def fail_writes(aim: Aim, tell: Tell) -> None:
    """Every write and flush through the layer fails while it lasts, reads do not."""
    name, spot = f"{LAYER}{aim.drive.name}", find_spot(aim)
    sectors = Sectors(aim.machine, layer_node(aim.drive))
    try:
        try:
            dmsetup.load_table(aim.runner, name, _failing(aim.drive))
            if " flakey " in dmsetup.read_table(aim.runner, name):
                tell("inserted", f"writes through {name} fail from now on")
            problem = sectors.write(spot.first, spot.size)
            if problem:
                tell("refused", f"a write at byte {spot.first} failed with {errno.errorcode.get(problem, problem)}")
            time.sleep(aim.away_s)
        finally:
            dmsetup.load_table(aim.runner, name, _passing(aim.drive))
        problem = sectors.write(spot.first, spot.size)
        if problem:
            raise ToolError(f"writes through {name} still fail: {errno.errorcode.get(problem, problem)}")
        tell("taken_again", f"a write at byte {spot.first} was taken")
    finally:
        sectors.close()
