# SPDX-License-Identifier: Apache-2.0
"""One provisioning step over several drives: read and plan all, refuse as a whole or save and write, read back.

Mode pages and queues differ in how a drive is read and written, not in this order, so the order is written once.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Collection, Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.results import PartialError, Provisioned
from ..kit.setting_values import check_section
from ..kit.settings import section_of
from ..tools import sg3
from .mode_pages import DrivePlan, DriveTarget, apply_plan, plan_drive, read_fields, results
from .queue import QUEUE_NAMES, QueuePlan, apply_queue, plan_queue, queue_results, read_queue

_NOTHING: Mapping[str, Collection[str]] = {}
_CONTROLLER = re.compile(r"^nvme\d+$")

Save = Callable[[Mapping[str, Mapping[str, object]]], None]
"""Keeps old values, by drive and name, before the first write; a value that is kept already stays as it is."""


def target_of(drive: str, node: str, sysfs: str = "/sys") -> DriveTarget:
    """The drive `drive` found at the block device `node` (`sda` or `/dev/sda`), with the node its tool opens.

    Commands of a SCSI drive go to its sg node: closing a block device that was open for writing makes udev look at
    the drive, in the middle of what follows. An NVMe feature belongs to the controller.
    """
    name = Path(node).name
    device = (Path(sysfs) / "block" / name / "device").resolve()
    if name.startswith("nvme"):
        # with multipath the namespace hangs on a subsystem, which lists its controllers
        own = [device.name] if _CONTROLLER.match(device.name) else []
        controllers = own or sorted(entry.name for entry in device.glob("nvme*") if _CONTROLLER.match(entry.name))
        return DriveTarget(drive, name, f"/dev/{controllers[0] if controllers else name}")
    generic = sorted((device / "scsi_generic").glob("sg*"))
    return DriveTarget(drive, name, f"/dev/{generic[0].name if generic else name}")


def declared_for(drives: Mapping[str, Mapping[str, object]], *, queue: bool) -> dict[str, dict[str, Any]]:
    """The declared values of one subsystem, checked, by drive; drives without any are left out.

    `drives` carries all `drive.*` names of a drop, so that a misspelt one is refused here and not passed over by
    both subsystems. None as a value only reads. Raises BadInputError with all problems.
    """
    known = section_of("drive")
    chosen: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for drive, values in drives.items():
        # what is only read needs a name that exists, and no value
        declared = {name: value for name, value in values.items() if value is not None or name not in known}
        try:
            plain = check_section("drive", declared)
        except BadInputError as problem:
            problems += [f"{drive}: {line}" for line in problem.problems]
            continue
        mine = {name: plain.get(name) for name in values if (name in QUEUE_NAMES) == queue}
        if mine:
            chosen[drive] = mine
    if problems:
        raise BadInputError(problems)
    return chosen


@dataclass(frozen=True)
class Outcome:
    """What a step did, or in check mode what it would do (`after` is then what is declared)."""

    settings: list[Provisioned]
    steps: list[str]
    after: dict[str, dict[str, object]]

    @property
    def changed(self) -> bool:
        """Whether before and after differ anywhere."""
        return any(self.after[entry.drive][entry.name] != entry.before for entry in self.settings) or bool(self.steps)

    @property
    def drift(self) -> list[str]:
        """One line per setting that was not as declared."""
        return [
            f"{entry.drive} {entry.name}: {entry.before}, declared {entry.declared}"
            for entry in self.settings
            if entry.declared is not None and entry.declared != entry.before
        ]

    @property
    def diff(self) -> dict[str, str]:
        """Before and after as text, only what differs."""
        lines = [(e, self.after[e.drive][e.name]) for e in self.settings if self.after[e.drive][e.name] != e.before]
        return {
            "before": "".join(f"{entry.drive} {entry.name}: {entry.before}\n" for entry, _ in lines),
            "after": "".join(f"{entry.drive} {entry.name}: {after}\n" for entry, after in lines),
        }


@dataclass(frozen=True)
class ModePages:
    """Mode pages of SCSI drives and the write cache of NVMe drives; `save` also for the next power-on."""

    runner: Runner
    save: bool = False
    sysfs: str = "/sys"

    def plan(self, target: DriveTarget, declared: Mapping[str, Any]) -> DrivePlan:
        """Read the drive and say what must be written."""
        return plan_drive(self.runner, target, declared, save=self.save)

    def writes(self, plan: DrivePlan) -> bool:
        """Whether the plan writes anything."""
        return plan.writes

    def apply(self, plan: DrivePlan) -> list[str]:
        """Write it."""
        return apply_plan(self.runner, plan, self.sysfs)

    def unchanged(self, plan: DrivePlan) -> list[Provisioned]:
        """What the plan read, as a result."""
        return results(plan, plan.before, self.sysfs)

    def read_back(self, plan: DrivePlan) -> list[Provisioned]:
        """Read the drive again, its saved pages too where they were to be written."""
        names = list(plan.declared)
        if plan.saved:
            kept = read_fields(self.runner, plan.target, list(plan.saved), sg3.SAVED)
            wrong = [f"{name} is saved as {value}" for name, value in kept.items() if plan.declared[name] != value]
            if wrong:
                raise ToolError(f"{plan.target.id}: the drive did not save what was written: {', '.join(wrong)}")
        return results(plan, read_fields(self.runner, plan.target, names), self.sysfs)


@dataclass(frozen=True)
class Queues:
    """The kernel's queue of each drive."""

    sysfs: str = "/sys"

    def plan(self, target: DriveTarget, declared: Mapping[str, Any]) -> QueuePlan:
        """Read the queue and say what must be written."""
        return plan_queue(target, declared, self.sysfs)

    def writes(self, plan: QueuePlan) -> bool:
        """Whether the plan writes anything."""
        return bool(plan.changes)

    def apply(self, plan: QueuePlan) -> list[str]:
        """Write it."""
        return apply_queue(plan, self.sysfs)

    def unchanged(self, plan: QueuePlan) -> list[Provisioned]:
        """What the plan read, as a result."""
        return queue_results(plan, plan.before)

    def read_back(self, plan: QueuePlan) -> list[Provisioned]:
        """Read the queue again."""
        return queue_results(plan, read_queue(plan.target, tuple(plan.declared), self.sysfs))


