# SPDX-License-Identifier: Apache-2.0
"""Volumes as declared and as they exist: what must be done, and how md or an adapter's own tool does it.

Pure: declared volumes and those that exist go in, both with their members as drive ids; what to keep, to change, to
delete and to make comes out, and what a person must look at first.

mdadm must open the members itself, so the guard lets go of them for it, takes the new array in their place, and
repeats its layers 2 to 4 on what is there then. An array's UUID is on disk, as storqual's, before the array is made:
whatever a power cut leaves of it is known, and is cleared or made again by the next run.

The guard cannot look at such a drive, so what it cannot see needs consent: each member is named by WWN, unless it
comes out of a volume that this very run made. The drive must be the claimed one by WWN, serial and model as the
adapter tells them, and belong to nothing; a volume that the kernel uses in any way is never deleted.
"""

from __future__ import annotations

import os
import re
import select
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ...guard import hold
from ...guard.claims import Claim, VolumeClaim
from ...guard.rules import Refusal, chosen, missing_consent, topmost
from ...guard.signatures import Ledger, own_volumes, volume_uuid
from ...guard.snapshot import look
from ...host.block_stack import above, describe, is_partition
from ...host.identity import same_text
from ...host.in_use import find_uses
from ...kit.command import Runner, run
from ...kit.errors import BadInputError, GuardRefusalError, StorqualError, ToolError
from ...kit.machine import Machine, visible
from ...kit.results import PartialError
from ...kit.settings import check_section
from ...tools import mdadm
from ...tools.capabilities import DriveFacts, ToolFacts, Value, VolumeFacts, VolumeRequest

POLICIES = ("read_policy", "write_policy", "io_policy", "disk_cache", "rebuild_rate", "bitmap")
"""What can be changed while a volume lives."""

_NEEDED = ("level", "members")
_WITHOUT_STRIPS = "1"
_NOT_STARTED = "inactive"


@dataclass(frozen=True)
class DeclaredVolume:
    """A declared volume. `members` and `spares` are drive ids, `strip` is bytes; None: not declared."""

    adapter: str
    level: str
    members: tuple[str, ...]
    strip: int | None
    name: str | None
    initialisation: str
    spares: tuple[str, ...] | None
    policies: Mapping[str, Value]
    tool: str

    @property
    def key(self) -> str:
        """What the volume of these members is known by, whatever it is called: its UUID where storqual makes it."""
        return volume_uuid(self.members)

    @property
    def owner(self) -> str:
        """The volume in messages and records: `<adapter>/<name>`."""
        return f"{self.adapter}/{self.made_name}"

    @property
    def made_name(self) -> str:
        return self.name or f"sq-{self.key[:8]}"

    @property
    def drives(self) -> tuple[str, ...]:
        return self.members + (self.spares or ())

    def declared(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"level": self.level, "members": sorted(self.members)}
        if self.strip is not None and self.level != _WITHOUT_STRIPS:
            settings["strip"] = self.strip
        if self.name is not None:
            settings["name"] = self.name
        if self.spares is not None:
            settings["hot_spares"] = sorted(self.spares)
        return {**settings, **self.policies}

    def request(self, places: Mapping[str, str]) -> VolumeRequest:
        """The volume for a tool that knows drives by their `places`."""
        return VolumeRequest(
            level=self.level,
            members=tuple(places.get(drive, drive) for drive in self.members),
            strip=self.strip,
            name=self.name or "",
            policies=self.policies,
            initialisation=self.initialisation,
            spares=tuple(places.get(drive, drive) for drive in self.spares or ()),
        )


