# SPDX-License-Identifier: Apache-2.0
"""What the guard looks at before it decides: one reading of the machine, after which the decision is pure."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Collection, Mapping, Sequence

from ..host.block_stack import above, describe, is_multipath, is_partition, node_of, physical, resolve, whole_disk
from ..host.fabric import read_drive_paths
from ..host.in_use import find_uses, lost_exports, read_mounts, read_open_files, system_disks
from ..host.reach import Reached
from ..host.sysfs import SysfsDrive, read_drives
from ..kit.command import Runner, run
from ..kit.errors import StorqualError, ToolError
from ..kit.machine import Machine
from ..tools.dmsetup import read_paths
from .claims import Claim, Route, VolumeClaim, ways_of
from .file_targets import FileState, look_at_files
from .luns import Objection, objections
from .reach import STEPS, matching, strangers, touched
from .signatures import Content, Ledger, read_content

_POOLS = "/proc/spl/kstat/zfs"
_AGAIN_S = 0.2
"""Seconds after which open files that the kernel does not name are looked for again: most wait for an instant."""


@dataclass(frozen=True)
class Layer:
    """A device on top of a drive: its kernel name, what it is in words, and which disks are under it.

    `start` is where a partition begins (bytes), None for anything else and where the kernel does not tell; `of` is
    the disk or array that it is part of.
    """

    name: str
    words: str
    partition: bool
    multipath: bool
    disks: frozenset[str]
    start: int | None = None
    of: str = ""


@dataclass(frozen=True)
class VolumeState:
    """Where a volume's path leads: the kernel name of the device, its disks, or why it cannot be used."""

    name: str
    node: str
    disks: tuple[str, ...]
    problem: str
    content: Content | None


@dataclass(frozen=True)
class GuardSnapshot:
    """One reading. Keys are kernel names of disks; of `contents`, `files`, `luns`, `volumes`, `made` ids of claims.

    `busy` tells of devices that could not be opened exclusively, with the reason; `unnamed` of programs and servers
    with open files that may be any device; `luns` of what stands against LUNs that other hosts reach; `zoned` of
    disks with zones, by their kind; `ways` is what the disks of a drive with declared paths may be declared by.
    `strangers` are drives without a claim that the step would reach, `step` is its name; `problem` tells of
    a machine about which nothing can be known, so that everything is refused.
    """

    drives: tuple[SysfsDrive, ...] = ()
    system: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    layers: Mapping[str, tuple[Layer, ...]] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    busy: Mapping[str, str] = field(default_factory=dict)
    contents: Mapping[str, Content] = field(default_factory=dict)
    files: Mapping[str, FileState] = field(default_factory=dict)
    volumes: Mapping[str, VolumeState] = field(default_factory=dict)
    made: Mapping[str, Collection[str]] = field(default_factory=dict)
    restamping: Collection[str] = ()
    lent: Collection[str] = ()
    pools: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    zoned: Mapping[str, str] = field(default_factory=dict)
    luns: Mapping[str, Sequence[Objection]] = field(default_factory=dict)
    ways: Mapping[str, Collection[Route]] = field(default_factory=dict)
    strangers: tuple[Reached, ...] = ()
    step: str = "this step"
    problem: str = ""

    def is_own(self, volume: VolumeClaim) -> bool:
        return all(volume.uuid in self.made.get(member, ()) for member in volume.members)


def look(
    machine: Machine,
    claims: Sequence[Claim],
    *,
    state_dir: str,
    purpose: str = "write",
    volumes: Sequence[VolumeClaim] = (),
    contents: bool = True,
    held: Mapping[str, str] = MappingProxyType({}),
    runner: Runner = run,
) -> GuardSnapshot:
    """Read all that a decision about `claims` needs.

    `purpose` says how far the step reaches. `held` are devices and files that this process holds itself,
    by kernel name or id, with paths that lead to them.

    Never raises for what it finds: a machine that cannot be read gives a snapshot with a problem.
    """
    try:
        files = look_at_files(machine, claims, state_dir, contents=contents, held=held, runner=runner)
        if len(files) == len(claims) and not volumes:
            return GuardSnapshot(files=files)
        return _look(
            machine, claims, state_dir, volumes, files, purpose=purpose, contents=contents, held=held, runner=runner
        )
    except StorqualError as problem:
        return GuardSnapshot(problem=str(problem))


