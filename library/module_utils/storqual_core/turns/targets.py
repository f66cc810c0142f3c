# SPDX-License-Identifier: Apache-2.0
"""The targets of a batch, held by the guard while it runs: their counters, and settings switched on them."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, Mapping, Sequence

from ..guard import hold as guard
from ..guard.claims import read_claims, read_volumes
from ..host.block_stack import physical, target_of
from ..host.counters import Meter, adapter_vectors
from ..host.sysfs import pci_address, read_drives
from ..kit.command import Runner
from ..kit.errors import BadInputError, ToolError
from ..kit.lock import BenchLock, read_saved
from ..kit.machine import Machine
from ..provision.drives import DriveSettings, claim_memory
from ..provision.engine import apply, plan, saver
from ..provision.mode_pages import WRITE_CACHE, judge_write_cache, write_latencies
from .batch_file import Batch, SwitchStep
from .fio_job import FioTarget

FOLDER = Path("/dev/storqual")


@contextmanager
def private_nodes(
    nodes: Mapping[str, str],
    folder: Path = FOLDER,
    make: Callable[[Path, int, int], None] = os.mknod,
    opened: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Mapping[str, str]]:
    """Paths by the same names that lead to the same block devices, and are gone afterwards.

    `opened` are paths to what is held: a node that leads elsewhere by now does not count.
    A path that is no block device stays what it is, and so do all where nobody may make nodes (a container): what is
    measured is then as disturbed as it would be with any other tool, and no worse. Raises nothing.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of a program that was killed
    made: dict[str, str] = dict(nodes)
    try:
        with suppress(OSError):
            folder.mkdir(mode=0o700)
            for number, (name, node) in enumerate(nodes.items()):
                status = Path(opened.get(name, node)).stat()
                if stat.S_ISBLK(status.st_mode):
                    path = folder / f"disk{number}"
                    make(path, stat.S_IFBLK | 0o600, status.st_rdev)
                    made[name] = str(path)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class HeldTargets(Dict[str, FioTarget]):
    """fio's targets by drive id, and the guard's hold on them (None where nothing can be let go and taken again)."""

    def __init__(self, targets: Mapping[str, FioTarget], hold: guard.Hold | None = None) -> None:
        super().__init__(targets)
        self.hold = hold


Resolver = Callable[[Batch], ContextManager[HeldTargets]]
"""Gives fio's targets while its context lasts; raises GuardRefusalError before anything is touched."""


@dataclass(frozen=True)
class TargetDevice:
    """Where a target is: its device's folder in sysfs (None for a file) and the PCI functions that lead to it."""

    device: Path | None
    adapters: tuple[str, ...]


@contextmanager
def hold_targets(batch: Batch) -> Iterator[HeldTargets]:
    """The guard's hold over all targets of the batch. Raises GuardRefusalError, BadInputError.

    Members of a volume are told beside it, so that their settings can be switched; no launch is pointed at them.
    """
    claims = read_claims({name: target for name, target in batch.targets.items() if "volume" not in target})
    volumes = read_volumes(batch.targets)
    members = {member for volume in volumes for member in volume.members}
    aimed = sorted(members & {drive for launch in batch.launches for drive in launch.drives})
    if aimed:
        reason = "is a target, and so is a volume of which it is a member"
        raise BadInputError([f"batch {batch.block}: {drive} {reason}" for drive in aimed])
    files = {claim.id for claim in claims if claim.file}
    purpose = "write" if batch.writes else "read"
    with ExitStack() as stack:
        held = stack.enter_context(
            guard.hold(claims, purpose=purpose, state_dir=batch.state_dir, run=batch.run, volumes=volumes)
        )
        opened = {name: held.opened(name) for name in held}
        # a file is known by its descriptor alone: fio opens that, never the path
        paths = {name: opened[name] if name in files else held[name] for name in held}
        nodes = stack.enter_context(private_nodes(paths, opened=opened))
        windows = {name: held.window(name) for name in held}
        targets = {
            name: FioTarget(name, nodes[name], window.offset, window.size, name in files)
            for name, window in windows.items()
        }
        targets.update({name: FioTarget(name, held.member(name)) for name in sorted(members)})
        yield HeldTargets(targets, held)


@contextmanager
def hold_for_format(batch: Batch) -> Iterator[guard.Hold]:
    """The guard's hold over the batch's drives for a format, and over what that reaches; consent by the batch file.

    Raises GuardRefusalError, BadInputError.
    """
    ask = batch.precondition
    consent, beside = ((), {}) if ask is None else (ask.consent, ask.beside)
    with guard.hold(
        read_claims(batch.targets),
        purpose="format",
        beside=read_claims(beside),
        consent=consent,
        state_dir=batch.state_dir,
        run=batch.run,
    ) as held:
        yield held


