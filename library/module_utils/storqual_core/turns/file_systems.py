# SPDX-License-Identifier: Apache-2.0
"""File systems on drives and volumes that the guard holds: made when a launch needs one, gone again after it.

A file system lies on a part that only the kernel knows of (`provision/drives.py`), in the window that fio has of the
drive; a volume is a drive here. mkfs and mount must open it themselves, so the guard lets go of it for each, and in
between and afterwards takes it again and repeats its layers 2 to 4. Mounts are this process' own: they end when it is
killed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Protocol, Sequence

from ..guard.claims import read_claims, read_volumes
from ..guard.signatures import AREA
from ..host.block_stack import node_of
from ..kit.command import Runner
from ..kit.errors import StorqualError, ToolError
from ..kit.lock import BenchLock, remember
from ..kit.machine import Machine
from ..provision.drives import MEMORY, claim_record, drop_part, make_part
from ..tools import util_linux
from .batch_file import Batch, FileSystemAsk, FillAsk, part_bytes
from .fio_job import FioTarget
from .launch import empty_folder
from .precondition import fill
from .targets import HeldTargets, TargetDevice

_POINTS = Path("/run/storqual")
_FILE = "file"


class DriveHold(Protocol):
    """The guard's hold on drives, as far as it is needed here."""

    def release(self, drive: str) -> str:
        """Let go of a drive; its node."""

    def retake(self, drive: str) -> str:
        """Take it again, once layers 2 to 4 have nothing against it. Raises GuardRefusalError."""


def _device_of(point: Path) -> str:
    """The number of the device that a folder's file system is on: `8:1`."""
    device = point.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


@dataclass(frozen=True)
class Making:
    """What file systems are made with; other values than a runner are for tests."""

    runner: Runner
    machine: Machine = field(default_factory=Machine)
    points: Path = _POINTS
    separate: Callable[[Runner], None] = util_linux.make_mounts_private
    device_of: Callable[[Path], str] = _device_of


@dataclass(frozen=True)
class _Mounted:
    """A file system that is mounted: what was asked for, where, and how it was made."""

    ask: FileSystemAsk
    point: Path
    note: str


