# SPDX-License-Identifier: Apache-2.0
"""A switch between two launches: settings of drives that the guard holds for the block, by the engine of settings."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..guard.claims import read_claims
from ..host.block_stack import target_of
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.lock import BenchLock
from ..kit.saved_state import read_saved
from ..provision.drives import DriveSettings, claim_memory
from ..provision.engine import apply, plan, saver
from .batch_file import Block, SwitchStep
from .targets import Place


class Switcher:
    """Sets what launches of a block need, on its own drives alone; what was there is remembered for the restore."""

    def __init__(
        self, block: Block, places: Mapping[str, Place], lock: BenchLock, runner: Runner, sysfs: str = "/sys"
    ) -> None:
        claims = {name: target for name, target in block.targets.items() if "claim" in target}
        self._claims = read_claims(claims) if any(launch.switch for launch in block.launches) else ()
        self._places = places
        self._lock = lock
        self._sysfs = sysfs
        self._settings = DriveSettings(runner, sysfs=sysfs)

    def apply(self, steps: Sequence[SwitchStep]) -> None:
        """Set and read back. Raises ToolError or PartialError: nothing is measured under a wrong name."""
        wanted: dict[str, dict[str, Any]] = {}
        for step in steps:
            wanted.setdefault(step.drive, {})[step.setting] = step.value
        plans = []
        saved = read_saved(self._lock.state_dir)
        for drive, values in wanted.items():
            place = self._places.get(drive)
            if place is None or place.device is None:
                raise ToolError(
                    f"{drive}: is no drive that this block holds; only a real drive has mode pages or a queue"
                )
            plans.append(plan(self._settings, drive, target_of(drive, place.device.name, self._sysfs), values, saved))
        apply(self._settings, plans, save=saver(self._lock), also=lambda each: claim_memory(self._claims, each.owner))