@dataclass(frozen=True)
class Existing:
    """A volume that the bench has: what its tool says, its drives by id (kernel name where nobody claims one).

    `own`: storqual made it. `this_run`: the run that asks made it, so that its end needs nobody's consent.
    """

    facts: VolumeFacts
    members: tuple[str, ...]
    spares: tuple[str, ...]
    own: bool
    this_run: bool = False
    failed: tuple[str, ...] = ()
    adapter: str = ""
    """Its adapter, as the tool names it."""

    @property
    def drives(self) -> frozenset[str]:
        return frozenset((*self.members, *self.spares, *self.failed))

    def settings(self) -> dict[str, Any]:
        return {
            "level": self.facts.level,
            "members": sorted(self.members),
            "strip": self.facts.strip,
            "name": self.facts.name,
            "hot_spares": sorted(self.spares),
            **self.facts.policies,
        }


@dataclass(frozen=True)
class VolumePlan:
    """One declared volume: the one that is it already, else what is in its way; policies to set; what forbids it."""

    layout: DeclaredVolume
    there: Existing | None
    delete: tuple[Existing, ...] = ()
    policies: Mapping[str, Value] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def makes(self) -> bool:
        return self.there is None

    @property
    def writes(self) -> bool:
        return self.makes or bool(self.policies)

    def before(self) -> dict[str, Any]:
        """What was there in place of each declared setting; None where there was no such volume."""
        array = self.there or next((volume for volume in self.delete), None)
        settings = array.settings() if array is not None else {}
        return {name: settings.get(name) for name in self.layout.declared()}


def read_layouts(volumes: Iterable[Mapping[str, Any]]) -> list[DeclaredVolume]:
    """Declared volumes from the section `raid` of a resolved drop (each with its `adapter`).

    Raises BadInputError with every problem: a name or value that is wrong, what is missing, a drive named twice.
    """
    layouts, problems = [], []
    taken: dict[str, str] = {}
    for number, given in enumerate(volumes, start=1):
        place = f"volume {number} of adapter {given.get('adapter')}"
        values = {name: value for name, value in given.items() if name != "adapter"}
        try:
            plain: Mapping[str, Any] = check_section("raid", values)
        except BadInputError as problem:
            problems += [f"{place}: {line}" for line in problem.problems]
            continue
        missing = [name for name in _NEEDED if not plain.get(name)]
        if missing:
            problems.append(f"{place}: found no {' and no '.join(missing)}, expected a level and members")
            continue
        layout = _layout_of(str(given.get("adapter", "")), plain)
        for drive in layout.drives:
            if drive in taken:
                problems.append(f"{place}: drive {drive} is in {taken[drive]} already")
            taken.setdefault(drive, place)
        layouts.append(layout)
    if problems:
        raise BadInputError(problems)
    return layouts


def _layout_of(adapter: str, plain: Mapping[str, Any]) -> DeclaredVolume:
    spares = plain.get("hot_spares")
    return DeclaredVolume(
        adapter=adapter,
        level=plain["level"],
        members=tuple(plain["members"]),
        strip=plain.get("strip"),
        name=plain.get("name"),
        initialisation=plain.get("initialisation", ""),
        spares=None if spares is None else tuple(spares),
        policies={name: plain[name] for name in POLICIES if name in plain},
        tool=plain.get("tool", ""),
    )


def plan_volumes(
    layouts: Sequence[DeclaredVolume], existing: Sequence[Existing], claimed: Iterable[str]
) -> list[VolumePlan]:
    """One plan per declared volume. A volume that shares a drive with a declared one and is not it must go."""
    known = set(claimed)
    return [_plan(layout, existing, known) for layout in layouts]


def _plan(layout: DeclaredVolume, existing: Sequence[Existing], claimed: set[str]) -> VolumePlan:
    touching = [volume for volume in existing if volume.drives & set(layout.drives)]
    there = next((volume for volume in touching if not _cut_short(volume) and _same_layout(layout, volume)), None)
    if there is not None:
        has = there.settings()
        policies = {name: value for name, value in layout.policies.items() if has.get(name) != value}
        return VolumePlan(layout, there, policies=policies, problems=tuple(_ill(layout, there)))
    # of what cannot be read whole nobody knows which drives are its own; adapters look at theirs themselves
    odd = [volume for volume in existing if volume.facts.unread and (volume in touching or not volume.adapter)]
    problems = [f"{layout.owner}: volume {each.facts.id} cannot be read: {each.facts.unread}" for each in odd]
    for volume in touching:
        others = sorted(volume.drives - claimed)
        if others:
            problems.append(
                f"{layout.owner}: volume {volume.facts.id} is in its way and is also on {', '.join(others)}, "
                f"which no claim covers; delete it yourself if it is not needed"
            )
    return VolumePlan(layout, None, delete=tuple(touching), problems=tuple(problems))


