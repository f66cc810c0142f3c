# SPDX-License-Identifier: Apache-2.0
"""The targets of a block, held by the guard while it runs, and where their counters are in sysfs."""

from __future__ import annotations

import stat
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, ContextManager, Dict, Iterator, Mapping

from . import guard
from .block_file import Block
from .block_stack import physical
from .errors import BadInputError
from .fio_job import FioTarget
from .guard_claims import read_claims, read_volumes
from .machine import Machine
from .private_nodes import private_nodes
from .sysfs import pci_address, read_drives

__all__ = ["HeldTargets", "Place", "Resolver", "hold_for_format", "hold_targets", "is_gone", "place_of"]


class HeldTargets(Dict[str, FioTarget]):
    """fio's targets by drive id, and the guard's hold on them (None where nothing can be let go and taken again)."""

    def __init__(self, targets: Mapping[str, FioTarget], hold: guard.Hold | None = None) -> None:
        super().__init__(targets)
        self.hold = hold


Resolver = Callable[[Block], ContextManager[HeldTargets]]
"""Gives fio's targets while its context lasts; raises GuardRefusalError before anything is touched."""


@dataclass(frozen=True)
class Place:
    """Where a target is: its device's folder in sysfs (None for a file) and the PCI functions that lead to it."""

    device: Path | None
    adapters: tuple[str, ...]


@contextmanager
def hold_targets(block: Block) -> Iterator[HeldTargets]:
    """The guard's hold over all targets of the block. Raises GuardRefusalError, BadInputError.

    Members of a volume are told beside it, so that their settings can be switched; no launch is pointed at them.
    """
    claims = read_claims({name: target for name, target in block.targets.items() if "volume" not in target})
    volumes = read_volumes(block.targets)
    members = {member for volume in volumes for member in volume.members}
    aimed = sorted(members & {drive for launch in block.launches for drive in launch.drives})
    if aimed:
        told = "is a target and a member of a volume, which is one too"
        raise BadInputError([f"block {block.block}: {drive} {told}" for drive in aimed])
    files = {claim.id for claim in claims if claim.file}
    purpose = "write" if block.writes else "read"
    with ExitStack() as stack:
        held = stack.enter_context(
            guard.hold(claims, purpose=purpose, state_dir=block.state_dir, run=block.run, volumes=volumes)
        )
        nodes = stack.enter_context(private_nodes({name: held[name] for name in held}))
        windows = {name: held.window(name) for name in held}
        targets = {
            name: FioTarget(name, nodes[name], window.offset, window.size, name in files)
            for name, window in windows.items()
        }
        targets.update({name: FioTarget(name, held.member(name)) for name in sorted(members)})
        yield HeldTargets(targets, held)


@contextmanager
def hold_for_format(block: Block) -> Iterator[guard.Hold]:
    """The guard's hold over the block's drives for a format, with the consent of the block file.

    Raises GuardRefusalError, BadInputError.
    """
    consent = () if block.precondition is None else block.precondition.consent
    claims = read_claims(block.targets)
    with guard.hold(claims, purpose="format", consent=consent, state_dir=block.state_dir, run=block.run) as held:
        yield held


def place_of(target: FioTarget, machine: Machine | None = None) -> Place:
    """Where the counters of a target are. Raises nothing: what cannot be told is left out."""
    machine = machine or Machine()
    node = machine.node(target.node)
    if node is None or node.kind != "block":
        return Place(None, ())
    device = machine.real(f"/sys/dev/block/{node.number}")
    if not device:
        return Place(None, ())
    found = []
    drives = None
    for disk in physical(machine, device.rsplit("/", 1)[-1]):
        address = pci_address(machine.real(f"/sys/block/{disk}"))
        if not address:
            # an NVMe head with native multipath lies under no PCI function; the drive's reader knows its paths
            drives = read_drives(machine) if drives is None else drives
            address = next((drive.adapter for drive in drives if drive.name == disk), "")
        if address:
            found.append(address)
    return Place(Path(machine.path(device)), tuple(dict.fromkeys(found)))


def is_gone(target: FioTarget, place: Place) -> bool:
    """Whether a target is no longer on the bench: its file, its node, or the device behind the node."""
    try:
        mode = Path(target.node).stat().st_mode
    except OSError:
        return True
    return place.device is not None and not (stat.S_ISBLK(mode) and (place.device / "stat").exists())