def place_of(target: FioTarget, machine: Machine | None = None) -> TargetDevice:
    """Where the counters of a target are. Raises nothing: what cannot be told is left out."""
    machine = machine or Machine()
    node = machine.node(target.node)
    if node is None or node.kind != "block":
        return TargetDevice(None, ())
    device = machine.real(f"/sys/dev/block/{node.number}")
    if not device:
        return TargetDevice(None, ())
    addresses = []
    drives = None
    for disk in physical(machine, device.rsplit("/", 1)[-1]):
        address = pci_address(machine.real(f"/sys/block/{disk}"))
        if not address:
            # an NVMe head with native multipath lies under no PCI function; the drive's reader knows its paths
            drives = read_drives(machine) if drives is None else drives
            address = next((drive.adapter for drive in drives if drive.name == disk), "")
        if address:
            addresses.append(address)
    return TargetDevice(Path(machine.path(device)), tuple(dict.fromkeys(addresses)))


def is_gone(target: FioTarget, place: TargetDevice) -> bool:
    """Whether a target is no longer on the bench: its file, its node, or the device behind the node."""
    try:
        mode = Path(target.node).stat().st_mode
    except OSError:
        return True
    return place.device is not None and not (stat.S_ISBLK(mode) and (place.device / "stat").exists())


class BatchAim:
    """Points the meter of a batch. `targets` is the batch file's section, `places` where each of them is.

    Interrupt numbers of an adapter are looked up once.
    """

    def __init__(
        self, meter: Meter, targets: Mapping[str, Mapping[str, Any]], places: Mapping[str, TargetDevice]
    ) -> None:
        self._meter = meter
        self._targets = targets
        self._places = places
        self._vectors: dict[str, tuple[str, ...]] = {}

    def at(self, names: Iterable[str]) -> None:
        listed = list(names)
        volumes = [self._targets[name].get("volume") or {} for name in listed]
        members = [member for volume in volumes for member in volume.get("members", ())]
        devices, behind = (
            {name: device for name in some for device in [self._places[name].device] if device is not None}
            for some in (listed, members)
        )
        vectors: set[str] = set()
        for address in {address for name in listed for address in self._places[name].adapters}:
            if address not in self._vectors:
                self._vectors[address] = adapter_vectors([address])
            vectors.update(self._vectors[address])
        self._meter.aim(devices, sorted(vectors), behind)


class Switcher:
    """Sets what launches of a batch need, on its own drives alone; what was there is remembered for the restore."""

    def __init__(
        self,
        batch: Batch,
        targets: Mapping[str, FioTarget],
        places: Mapping[str, TargetDevice],
        lock: BenchLock,
        runner: Runner,
        sysfs: str = "/sys",
    ) -> None:
        claims = {name: target for name, target in batch.targets.items() if "claim" in target}
        self._claims = read_claims(claims) if any(launch.switch for launch in batch.launches) else ()
        self._places = places
        self._lock = lock
        self._sysfs = sysfs
        self._settings = DriveSettings(runner, sysfs=sysfs)
        # where a batch only reads, or has file systems on its drives, nothing else may write; a member has no window
        writes = batch.writes and not any(launch.file_system for launch in batch.launches)
        self._unproven = {drive: target for drive, target in targets.items() if writes and target.size > 0}

    def apply(self, steps: Sequence[SwitchStep]) -> list[str]:
        """Set and read back; what was seen of the effect of write caches, the first time each is switched.

        Raises ToolError or PartialError: nothing is measured under a wrong name.
        """
        wanted: dict[str, dict[str, Any]] = {}
        for step in steps:
            wanted.setdefault(step.drive, {})[step.setting] = step.value
        plans = []
        saved = read_saved(self._lock.state_dir)
        for drive, values in wanted.items():
            place = self._places.get(drive)
            if place is None or place.device is None:
                raise ToolError(
                    f"{drive}: is not a drive that this batch holds; only a real drive has mode pages or a queue"
                )
            plans.append(plan(self._settings, drive, target_of(drive, place.device.name, self._sysfs), values, saved))
        caches = {
            each.owner: (self._unproven.pop(each.owner), each.changes[WRITE_CACHE])
            for each in plans
            if WRITE_CACHE in each.changes and each.owner in self._unproven and not each.problems
        }
        before = {drive: _latencies(target) for drive, (target, _) in caches.items()}
        apply(self._settings, plans, save=saver(self._lock), also=lambda each: claim_memory(self._claims, each.owner))
        return [_finding(drive, on, before[drive], _latencies(target)) for drive, (target, on) in caches.items()]


def _latencies(target: FioTarget) -> list[int]:
    return write_latencies(target.node, target.offset, target.size)


def _finding(drive: str, on: int, before: Sequence[int], after: Sequence[int]) -> str:
    proven, seen = judge_write_cache(after, before) if on else judge_write_cache(before, after)
    return f"{drive}: WCE {'is shown' if proven else 'was not shown'} to be in effect: {seen}"
