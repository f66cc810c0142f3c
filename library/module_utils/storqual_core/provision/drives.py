# SPDX-License-Identifier: Apache-2.0
"""Settings of drives: from what a drop declares to nodes that the guard lets be changed, and what is remembered.

And a part of a drive that only the kernel knows of: the window that fio has of it, as a device for a file system. No
partition table is written, so the guard's stamps at both ends stay, and at every moment, a power cut included, the
drive is recognised as scratch. The part goes when its batch ends, with the next boot, or with the restore.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Collection, ContextManager, Iterable, Iterator, Mapping, Sequence

from ..guard import hold
from ..guard.claims import Claim, claims_of_adapters
from ..guard.signatures import AREA, own_volumes
from ..host.block_stack import DriveTarget, node_of, partitions, target_of
from ..kit.command import Runner, run
from ..kit.errors import BadInputError, ToolError
from ..kit.lock import read_saved
from ..kit.machine import Machine
from ..kit.results import Provisioned
from ..kit.settings import find
from ..tools import util_linux
from .effects import EFFECTS, Watched, effect_of
from .engine import Outcome, Proof, apply, declared_by_owner, lock_for, plan, saver
from .mode_pages import NAME, SAVED, Links, ModePages, field_of, plain
from .queue import Queues


def claims_for(adapters: Mapping[str, Any], drives: Iterable[str]) -> tuple[Claim, ...]:
    """The claims on `drives`, in the order asked for. Raises BadInputError for a drive nobody claimed, or a file."""
    files = any("file" in drive for adapter in adapters.values() for drive in adapter.get("drives") or ())
    by_id = {claim.id: claim for claim in claims_of_adapters(adapters, "local" if files else "hardware")}
    wanted = list(drives)
    problems = [
        f"{drive}: no adapter of this bench has a claim on it: check the id, and `claim: true` in the inventory"
        for drive in wanted
        if drive not in by_id
    ]
    problems += [
        f"{drive}: is a file; only a real drive has mode pages, a queue, or a place in a volume"
        for drive in wanted
        if drive in by_id and by_id[drive].file
    ]
    if problems:
        raise BadInputError(problems)
    return tuple(by_id[drive] for drive in wanted)


def claim_record(claim: Claim) -> dict[str, Any]:
    """The claim as it is remembered, so that a restore needs no inventory: what is not known is left out."""
    return {key: value for key, value in asdict(claim).items() if value not in (None, "") and key != "id"}


@contextmanager
def usable_drives(claims: tuple[Claim, ...], state_dir: str, run_id: str) -> Iterator[dict[str, DriveTarget]]:
    """The claimed drives as targets, once the guard lets their settings be changed. Raises GuardRefusalError.

    A drive in a volume that storqual made is reached beside the volume, which is held in its place.
    """
    volumes = own_volumes(Machine(), state_dir, claims)
    members = {member for volume in volumes for member in volume.members}
    with hold.hold(claims, purpose="settings", state_dir=Path(state_dir), run=run_id, volumes=volumes) as held:
        yield {
            claim.id: target_of(claim.id, held.member(claim.id) if claim.id in members else held[claim.id])
            for claim in claims
        }


Access = Callable[[Any, str, str], ContextManager[Mapping[str, DriveTarget]]]

ALL, MODE_PAGES, QUEUE = "all", "mode_pages", "queue"
"""What drives keep themselves, what the kernel keeps for each of them, or both."""


class DriveSettings:
    """Every setting of a drive: the names of mode-page fields, and the others, which are the kernel's."""

    section = "drive"
    owned_by = "drive"
    watched: Sequence[str] = tuple(EFFECTS)

    def __init__(self, runner: Runner = run, *, save: bool = False, sysfs: str = "/sys", dev: str = "/dev") -> None:
        self._pages = ModePages(runner, save=save, sysfs=sysfs)
        self._queues = Queues(sysfs)
        self._links = Links(sysfs)
        self._sysfs, self._dev = sysfs, dev

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The values now. Raises ToolError."""
        found = self._pages.read(target, [name for name in names if is_page(name)])
        found.update(self._queues.read(target, [name for name in names if not is_page(name) and name != NAME]))
        found.update(self._links.read(target, names))
        return {name: found[name] for name in names if name in found}

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """What the drive, its driver or its adapter does not allow. Raises ToolError."""
        kinds: tuple[ModePages | Queues | Links, ...] = (self._pages, self._queues, self._links)
        parts = ({name: value for name, value in wanted.items() if self._of(name) is kind} for kind in kinds)
        return [told for kind, part in zip(kinds, parts) for told in kind.objections(target, part, now)]

    def _of(self, name: str) -> ModePages | Queues | Links:
        """What keeps a setting: the drive itself, the kernel's queue of it, or its link."""
        return self._pages if is_page(name) else self._links if name == NAME else self._queues

    def disturbs(self, name: str) -> Collection[str]:
        """As the vocabulary says; a saved page that is written is the current one, too."""
        return (plain(name),) if name.endswith(SAVED) else find("drive", name).disturbs

    def together(self, name: str) -> object:
        field = field_of(name)
        return name if field is None else (field.page, field.subpage, name.endswith(SAVED))

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write what goes together. Raises ToolError."""
        return self._of(next(iter(values))).write(target, values)

    def prove(self, target: DriveTarget, name: str, value: object) -> tuple[bool | None, str]:
        """How a value is known; what it does is not measured here."""
        if name == NAME:
            return self._links.prove(target, value)
        return None, self._pages.told(target, name) if is_page(name) else ""

    def watch(self, target: DriveTarget, name: str, value: Any, seconds: float) -> Proof:  # noqa: ANN401 - of a drop
        return effect_of(Watched(target, seconds, self._sysfs, self._dev), name, value)


def is_page(name: str) -> bool:
    return field_of(name) is not None


@dataclass(frozen=True)
class DriveRequest:
    """What a module was asked: declared settings by drive, the bench's adapters, its state, the run.

    `as_found`: settings by drive that must have the value that was remembered, where one was (what only the other arm
    of a campaign declares). `part`: only what drives keep themselves, or only the kernel's queue. `save`: have drives
    keep it over a power-on. `prove_s`: seconds of reads per drive and setting that show it in effect.
    """

    drives: Mapping[str, Mapping[str, object]]
    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    check: bool = False
    as_found: Mapping[str, Collection[str]] = field(default_factory=dict)
    part: str = ALL
    save: bool = False
    prove_s: float = 0.0


def provision_drives(
    request: DriveRequest, *, runner: Runner = run, sysfs: str = "/sys", access: Access = usable_drives
) -> dict[str, Any]:
    """Make the drives as declared; the module's result. Raises StorqualError of all kinds (see `engine.apply`).

    `access` is the guard, an argument for tests.
    """
    declared = _chosen(request)
    if not declared:
        return Outcome([], []).result()
    claims = claims_for(request.adapters, declared)
    subsystem = DriveSettings(runner, save=request.save, sysfs=sysfs)
    with ExitStack() as stack:
        lock = stack.enter_context(
            lock_for(request.state_dir, request.run, "settings of drives", check=request.check)
        )
        targets = stack.enter_context(access(claims, request.state_dir, request.run))
        saved = read_saved(Path(request.state_dir))
        plans = [
            plan(subsystem, drive, targets[drive], _with_saved(values, targets[drive], save=request.save), saved)
            for drive, values in declared.items()
        ]
        return apply(
            subsystem,
            plans,
            save=saver(lock),
            also=lambda each: claim_memory(claims, each.owner),
            prove_s=request.prove_s,
        ).result()


def _chosen(request: DriveRequest) -> dict[str, dict[str, Any]]:
    """The declared values of the part that is asked for, checked, by drive; drives without any are left out.

    All names are checked, so that a misspelt one is refused and not passed over by both parts.
    """
    declared = declared_by_owner("drive", request.drives, request.as_found, request.state_dir)
    parts = {MODE_PAGES: (True,), QUEUE: (False,), ALL: (True, False)}[request.part]
    chosen = {
        drive: {name: value for name, value in values.items() if is_page(name) in parts}
        for drive, values in declared.items()
    }
    return {drive: values for drive, values in chosen.items() if values}


def _with_saved(values: Mapping[str, Any], target: DriveTarget, *, save: bool) -> dict[str, Any]:
    """The same with the saved pages of a SCSI drive, which have what is declared."""
    if not save or target.nvme:
        return dict(values)
    saved = {f"{name}{SAVED}": value for name, value in values.items() if is_page(name) and value is not None}
    return {**values, **saved}


def claim_memory(claims: Iterable[Claim], drive: str) -> dict[str, Any]:
    """What is remembered with a drive's old values: the claim that allowed the change."""
    return {f"claim@{claim.id}": claim_record(claim) for claim in claims if claim.id == drive}