def _look(
    machine: Machine,
    claims: Sequence[Claim],
    state_dir: str,
    volumes: Sequence[VolumeClaim],
    files: Mapping[str, FileState],
    *,
    purpose: str,
    contents: bool,
    held: Mapping[str, str],
    runner: Runner,
) -> GuardSnapshot:
    drives = tuple(read_drives(machine))
    mounts = read_mounts(machine)
    open_files = read_open_files(machine)
    ledger = Ledger.read(machine.path(state_dir))
    wanted = {drive.name: claim for claim in claims if not claim.file for drive in matching(claim, drives)}
    layers = {
        name: tuple(_layer(machine, upper, claim.wwn, runner) for upper in above(machine, name))
        for name, claim in wanted.items()
    }
    states = {volume.id: _volume(machine, volume, held, contents=contents, runner=runner) for volume in volumes}
    tops = set(wanted) | {layer.name for stack in layers.values() for layer in stack if layer.multipath}
    tops |= {state.name for state in states.values() if state.name}
    nodes = {name: node_of(machine, name) for name in tops}
    jobs: dict[str, list[_Job]] = {}
    for drive in drives if contents else ():
        if drive.name in wanted:
            # through the multipath device where there is one: a path's own cache may be older than what is written
            top = next((layer.name for layer in layers[drive.name] if layer.multipath), drive.name)
            if nodes[top]:
                path = held.get(top) or machine.path(nodes[top])
                job = _Job(wanted[drive.name].id, path, drive.identity.size)
                jobs.setdefault(drive.adapter, []).append(job)
    return GuardSnapshot(
        drives=drives,
        system=system_disks(machine, state_dir, mounts),
        uses=find_uses(machine, mounts, open_files),
        layers=layers,
        nodes=nodes,
        busy={name: machine.busy(node) for name, node in nodes.items() if node and name not in held},
        contents=_read_contents(jobs, runner),
        files=files,
        volumes=states,
        made=ledger.made,
        restamping=ledger.restamping,
        lent=ledger.lent,
        pools=tuple(pool for pool in machine.names(_POOLS) if machine.exists(f"{_POOLS}/{pool}/state")),
        unnamed=(*_lasting(machine, open_files.unnamed), *lost_exports(machine)),
        zoned={name: machine.text(f"/sys/block/{name}/queue/zoned") for name in wanted},
        luns={
            claim.id: objections(machine, matching(claim, drives), runner)
            for claim in claims
            if not claim.file and purpose != "read"
        },
        ways={
            drive.name: ways_of(drive.adapter, read_drive_paths(machine, drive.name, drive.hctl))
            for drive in drives
            if drive.name in wanted and wanted[drive.name].routes
        },
        step=STEPS.get(purpose, "this step"),
        strangers=tuple(strangers(touched(machine, drives, claims, purpose, runner), claims)),
    )


def _lasting(machine: Machine, unnamed: Sequence[str]) -> tuple[str, ...]:
    """Those of the programs with unnamed open files that still have them a moment later."""
    if not unnamed:
        return ()
    machine.wait(_AGAIN_S)
    later = read_open_files(machine).unnamed
    return tuple(program for program in unnamed if program in later)


@dataclass(frozen=True)
class _Job:
    """One drive whose content is to be read: claim id, node, bytes."""

    claim: str
    path: str
    size: int


def _read_contents(jobs: Mapping[str, Sequence[_Job]], runner: Runner) -> dict[str, Content]:
    """The contents by claim; adapters side by side, the drives of one adapter one after the other.

    Waiting for drives is nearly all of it, and a preflight looks at every drive of a bench.
    """
    contents: dict[str, Content] = {}

    def read(of_adapter: Sequence[_Job]) -> None:
        for job in of_adapter:
            if job.claim not in contents:
                contents[job.claim] = read_content(job.path, job.claim, job.size, runner=runner)

    threads = [threading.Thread(target=read, args=(of_adapter,)) for of_adapter in jobs.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return contents


def _layer(machine: Machine, name: str, wwn: str, runner: Runner) -> Layer:
    partition = is_partition(machine, name)
    start = machine.number(f"/sys/class/block/{name}/start") if partition else None
    return Layer(
        name=name,
        words=describe(machine, name),
        partition=partition,
        multipath=_is_map_of(machine, name, wwn, runner),
        disks=frozenset(physical(machine, name)),
        start=None if start is None else start * 512,
        of=whole_disk(machine, name) if partition else "",
    )


def _is_map_of(machine: Machine, name: str, wwn: str, runner: Runner) -> bool:
    """Whether a device is the multipath device of the drive of that WWN: by its name, and by what the kernel runs.

    Anybody can give a device-mapper device the name of a multipath device; its target is the kernel's own.
    """
    # a WWID is a digit for the kind of identifier, and the WWN's own digits
    digits = wwn.replace("0x", "").rpartition(".")[2]
    if not is_multipath(machine, name) or not machine.text(f"/sys/class/block/{name}/dm/uuid").lower().endswith(
        digits
    ):
        return False
    try:
        return bool(read_paths(runner, machine.text(f"/sys/class/block/{name}/dev")))
    except ToolError:
        return False


def _volume(
    machine: Machine, volume: VolumeClaim, held: Mapping[str, str], *, contents: bool, runner: Runner
) -> VolumeState:
    device = resolve(machine, volume.path)
    name = device.names[0] if len(device.names) == 1 and device.kind == "block" else ""
    problem = device.problem or ("" if name else f"{volume.path} is not a block device")
    node = node_of(machine, name) if name else ""
    content = None
    if contents and node:
        size = (machine.number(f"/sys/class/block/{name}/size") or 0) * 512
        content = read_content(held.get(name) or machine.path(node), volume.id, size, runner=runner)
    return VolumeState(name, node, device.disks, problem, content)