def _same_layout(layout: DeclaredVolume, volume: Existing) -> bool:
    """Level, members, strip, and name and spares where they are declared.

    A volume that storqual made of these members and that lost one is still that volume, and is told to be ill.
    """
    has = volume.settings()
    ill = volume.own and volume.facts.uuid == layout.key and volume.facts.healthy is False
    passed = {*POLICIES, *(("members", "hot_spares") if ill else ())}
    return all(has[name] == value for name, value in layout.declared().items() if name not in passed)


def _cut_short(volume: Existing) -> bool:
    """Whether the run was interrupted while it made this volume: some members know of it, so it does not start."""
    return volume.this_run and volume.facts.state == _NOT_STARTED


def _ill(layout: DeclaredVolume, volume: Existing) -> Iterable[str]:
    """A volume that lost a member and is not being rebuilt is not what was declared, though its layout is."""
    if volume.facts.healthy is False and not volume.facts.progress:
        failed = f", failed: {', '.join(volume.facts.failed)}" if volume.facts.failed else ""
        yield (
            f"{layout.owner}: volume {volume.facts.id} is {volume.facts.state}{failed}; "
            f"replace what failed and let it rebuild, or delete the volume"
        )


_IDLE = ("idle", "frozen", "")
_LOOK_AGAIN_S = 5.0
"""A controller has no event to wait for; and an event of md may come before its counters are settled."""


def wait_for(
    volume: Existing, progress: Callable[[Existing], Mapping[str, float]], seconds: float
) -> Mapping[str, float]:
    """Wait at most `seconds`; percent by task of what is still under way, empty when nothing is. Raises ToolError."""
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        under_way = progress(volume)
        if not under_way or left <= 0:
            return under_way
        _event(Path("/sys/block") / Path(volume.facts.device).resolve().name / "md" / "sync_action", left)