MEMORY = "file_system"
"""In saved.json, `file_system@<drive>`, or `@<UUID>` of a volume: null, because it has no part when it is found."""
_PART = 1
_SECTOR = 512


def make_part(runner: Runner, machine: Machine, disk: str, size: int) -> str:
    """Make the part of the drive with kernel name `disk`, `size` bytes from the guard's area on; its kernel name.

    Raises ToolError where the kernel makes none (a device-mapper device has no parts).
    """
    drop_part(runner, machine, disk)
    util_linux.add_part(runner, _node(machine, disk), _PART, AREA, size)
    names = partitions(machine, disk)
    if len(names) != 1:
        raise ToolError(f"{disk} shows parts {', '.join(names) or 'none'} after one was made, expected one")
    return names[0]


def drop_part(runner: Runner, machine: Machine, disk: str) -> list[str]:
    """Have the kernel forget the part that was made here, where there is one; its name. The guard holds the drive.

    Raises ToolError for a part that is somebody else's: nothing is done then.
    """
    names = partitions(machine, disk)
    for name in names:
        number, start = (machine.number(f"/sys/class/block/{name}/{what}") for what in ("partition", "start"))
        if (number, start) != (_PART, AREA // _SECTOR):
            raise ToolError(
                f"part {name} of {disk} was not made by storqual; remove it from the kernel yourself (delpart)"
            )
    for _ in names:
        util_linux.delete_part(runner, _node(machine, disk), _PART)
    return names


def restore_part(runner: Runner, machine: Machine, drive: str, disk: str, *, check: bool) -> Provisioned:
    """Take away what a batch that was killed left of its part; the record of it. Raises ToolError."""
    before = ", ".join(partitions(machine, disk)) or None
    if not check:
        drop_part(runner, machine, disk)
    now = ", ".join(partitions(machine, disk)) or None
    return Provisioned(MEMORY, None, before, now, drive=drive, changed=before != now)


def restore_part_of_volume(
    runner: Runner, machine: Machine, claims: Sequence[Claim], state_dir: str, run_id: str, uuid: str, *, check: bool
) -> Provisioned:
    """The same of a volume that storqual made, by its UUID; one that is gone took its part with it.

    Raises ToolError, GuardRefusalError.
    """
    volume = next((one for one in own_volumes(machine, state_dir, claims) if one.uuid == uuid), None)
    if volume is None:
        return Provisioned(MEMORY, None, None, None, drive=uuid)
    members = [claim for claim in claims if claim.id in volume.members]
    with hold.hold(
        members, purpose="settings", state_dir=state_dir, run=run_id, volumes=[volume], machine=machine, runner=runner
    ):
        return restore_part(runner, machine, uuid, volume.id, check=check)


def _node(machine: Machine, disk: str) -> str:
    node = node_of(machine, disk)
    if not node:
        raise ToolError(f"the device node of {disk} is missing or is another device: repair /dev (udev)")
    return node