def carry_out(
    subsystem: Any,  # noqa: ANN401 - ModePages or Queues, whose plans differ
    targets: Mapping[str, DriveTarget],
    declared: Mapping[str, Mapping[str, Any]],
    *,
    check: bool,
    save: Save,
    remember: Mapping[str, Collection[str]] = _NOTHING,
) -> Outcome:
    """Make the drives as declared, or with `check` only say what would change.

    `remember`: settings by drive that are saved even when nothing changes them here, because a block will.
    Raises ToolError (nothing was written; every problem of every drive is in it) or PartialError (something was).
    """
    plans = [subsystem.plan(targets[drive], values) for drive, values in declared.items()]
    problems = [problem for plan in plans for problem in plan.problems]
    if problems:
        raise ToolError("\n".join(problems))
    if check:
        return _foreseen(subsystem, plans)
    writing = [plan for plan in plans if subsystem.writes(plan)]
    save({plan.target.id: {**_as_read(plan, remember.get(plan.target.id, ())), **plan.memory} for plan in plans})
    steps: list[str] = []
    try:
        for plan in writing:
            steps += subsystem.apply(plan)
        settings = [
            entry
            for plan in plans
            for entry in (subsystem.read_back(plan) if subsystem.writes(plan) else subsystem.unchanged(plan))
        ]
    except StorqualError as problem:
        raise PartialError(str(problem), steps=steps, settings=_what_can_be_read(subsystem, plans)) from problem
    wrong = [
        f"{entry.drive}: {entry.name} was set to {entry.declared} and reads back {entry.read_back}"
        for entry in settings
        if not entry.as_declared
    ]
    if wrong:
        raise PartialError("\n".join(wrong), steps=steps, settings=settings)
    return Outcome(settings, steps, _by_drive(settings))


def _as_read(plan: Any, names: Collection[str]) -> dict[str, object]:  # noqa: ANN401 - as carry_out
    """The values that a plan read, of `names`."""
    return {name: plan.before[name] for name in names if name in plan.before}


def _by_drive(settings: Sequence[Provisioned]) -> dict[str, dict[str, object]]:
    after: dict[str, dict[str, object]] = {}
    for entry in settings:
        after.setdefault(entry.drive, {})[entry.name] = entry.read_back
    return after


def _foreseen(subsystem: Any, plans: Sequence[Any]) -> Outcome:  # noqa: ANN401 - as carry_out
    """What would be: the declared values over those that were read."""
    settings = [entry for plan in plans for entry in subsystem.unchanged(plan)]
    after = _by_drive(settings)
    for plan in plans:
        for name, value in plan.changes.items():
            after[plan.target.id][f"drive.{name}"] = value
    steps = [f"{plan.target.id}: would be written" for plan in plans if subsystem.writes(plan)]
    return Outcome(settings, steps, after)


def _what_can_be_read(subsystem: Any, plans: Sequence[Any]) -> list[Provisioned]:  # noqa: ANN401 - as carry_out
    """The state after a failure, of the drives that still answer."""
    settings: list[Provisioned] = []
    for plan in plans:
        # the failure that is being reported names the drive; a drive that no longer answers has no state to tell
        with suppress(StorqualError):
            settings += subsystem.read_back(plan)
    return settings