def _event(path: Path, seconds: float) -> None:
    """Until the kernel says that the action changed, but not longer than `seconds` or until the next look."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        time.sleep(min(seconds, _LOOK_AGAIN_S))
        return
    try:
        if os.read(handle, 64).decode("ascii", "replace").strip() in _IDLE:
            time.sleep(min(seconds, _LOOK_AGAIN_S / 10))
            return
        waiting = select.poll()
        waiting.register(handle, select.POLLPRI | select.POLLERR)
        waiting.poll(min(seconds, _LOOK_AGAIN_S * 12) * 1000)
    finally:
        os.close(handle)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}\Z")


@dataclass(frozen=True)
class MdVolumes:
    """md on one bench. `made_now` are the UUIDs of what the run that asks has made."""

    claims: Sequence[Claim]
    state_dir: str
    run_id: str
    consent: Collection[str] = ()
    made_now: Collection[str] = ()
    machine: Machine = field(default_factory=Machine)
    runner: Runner = run

    def look(self) -> list[Existing]:
        """Every array of the bench, its members as ids of claims where they are claimed."""
        names = self._names()
        made = Ledger.read(self.machine.path(self.state_dir)).made
        arrays = []
        for facts in mdadm.read_volumes(self.runner, mdadm.INDEX):
            members, spares, failed = (
                tuple(names.get(kernel, kernel) for kernel in map(self._kernel_name, nodes))
                for nodes in (facts.members, facts.spares, facts.failed)
            )
            own = bool(members) and all(facts.uuid in made.get(drive, ()) for drive in (*members, *spares))
            arrays.append(Existing(facts, members, spares, own, own and facts.uuid in self.made_now, failed))
        return arrays

    def _names(self) -> dict[str, str]:
        snapshot = look(self.machine, self.claims, state_dir=self.state_dir, contents=False, runner=self.runner)
        names = {}
        for claim in self.claims:
            drive = chosen(claim, snapshot)
            if drive is not None:
                names[drive.name] = names[topmost(drive, snapshot)] = claim.id
        return names

    def _kernel_name(self, path: str) -> str:
        node = self.machine.node(path)
        return (self.machine.name_of(node) if node is not None else "") or path.rpartition("/")[2]

    def objections(self, layout: DeclaredVolume) -> list[str]:
        """What md cannot make of a wish."""
        problems = [f"{layout.owner}: {problem}" for problem in mdadm.objections(self._request(layout, {}))]
        if not _NAME.match(layout.made_name):
            problems.append(
                f"{layout.owner}: md takes names of up to 31 letters, digits, dots, dashes and underscores"
            )
        return problems

    def refusals(self, layout: DeclaredVolume, delete: Iterable[Existing]) -> list[str]:
        """What the guard says to deleting these and making that, for check mode; nothing is held or written."""
        going = list(delete)
        foreign = [volume for volume in going if not volume.this_run]
        own = [_claim_of(volume) for volume in going if volume.this_run]
        apart = {drive for volume in foreign for drive in volume.drives}
        left = {*layout.drives, *(drive for volume in own for drive in volume.members)} - apart
        refusals = self._check(left, "write", own)
        for volume in foreign:
            refusals += self._check(volume.drives, "delete_volume", [_claim_of(volume)])
        return refusals

    def _check(self, drives: Iterable[str], purpose: str, volumes: Sequence[VolumeClaim]) -> list[str]:
        refusals = hold.check(self._claims_of(drives), **self._terms(purpose, volumes))
        return [str(refusal) for refusal in refusals]

    def _terms(self, purpose: str, volumes: Sequence[VolumeClaim]) -> dict[str, Any]:
        of_bench = {"state_dir": self.state_dir, "machine": self.machine, "runner": self.runner}
        return {"purpose": purpose, "volumes": volumes, "consent": self.consent, **of_bench}

    def delete(self, volume: Existing) -> list[str]:
        """Stop an array, clear and stamp its drives. Raises GuardRefusalError before, PartialError after a write."""
        if volume.facts.unread:
            raise GuardRefusalError([f"array {volume.facts.id} cannot be read whole: {volume.facts.unread}"])
        claims, target = self._claims_of(volume.drives), _claim_of(volume)
        purpose = "write" if volume.this_run else "delete_volume"
        with self._hold(claims, purpose, [target]) as held:
            if not volume.this_run:
                held.adopt(target.id)
            held.release(target.id)
            mdadm.delete(self.runner, mdadm.INDEX, volume.facts)
        steps = [f"{volume.facts.id} stopped"]
        return steps + self._after(steps, lambda: self.clear(volume.drives))

    def clear(self, drives: Iterable[str]) -> list[str]:
        """Take what storqual made off these drives and stamp them as scratch again. Raises GuardRefusalError."""
        with self._hold(self._claims_of(drives), "write", []) as held:
            held.stamp(*held)
            return [f"{drive}: superblock cleared" for drive in held]

    def remove(self, key: str, drives: Iterable[str]) -> list[str]:
        """Take away the array with this UUID, or what is left of it on its drives; nothing when nothing is."""
        volume = next((volume for volume in self.look() if volume.facts.uuid == key), None)
        if volume is not None:
            return self.delete(volume)
        made = Ledger.read(self.machine.path(self.state_dir)).made
        left = [drive for drive in drives if key in made.get(drive, ())]
        return self.clear(left) if left else []

    def create(self, layout: DeclaredVolume, save: Callable[[], None]) -> list[str]:
        """Make the array; `save` keeps the state before the first write. Raises GuardRefusalError, PartialError."""
        claims = self._claims_of(layout.drives)
        with self._hold(claims, "write", []) as held:
            save()
            held.announce(*layout.drives, name=layout.key)
            nodes = {drive: held.release(drive) for drive in layout.drives}
            steps = [f"{layout.owner}: RAID {layout.level} of {len(layout.members)} drives made"]
            self._after([f"{layout.owner}: mdadm was started"], lambda: self._make(self._request(layout, nodes)))

        def verify() -> list[str]:
            made = [
                volume for volume in own_volumes(self.machine, self.state_dir, claims) if volume.uuid == layout.key
            ]
            if not made:
                raise ToolError(f"{layout.owner}: the kernel shows no array {layout.key} after mdadm made it")
            with self._hold(claims, "write", made):
                return []

        return steps + self._after(steps, verify)

    def _make(self, request: VolumeRequest) -> list[str]:
        mdadm.create(self.runner, mdadm.INDEX, request)
        return []

    def set_policy(self, owner: str, volume: Existing, name: str, value: Value) -> list[str]:
        """Change a policy of a running array. Raises GuardRefusalError, ToolError."""
        target = _claim_of(volume)
        with self._hold(self._claims_of(volume.drives), "settings", [target]) as held:
            held.release(target.id)
            mdadm.set_policy(self.runner, mdadm.INDEX, volume.facts, name, value)
        return [f"{owner}: {name} set to {value}"]

    def resume(self, owner: str, volume: Existing) -> list[str]:
        """Have an array go on that a boot found in the middle of its initialisation; nothing when it does already.

        Debian's kernels assemble arrays to be read only until the first write, and wait with everything else for it.
        Raises GuardRefusalError, ToolError.
        """
        name = self._kernel_name(volume.facts.device)
        waits = self.machine.text(f"/sys/block/{name}/md/array_state") == "read-auto"
        if not (waits and volume.facts.progress):
            return []
        target = _claim_of(volume)
        with self._hold(self._claims_of(volume.drives), "write", [target]) as held:
            held.release(target.id)
            mdadm.resume(self.runner, mdadm.INDEX, volume.facts)
        return [f"{owner}: {', '.join(volume.facts.progress)} goes on"]

    def progress(self, volume: Existing) -> Mapping[str, float]:
        """Percent by task of what is under way."""
        return mdadm.progress(self.runner, mdadm.INDEX, volume.facts)

    @staticmethod
    def _after(steps: Sequence[str], work: Callable[[], list[str]]) -> list[str]:
        """Do what follows a write; its failure says what was done before."""
        try:
            return work()
        except PartialError:
            raise
        except StorqualError as problem:
            raise PartialError(str(problem), steps=steps, settings=()) from problem

    def _hold(self, claims: Sequence[Claim], purpose: str, volumes: Sequence[VolumeClaim]) -> Any:  # noqa: ANN401
        return hold.hold(claims, run=self.run_id, **self._terms(purpose, volumes))

    def _claims_of(self, drives: Iterable[str]) -> list[Claim]:
        wanted = set(drives)
        claims = [claim for claim in self.claims if claim.id in wanted]
        unclaimed = sorted(wanted - {claim.id for claim in claims})
        if unclaimed:
            raise ToolError(f"nobody claims {', '.join(unclaimed)}, so no volume on it is touched")
        return claims

    @staticmethod
    def _device(layout: DeclaredVolume) -> str:
        return f"/dev/md/{layout.made_name}"

    def _request(self, layout: DeclaredVolume, nodes: Mapping[str, str]) -> VolumeRequest:
        device = self._device(layout)
        return replace(layout.request(nodes), name=layout.made_name, uuid=layout.key, device=device)


def _claim_of(volume: Existing) -> VolumeClaim:
    return VolumeClaim(volume.facts.id, volume.facts.device, volume.facts.uuid, tuple(sorted(volume.drives)))


_AT_CREATION = ("read_policy", "write_policy", "io_policy")


@dataclass(frozen=True)
class _Place:
    """Where a claimed drive is: the adapter in the tool's words, and what the adapter says of the drive."""

    adapter: str
    drive: DriveFacts


