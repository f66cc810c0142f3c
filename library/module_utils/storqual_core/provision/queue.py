# SPDX-License-Identifier: Apache-2.0
"""The kernel's queue of each drive: queue depth, I/O scheduler, queued requests and their kin, in sysfs.

Order matters: choosing a scheduler sets the number of requests anew, so the scheduler is written first.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

from ..kit.errors import BadInputError, ToolError
from ..kit.machine import read_attribute, selected_word, write_attribute
from ..kit.results import Provisioned
from ..kit.settings import section_of
from .mode_pages import DriveTarget

_ORDER = ("scheduler", "queue_depth", "nr_requests")
QUEUE_NAMES = (
    *_ORDER,
    *(name for name, setting in section_of("drive").items() if setting.field is None and name not in _ORDER),
)
"""The drive settings that are the kernel's, in the order in which they are written."""


@dataclass(frozen=True)
class QueuePlan:
    """What one drive's queue has and should have; `problems` forbid writing."""

    target: DriveTarget
    declared: Mapping[str, int | str | None]
    before: Mapping[str, int | str]
    problems: tuple[str, ...] = ()

    @property
    def changes(self) -> dict[str, int | str]:
        """The attributes that differ from what is declared, in writing order."""
        wanted = ((name, self.declared.get(name)) for name in QUEUE_NAMES)
        return {name: value for name, value in wanted if value is not None and self.before.get(name) != value}

    @property
    def memory(self) -> dict[str, int | str]:
        """The values that a write is about to replace."""
        return {name: self.before[name] for name in self.changes}


def _path(node: str, name: str, sysfs: str) -> Path:
    block = Path(sysfs) / "block" / node
    return block / "device" / "queue_depth" if name == "queue_depth" else block / "queue" / name


def _can_queue(node: str, sysfs: str) -> int | None:
    """What the adapter takes in all: the highest queue depth the kernel accepts for one of its drives."""
    device = (Path(sysfs) / "block" / node / "device").resolve()
    for folder in device.parents:
        if folder.name.startswith("host"):
            text = read_attribute(folder / "scsi_host" / folder.name / "can_queue")
            return int(text) if text and text.isdigit() else None
    return None


def _read_only(node: str, name: str, sysfs: str) -> bool:
    """Whether the driver has no way to change the attribute: then not even root may write it."""
    return not _path(node, name, sysfs).stat().st_mode & stat.S_IWUSR


def _read(node: str, name: str, sysfs: str) -> int | str | None:
    text = read_attribute(_path(node, name, sysfs))
    if text is None or (name == "queue_depth" and not text.isdigit()):
        return None
    if name == "scheduler":
        return selected_word(text)
    try:
        return int(text)
    except ValueError:
        raise ToolError(f"{_path(node, name, sysfs)} holds {text[:40]!r} where a number was expected") from None


def read_queue(
    target: DriveTarget, names: Mapping[str, object] | tuple[str, ...], sysfs: str = "/sys"
) -> dict[str, int | str]:
    """The values the kernel has now; a name the drive's driver does not have is left out."""
    values = ((name, _read(target.node, name, sysfs)) for name in names)
    return {name: value for name, value in values if value is not None}


def plan_queue(target: DriveTarget, declared: Mapping[str, int | str | None], sysfs: str = "/sys") -> QueuePlan:
    """Read the queue and say what must be written; what cannot be is in `problems`. None only reads.

    Raises BadInputError for names that are no queue settings.
    """
    unknown = [f"drive.{name} is not a setting of a drive's queue" for name in declared if name not in QUEUE_NAMES]
    if unknown:
        raise BadInputError(unknown)
    before = read_queue(target, declared, sysfs)
    problems = [
        f"{target.id}: the driver of {target.node} has no {name}, {value} is declared"
        for name, value in declared.items()
        if value is not None and name not in before
    ]
    problems += [
        f"{target.id}: {name} is {before[name]}, and the driver of {target.node} does not let it be changed "
        f"(the attribute is read-only), {value} is declared"
        for name, value in declared.items()
        if value is not None and before.get(name, value) != value and _read_only(target.node, name, sysfs)
    ]
    depth, limit = declared.get("queue_depth"), _can_queue(target.node, sysfs)
    if depth is not None and limit is not None and int(depth) > limit:
        problems.append(f"{target.id}: queue depth {depth} is declared, its adapter takes {limit} commands in all")
    return QueuePlan(target, declared, before, tuple(problems))


def apply_queue(plan: QueuePlan, sysfs: str = "/sys") -> list[str]:
    """Write what differs; return what was done. Raises ToolError at the first refusal."""
    steps = []
    for name, value in plan.changes.items():
        # an earlier write may have changed or restored this one already
        if _read(plan.target.node, name, sysfs) != value:
            write_attribute(_path(plan.target.node, name, sysfs), value)
            steps.append(f"{plan.target.id}: {name} set to {value}")
    return steps


def queue_results(plan: QueuePlan, after: Mapping[str, int | str]) -> list[Provisioned]:
    """One record per declared setting."""
    return [
        Provisioned(
            name=f"drive.{name}",
            declared=declared,
            before=plan.before.get(name),
            read_back=after.get(name),
            drive=plan.target.id,
            changed=plan.before.get(name) != after.get(name),
            proof="" if declared is None else "read back from the kernel; its effect was not measured",
        )
        for name, declared in plan.declared.items()
    ]