class FileSystems:
    """The file systems of one batch.

    `windows` are what fio may touch of drives, `disks` the kernel names of those that may carry a file system; `save`
    remembers a drive before the first step on it; `write_files` writes new files from end to end.
    """

    def __init__(
        self,
        hold: DriveHold | None,
        windows: Mapping[str, FioTarget],
        disks: Mapping[str, str],
        bench: Making,
        *,
        save: Callable[[str], None],
        write_files: Callable[[Mapping[str, FioTarget]], None],
    ) -> None:
        self._hold = hold
        self._windows = windows
        self._disks = disks
        self._bench = bench
        self._save = save
        self._write_files = write_files
        self._separated = False
        self._mounted: dict[str, _Mounted] = {}

    def aim(self, drives: Sequence[str], ask: FileSystemAsk | None) -> tuple[list[FioTarget], list[str]]:
        """What fio is pointed at on these drives, and notes on how that was made.

        Raises GuardRefusalError, ToolError.
        """
        for drive in drives:
            if drive in self._mounted and self._mounted[drive].ask != ask:
                self._take_away(drive)
        if ask is None:
            return [self._windows[drive] for drive in drives], []
        fresh = [drive for drive in drives if drive not in self._mounted]
        for drive in fresh:
            self._make(drive, ask)
        if fresh:
            self._write_files({drive: self._file(drive) for drive in fresh})
        return [self._file(drive) for drive in drives], sorted({self._mounted[drive].note for drive in drives})

    def close(self) -> None:
        """Take all away again; one that does not go does not keep the others. Raises GuardRefusalError, ToolError."""
        with ExitStack() as stack:
            for drive in self._mounted:
                stack.callback(self._take_away, drive)

    def _file(self, drive: str) -> FioTarget:
        made = self._mounted[drive]
        return FioTarget(drive, str(made.point / _FILE), 0, made.ask.file_bytes, is_file=True)

    def _make(self, drive: str, ask: FileSystemAsk) -> None:
        """A part, a file system on it, mounted, with a file that has its size and no content yet."""
        hold, size = self._checked(drive, ask)
        if not self._separated:
            self._bench.separate(self._bench.runner)
            self._separated = True
        self._save(drive)
        disk, bench = self._disks[drive], self._bench
        part = make_part(bench.runner, bench.machine, disk, size)
        hold.release(drive)
        try:
            node = node_of(bench.machine, part) or f"/dev/{part}"
            made = util_linux.make(bench.runner, ask.kind, node)
            hold.retake(drive)
            hold.release(drive)
            point = self._mount(part, node, ask.kind)
        except StorqualError:
            hold.retake(drive)
            drop_part(bench.runner, bench.machine, disk)
            raise
        note = f"{made.rpartition(' ')[0]} on {size >> 20} MiB, a file of {ask.file_bytes >> 20} MiB"
        self._mounted[drive] = _Mounted(ask, point, note)
        try:
            with (point / _FILE).open("wb") as file:
                file.truncate(ask.file_bytes)
        except OSError as problem:
            raise ToolError(f"{point}: no file can be made: {problem.strerror}") from problem

    def _checked(self, drive: str, ask: FileSystemAsk) -> tuple[DriveHold, int]:
        """The hold, and the bytes that the file system takes. Raises ToolError where the drive cannot carry it."""
        if self._hold is None or drive not in self._disks:
            raise ToolError(f"{drive} cannot carry a file system: it is not a whole drive or volume that is held")
        window, size = self._windows[drive], part_bytes(ask.file_bytes)
        # a part begins behind the guard's area, which fio's window of a volume does not leave out
        room = window.offset + window.size - AREA
        if size > room:
            raise ToolError(f"{drive}: {ask.kind} with its file takes {size >> 20} MiB, it has {room >> 20} MiB")
        return self._hold, size

    def _mount(self, part: str, node: str, kind: str) -> Path:
        """Mount a part, and see that what is mounted is that part. Raises ToolError."""
        bench, point = self._bench, self._bench.points / part
        point.mkdir(mode=0o700, parents=True, exist_ok=True)
        util_linux.mount(bench.runner, kind, node, str(point))
        if bench.device_of(point) != bench.machine.text(f"/sys/class/block/{part}/dev"):
            util_linux.unmount(bench.runner, str(point))
            raise ToolError(f"{point}: a device other than {node} is mounted there")
        return point

    def _take_away(self, drive: str) -> None:
        """Unmount, hold the drive again, and have the kernel forget the part. Raises GuardRefusalError, ToolError."""
        made, bench = self._mounted[drive], self._bench
        util_linux.unmount(bench.runner, str(made.point))
        del self._mounted[drive]
        with suppress(OSError):
            made.point.rmdir()
        if self._hold is not None:
            self._hold.retake(drive)
        drop_part(bench.runner, bench.machine, self._disks[drive])


_CHUNK = 1 << 20


def file_systems_of(
    batch: Batch,
    targets: HeldTargets,
    places: Mapping[str, TargetDevice],
    lock: BenchLock,
    folder: Path,
    *,
    stopping: Callable[[], bool],
    runner: Runner,
    program: str,
) -> FileSystems:
    """What makes file systems on the drives and volumes of this batch; files get none. Raises nothing."""
    volumes = {volume.id: volume for volume in read_volumes(batch.targets)}
    devices = {name: place.device for name, place in places.items() if name in batch.targets}

    def save(target: str) -> None:
        volume = volumes.get(target)
        drives = volume.members if volume is not None else (target,)
        memory: dict[str, Any] = {f"{MEMORY}@{volume.uuid if volume is not None else target}": None}
        for claim in read_claims({drive: batch.targets[drive] for drive in drives}):
            memory[f"claim@{claim.id}"] = claim_record(claim)
        remember(lock, memory)

    def write_files(files: Mapping[str, FioTarget]) -> None:
        fill(FillAsk(_CHUNK, 1), files, folder, stopping=stopping, program=program)
        empty_folder(folder)

    return FileSystems(
        targets.hold,
        targets,
        {name: device.name for name, device in devices.items() if device is not None},
        Making(runner),
        save=save,
        write_files=write_files,
    )