@dataclass(frozen=True)
class ControllerVolumes:
    """The volumes of one tool on one bench. `made_now` are the keys of what the run that asks has made."""

    name: str
    tool: Any
    claims: Sequence[Claim]
    state_dir: str
    consent: Collection[str] = ()
    made_now: Collection[str] = ()
    machine: Machine = field(default_factory=Machine)
    runner: Runner = run

    def look(self) -> list[Existing]:
        """Every volume of every adapter of the tool, its members as ids of claims where they are claimed."""
        facts: ToolFacts = self.tool.read_facts(self.runner)
        places = self._places(facts)
        made = Ledger.read(self.machine.path(self.state_dir)).made
        volumes = []
        for adapter in facts.adapters:
            ids = {place.drive.position: drive for drive, place in places.items() if place.adapter == adapter.index}
            shared = self._shared(adapter.index) if adapter.volumes else {}
            for volume in adapter.volumes:
                members, spares, failed = (
                    tuple(ids.get(position, position) for position in positions)
                    for positions in (volume.members, volume.spares, volume.failed)
                )
                key = volume_uuid(members)
                own = bool(members) and all(key in made.get(drive, ()) for drive in members)
                known = replace(volume, uuid=key, policies={**volume.policies, **shared})
                now = own and key in self.made_now
                volumes.append(Existing(known, members, spares, own, now, failed, adapter.index))
        return volumes

    def _shared(self, index: str) -> dict[str, Value]:
        """What a drop says of a volume and the tool keeps for the whole adapter."""
        if "rebuild_rate" not in getattr(self.tool, "SETTINGS", {}):
            return {}
        settings: Mapping[str, Value] = self.tool.read_settings(self.runner, index)
        return {name: value for name, value in settings.items() if name == "rebuild_rate"}

    def _places(self, facts: ToolFacts) -> dict[str, _Place]:
        """Claimed drives by id; only those that are the claimed ones in all that the adapter says.

        A claim that two drives answer to names neither.
        """
        places = {}
        for claim in self.claims:
            fitting = [
                _Place(adapter.index, drive)
                for adapter in facts.adapters
                for drive in adapter.drives
                if same_drive(claim, drive)
            ]
            if len(fitting) == 1:
                places[claim.id] = fitting[0]
        return places

    def objections(self, layout: DeclaredVolume) -> list[str]:
        """What the tool cannot make of a wish, and members that are not there, not alike, or not free."""
        problems = [f"{layout.owner}: {problem}" for problem in self.tool.objections(layout.request({}))]
        facts: ToolFacts = self.tool.read_facts(self.runner)
        places = self._places(facts)
        free: Sequence[str] = getattr(self.tool, "FREE", ())
        taken = {position for a in facts.adapters for v in a.volumes for position in (*v.members, *v.spares)}
        for drive in layout.drives:
            place = places.get(drive)
            if place is None:
                problems.append(
                    f"{layout.owner}: {self.name} shows no drive with the WWN, serial and model of {visible(drive)}"
                )
            elif place.drive.position not in taken and free and place.drive.state not in free:
                remedy = "change its state, or name another drive"
                if place.drive.state.endswith("foreign"):
                    remedy = "it has a configuration of another controller: import or clear that first"
                problems.append(
                    f"{layout.owner}: drive {visible(drive)} is {visible(place.drive.state) or 'in no known state'} "
                    f"in the words of {self.name}, expected {' or '.join(free)}; {remedy}"
                )
        indexes = {places[drive].adapter for drive in layout.drives if drive in places}
        # what is not known whole may be made of any of its drives
        problems += [
            f"{layout.owner}: {self.name} shows what cannot be read of adapter {adapter.index}: {why}"
            for adapter in facts.adapters
            if adapter.index in indexes or not indexes
            for why in adapter.unreadable()
        ]
        if len(indexes) > 1:
            problems.append(f"{layout.owner}: its drives are on {len(indexes)} adapters")
        return problems

    def refusals(self, layout: DeclaredVolume, delete: Iterable[Existing]) -> list[str]:
        """What forbids to delete these and make that; empty when nothing does."""
        going = list(delete)
        ours = {drive for volume in going if volume.this_run for drive in volume.drives}
        drives = {*layout.drives, *(drive for volume in going for drive in volume.drives)} - ours
        refusals = [
            *self._unconsented(drives),
            *(refusal for volume in going for refusal in volume_uses(self.machine, volume.facts)),
        ]
        return [str(refusal) for refusal in refusals]

    def _unconsented(self, drives: Collection[str]) -> Iterator[Refusal]:
        """What consent lacks for these drives, none of which anybody can look at."""
        known = {claim.id for claim in self.claims}
        for claim in self.claims:
            if claim.id in drives:
                yield from missing_consent(claim, known, self.consent)

    def delete(self, volume: Existing) -> list[str]:
        """Delete a volume. Raises GuardRefusalError without consent or when it is used, ToolError."""
        foreign = () if volume.this_run else volume.drives
        if volume.facts.unread:
            raise GuardRefusalError([f"volume {volume.facts.id} cannot be read whole: {volume.facts.unread}"])
        refusals = [*self._unconsented(foreign), *volume_uses(self.machine, volume.facts)]
        if refusals:
            raise GuardRefusalError([str(refusal) for refusal in refusals])
        self.tool.delete(self.runner, volume.adapter, volume.facts)
        for drive in sorted(volume.drives):
            Ledger.read(self.machine.path(self.state_dir)).cleared(drive)
        return [f"{self.name}: volume {volume.facts.id} of adapter {volume.adapter} deleted"]

    def remove(self, key: str, drives: Iterable[str]) -> list[str]:  # noqa: ARG002 - a deleted volume leaves nothing
        """Delete the volume with this key; nothing when it is not there."""
        volume = next((volume for volume in self.look() if volume.facts.uuid == key), None)
        return self.delete(volume) if volume is not None else []

    def create(self, layout: DeclaredVolume, save: Callable[[], None]) -> list[str]:
        """Make a volume, set what cannot be said at its creation, start its initialisation.

        Raises GuardRefusalError, ToolError before the first write, PartialError after it.
        """
        made = Ledger.read(self.machine.path(self.state_dir))
        known = layout.key in self.made_now or all(layout.key in made.made.get(drive, ()) for drive in layout.drives)
        refusals = [] if known else list(self._unconsented(layout.drives))
        if refusals:
            raise GuardRefusalError([str(refusal) for refusal in refusals])
        places = self._places(self.tool.read_facts(self.runner))
        missing = [drive for drive in layout.drives if drive not in places]
        if missing:
            raise ToolError(f"{layout.owner}: {self.name} shows no drive {', '.join(missing)} any more")
        index = places[layout.members[0]].adapter
        save()
        made.announce(*layout.drives, name=layout.key)
        request = layout.request({drive: place.drive.position for drive, place in places.items()})
        steps = [f"{layout.owner}: RAID {layout.level} of {len(layout.members)} drives made"]
        try:
            self.tool.create(self.runner, index, request)
            steps += self._finish(layout)
        except StorqualError as problem:
            raise PartialError(str(problem), steps=steps, settings=()) from problem
        return steps

    def _finish(self, layout: DeclaredVolume) -> list[str]:
        volume = next((volume for volume in self.look() if volume.facts.uuid == layout.key), None)
        if volume is None:
            raise ToolError(f"{layout.owner}: {self.name} shows no volume of these members after making it")
        steps = []
        for name, value in layout.policies.items():
            if name not in _AT_CREATION:
                steps += self.set_policy(layout.owner, volume, name, value)
        if layout.initialisation in ("fast", "full"):
            self.tool.initialise(self.runner, volume.adapter, volume.facts, layout.initialisation)
            steps.append(f"{layout.owner}: {layout.initialisation} initialisation started")
        return steps

    def set_policy(self, owner: str, volume: Existing, name: str, value: Value) -> list[str]:
        """Change a policy of a living volume. Raises ToolError."""
        self.tool.set_policy(self.runner, volume.adapter, volume.facts, name, value)
        return [f"{owner}: {name} set to {value}"]

    @staticmethod
    def resume(owner: str, volume: Existing) -> list[str]:  # noqa: ARG004 - as md's
        return []

    def progress(self, volume: Existing) -> Mapping[str, float]:
        """Percent by task of what is under way. Raises ToolError, also for a volume that is gone."""
        if hasattr(self.tool, "progress"):
            progress: Mapping[str, float] = self.tool.progress(self.runner, volume.adapter, volume.facts)
            return progress
        listed: Sequence[VolumeFacts] = self.tool.read_volumes(self.runner, volume.adapter)
        for facts in listed:
            if facts.id == volume.facts.id and facts.unread:
                raise ToolError(facts.unread)
            if facts.id == volume.facts.id:
                return facts.progress
        raise ToolError(f"{self.name} shows no volume {volume.facts.id} of adapter {volume.adapter} any more")


