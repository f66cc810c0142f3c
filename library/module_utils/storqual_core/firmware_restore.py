# SPDX-License-Identifier: Apache-2.0
"""Put firmware back to the versions that were found, with the images that were kept on the bench for it.

The memory carries claims and consent of the run that changed the firmware, so that a restore needs neither inventory
nor drop. What needs a boot is written here and proven by the next call, after the boot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from .bench_lock import BenchLock
from .capabilities import ACTIVATIONS
from .command import Runner
from .errors import StorqualError
from .firmware_access import Access, Adapters, Drives
from .firmware_image import read_image
from .firmware_plan import FirmwareRequest
from .guard_claims import read_claims
from .machine import Machine
from .provision_firmware import Owners, Step, flash_once, provision_firmware
from .provisioned import PartialError

__all__ = ["FirmwareBack", "put_firmware_back"]


@dataclass
class FirmwareBack:
    """What came of it: records, steps, failures, what is as it was (by key of saved.json), what a bench needs now."""

    settings: list[Mapping[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    read_back: dict[str, Any] = field(default_factory=dict)
    pending: str = ""


def put_firmware_back(
    memory: Mapping[str, Mapping[str, Any]],
    step: Step,
    lock: BenchLock | None,
    *,
    runner: Runner,
    machine: Machine | None = None,
) -> FirmwareBack:
    """Go through the keys of saved.json that are firmware; one that cannot be put back does not stop the others."""
    back = FirmwareBack()
    for key, value in memory.items():
        owner = key.partition("@")[2]
        try:
            request, owners = _read(owner, value, step, runner, machine or Machine())
            done = (
                provision_firmware(request, owners, step) if lock is None else flash_once(request, owners, step, lock)
            )
        except PartialError as problem:
            back.failures.append(str(problem))
            back.steps += problem.steps
            back.settings += [entry.record() for entry in problem.settings]
        except (StorqualError, KeyError, TypeError) as problem:
            back.failures.append(f"{key} could not be put back: {problem}")
        else:
            back.settings += done["settings"]
            back.steps += done["steps"]
            if done["pending"]:
                back.pending = max(back.pending or "none", done["pending"], key=ACTIVATIONS.index)
            elif lock is not None:
                back.read_back[key] = value
    return back


def _read(
    owner: str, value: Mapping[str, Any], step: Step, runner: Runner, machine: Machine
) -> tuple[FirmwareRequest, Owners]:
    """The request that leads back, and whom it is for."""
    access = Access(step.state_dir, step.run, tuple(value["consent"]), runner, machine)
    image = read_image(value["image"], "remembered image")
    request = FirmwareRequest(image, str(value["tool"]), str(value["activation"]))
    if value["kind"] == "drive":
        return request, Drives(access, read_claims({owner: value["claim"]}))
    return request, Adapters(access, {owner: value["adapter"]})
