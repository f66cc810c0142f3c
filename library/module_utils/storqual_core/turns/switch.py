# SPDX-License-Identifier: Apache-2.0
"""A switch between two launches: settings of drives that the guard holds for the batch, by the engine of settings."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..guard.claims import read_claims
from ..host.block_stack import target_of
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.lock import BenchLock, read_saved
from ..provision.drives import DriveSettings, claim_memory
from ..provision.engine import apply, plan, saver
from ..provision.mode_pages import WRITE_CACHE, judge_write_cache, write_latencies
from .batch_file import Batch, SwitchStep
from .fio_job import FioTarget
from .targets import Place


class Switcher:
    """Sets what launches of a batch need, on its own drives alone; what was there is remembered for the restore."""

    def __init__(
        self,
        batch: Batch,
        targets: Mapping[str, FioTarget],
        places: Mapping[str, Place],
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
        return [_told(drive, on, before[drive], _latencies(target)) for drive, (target, on) in caches.items()]


def _latencies(target: FioTarget) -> list[int]:
    return write_latencies(target.node, target.offset, target.size)


def _told(drive: str, on: int, before: Sequence[int], after: Sequence[int]) -> str:
    proven, seen = judge_write_cache(after, before) if on else judge_write_cache(before, after)
    return f"{drive}: WCE {'is shown' if proven else 'was not shown'} to be in effect: {seen}"