def volume_uses(machine: Machine, volume: VolumeFacts) -> Iterator[Refusal]:
    """Who uses a volume's block device, its partitions, and what is made of them."""
    name = volume.device.rpartition("/")[2]
    if not name:
        return
    uses = find_uses(machine)
    for device in (name, *above(machine, name)):
        for use in uses.get(device, ()):
            yield Refusal(f"volume {volume.id}", f"{device} {use}", "stop that use")
        if device != name and not is_partition(machine, device):
            yield Refusal(f"volume {volume.id}", f"{describe(machine, device)} is made of it", "take that apart")
    busy = machine.busy(volume.device)
    if busy:
        yield Refusal(f"volume {volume.id}", busy, "find out who has it (lsblk, fuser) and end that")


def same_drive(claim: Claim, drive: DriveFacts) -> bool:
    """Whether a drive behind an adapter is the claimed one: by WWN and serial, of which one at least both sides know.

    What only one side knows decides nothing. Model and size must not speak against it; a size that the tool rounded
    speaks against it when it cannot mean the claimed one.
    """
    names = _same_name(claim.wwn, drive.wwn) if claim.wwn and drive.wwn else None
    serial = drive.serial.strip()
    serials = same_text(claim.serial, serial) if claim.serial and serial else None
    if False in (names, serials) or True not in (names, serials) or not _same_model(claim, drive):
        return False
    exact = None if drive.size is None else (drive.size, drive.size)
    sizes = drive.size_range or exact
    return sizes is None or sizes[0] <= claim.size <= sizes[1]


