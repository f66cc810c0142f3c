# SPDX-License-Identifier: Apache-2.0
"""The file systems of a block: which of its targets may carry one, what a restore must know, who writes the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping

from .bench_lock import BenchLock
from .bench_state import remember
from .block_file import Block
from .block_targets import HeldTargets, Place
from .command import Runner
from .drive_access import claim_record
from .file_systems import Bench, FileSystems
from .fio_job import FioTarget
from .guard_claims import read_claims
from .kernel_parts import MEMORY
from .launch_run import empty_folder
from .precondition import fill
from .precondition_ask import FillAsk

__all__ = ["file_systems_of"]

_CHUNK = 1 << 20


def file_systems_of(
    block: Block,
    targets: HeldTargets,
    places: Mapping[str, Place],
    lock: BenchLock,
    folder: Path,
    *,
    stopping: Callable[[], bool],
    runner: Runner,
    program: str,
) -> FileSystems:
    """What makes file systems on the drives of this block; its volumes and files get none. Raises nothing."""
    claims = {name: target for name, target in block.targets.items() if "claim" in target}
    devices = {name: place.device for name, place in places.items() if name in claims}

    def save(drive: str) -> None:
        (claim,) = read_claims({drive: claims[drive]})
        memory: dict[str, Any] = {f"claim@{drive}": claim_record(claim), f"{MEMORY}@{drive}": None}
        remember(lock, memory)

    def write_files(files: Mapping[str, FioTarget]) -> None:
        fill(FillAsk(_CHUNK, 1), files, folder, stopping=stopping, program=program)
        empty_folder(folder)

    return FileSystems(
        targets.hold,
        targets,
        {name: device.name for name, device in devices.items() if device is not None},
        Bench(runner),
        save=save,
        write_files=write_files,
    )
