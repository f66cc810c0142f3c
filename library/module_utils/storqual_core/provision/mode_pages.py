# SPDX-License-Identifier: Apache-2.0
"""Settings that live in a drive: mode-page fields of SCSI drives, the volatile write cache of NVMe drives.

Read everything, plan everything, and only when nothing stands in the way write, page by page with all fields of a
page in one MODE SELECT; then read back. A drive that does not let a field be changed is found before any write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import BadInputError, ToolError
from ..kit.machine import read_attribute, write_attribute
from ..kit.results import Provisioned
from ..kit.settings import ModeField, find
from ..tools import nvme, sg3
from ..tools.sg3 import PagePlan, get_field, plan_page

_WRITE_CACHE = "WCE"


@dataclass(frozen=True)
class DriveTarget:
    """A drive that was found: its id in the inventory, its kernel name (`sda`), and the node its tool opens."""

    id: str
    node: str
    device: str

    @property
    def nvme(self) -> bool:
        """Whether nvme-cli is its tool, not sg3_utils."""
        return self.node.startswith("nvme")


@dataclass(frozen=True)
class DrivePlan:
    """What one drive has, what it should have, and the page writes that lead there; `problems` forbid them.

    `saved`: what the saved pages held, where they are to be written too.
    """

    target: DriveTarget
    declared: Mapping[str, int | None]
    before: Mapping[str, int]
    pages: tuple[tuple[int, int, PagePlan], ...] = ()
    save: bool = False
    problems: tuple[str, ...] = field(default=())
    saved: Mapping[str, int] = field(default_factory=dict)

    @property
    def changes(self) -> dict[str, int]:
        """The fields that differ from what is declared."""
        wanted = ((name, value) for name, value in self.declared.items() if value is not None)
        return {name: value for name, value in wanted if self.before.get(name) != value}

    @property
    def memory(self) -> dict[str, int]:
        """The values that a write is about to replace; those of saved pages under `<name>.saved`."""
        kept = {f"{name}.saved": value for name, value in self.saved.items() if self.declared[name] != value}
        return {**{name: self.before[name] for name in self.changes}, **kept}

    @property
    def writes(self) -> bool:
        """Whether anything is to be written: a changed field, or a saved page that differs from the current one."""
        return bool(self.changes or self.pages)


def _fields(names: Sequence[str]) -> dict[tuple[int, int], dict[str, ModeField]]:
    """Fields by page and subpage. Raises BadInputError for a name that is not a mode-page field."""
    pages: dict[tuple[int, int], dict[str, ModeField]] = {}
    problems = []
    for name in names:
        place = find("drive", name).field
        if place is None:
            problems.append(f"drive.{name} is not a mode-page field")
        else:
            pages.setdefault((place.page, place.subpage), {})[name] = place
    if problems:
        raise BadInputError(problems)
    return pages


def _only_write_cache(target: DriveTarget, names: Sequence[str]) -> None:
    others = [name for name in names if name != _WRITE_CACHE]
    if others:
        raise ToolError(
            f"{target.id} is an NVMe drive: it has no mode pages, of these settings only WCE, not {', '.join(others)}"
        )


def read_fields(
    runner: Runner, target: DriveTarget, names: Sequence[str], control: int = sg3.CURRENT
) -> dict[str, int]:
    """The values of `names` as the drive has them now. Raises ToolError, BadInputError."""
    if not names:
        return {}
    if target.nvme:
        _only_write_cache(target, names)
        return {_WRITE_CACHE: nvme.read_write_cache(runner, target.device)}
    values: dict[str, int] = {}
    for (page, subpage), fields in _fields(names).items():
        data = sg3.read_page(runner, target.device, page, subpage, control)
        values.update({name: get_field(data, place) for name, place in fields.items()})
    return {name: values[name] for name in names}


def plan_drive(
    runner: Runner, target: DriveTarget, declared: Mapping[str, int | None], *, save: bool = False
) -> DrivePlan:
    """Read the drive and say what must be written. What the drive does not allow is in `problems`, not raised.

    `declared` maps names to values; None only reads. With `save` the saved page must have the values as well, so
    that they hold after the next power-on. Raises BadInputError for names that do not exist.
    """
    pages = _fields(list(declared))
    try:
        if target.nvme:
            return DrivePlan(target, declared, read_fields(runner, target, list(declared)), save=save)
        before: dict[str, int] = {}
        writes: list[tuple[int, int, PagePlan]] = []
        problems: list[str] = []
        saved: dict[str, int] = {}
        for (page, subpage), fields in pages.items():
            current = sg3.read_page(runner, target.device, page, subpage)
            before.update({name: get_field(current, place) for name, place in fields.items()})
            wanted = {name: (place, value) for name, place in fields.items() if (value := declared[name]) is not None}
            if save and wanted:
                kept = sg3.read_page(runner, target.device, page, subpage, sg3.SAVED)
                saved.update({name: get_field(kept, place) for name, (place, _) in wanted.items()})
            plan = _plan_page(runner, target, current, wanted, saved)
            problems += [_not_changeable(target, name, before[name], wanted[name][1]) for name in plan.unchangeable]
            if not plan.empty:
                writes.append((page, subpage, plan))
    except ToolError as problem:
        return DrivePlan(target, declared, {}, save=save, problems=(f"{target.id}: {problem}",))
    ordered = {name: before[name] for name in declared}
    return DrivePlan(target, declared, ordered, tuple(writes), save, tuple(problems), saved)


def _plan_page(
    runner: Runner,
    target: DriveTarget,
    current: bytes,
    wanted: Mapping[str, tuple[ModeField, int]],
    saved: Mapping[str, int],
) -> PagePlan:
    """The write of one page; the changeable mask is asked for only when something must change."""
    differing = [name for name, (place, value) in wanted.items() if get_field(current, place) != value]
    stale = [name for name, (_, value) in wanted.items() if saved.get(name, value) != value]
    if not differing and not stale:
        return PagePlan(current, bytes(len(current)), ())
    page, subpage = current[0] & 0x3F, current[1] if current[0] & 0x40 else 0
    changeable = sg3.read_page(runner, target.device, page, subpage, sg3.CHANGEABLE)
    plan = plan_page(current, changeable, wanted)
    if plan.empty and stale and not plan.unchangeable:
        # only the saved page is behind: write the current values again, with the save bit
        first = wanted[stale[0]][0]
        mask = bytearray(len(current))
        mask[first.byte] = 0xFF
        return PagePlan(current, bytes(mask), ())
    return plan


def _not_changeable(target: DriveTarget, name: str, has: int, wanted: int) -> str:
    mask = "its changeable mask says so"
    return f"{target.id}: {name} is {has} and not changeable on this drive ({mask}), {wanted} is declared"


def apply_plan(runner: Runner, plan: DrivePlan, sysfs: str = "/sys") -> list[str]:
    """Write what the plan says, and have the kernel look at the drive's cache again; return what was done."""
    target, steps = plan.target, []
    if target.nvme:
        for value in plan.changes.values():
            nvme.write_write_cache(runner, target.device, value, save=plan.save)
            steps.append(f"{target.id}: write cache set to {value}")
    for page, subpage, write in plan.pages:
        sg3.write_page(runner, target.device, page, subpage, write.contents, write.mask, save=plan.save)
        steps.append(f"{target.id}: mode page 0x{page:02x} written")
    if _WRITE_CACHE in plan.changes and not target.nvme:
        # without this the kernel would go on flushing, or not flushing, by what it read when it found the drive
        write_attribute(Path(sysfs) / "block" / target.node / "device" / "rescan", 1)
        steps.append(f"{target.id}: kernel asked to read the cache type again")
    return steps


def _cache_type(target: DriveTarget, sysfs: str) -> str:
    """What the kernel believes: `write back` or `write through`; empty when it does not say."""
    for path in sorted((Path(sysfs) / "block" / target.node / "device" / "scsi_disk").glob("*/cache_type")):
        return read_attribute(path) or ""
    return ""


def results(plan: DrivePlan, after: Mapping[str, int], sysfs: str = "/sys") -> list[Provisioned]:
    """One record per declared setting; the kernel's cache type is told beside WCE, its effect is not yet shown."""
    records = []
    for name, declared in plan.declared.items():
        before, now = plan.before.get(name), after.get(name)
        note = "read back from the drive; its effect was not measured"
        if name == _WRITE_CACHE and not plan.target.nvme:
            kernel = _cache_type(plan.target, sysfs) or "nothing"
            note = f"read back from the drive, the kernel says {kernel}; write latency was not measured"
        records.append(
            Provisioned(
                name=f"drive.{name}",
                declared=declared,
                before=before,
                read_back=now,
                drive=plan.target.id,
                changed=before != now,
                proof="" if declared is None else note,
            )
        )
    return records