def _same_name(claimed: str, read: str) -> bool | None:
    """Whether two WWNs are one; None for names of one SAS drive's ports, which then says nothing by itself.

    Ports are counted on from the name of the drive in its last two bits, and some tools (ssacli, arcconf) tell the
    name of the port that they see.
    """
    if claimed == read:
        return True
    sas = all(re.match(r"0x5[0-9a-f]{15}\Z", name) for name in (claimed, read))
    return None if sas and int(claimed, 16) >> 2 == int(read, 16) >> 2 else False


def _same_model(claim: Claim, drive: DriveFacts) -> bool:
    """Whether the models can be one: with the vendor in front or without, whole or as the 16 bytes of an INQUIRY."""
    words = (" ".join(text.split()).lower() for text in (claim.vendor, claim.model, drive.vendor, drive.model))
    claimed_vendor, claimed, vendor, read = words
    if not claimed or not read:
        return True
    ours = {claimed, f"{claimed_vendor} {claimed}".strip()}
    # old ServeRAIDs show the first eight bytes of a SATA drive's model where the vendor stands
    theirs = {read, f"{vendor} {read}".strip(), *([vendor + read] if len(vendor) == 8 else [])}
    return bool(ours & theirs) or claimed in {name[:16].rstrip() for name in theirs} or claimed[:16].rstrip() == read
