# SPDX-License-Identifier: Apache-2.0
"""Volumes that an adapter makes of drives that the kernel does not see, through the adapter's own tool.

The guard cannot look at such a drive, so what it cannot see needs consent: each member is named by WWN, unless it
comes out of a volume that this very run made. The drive must be the claimed one by WWN, serial and model as the
adapter tells them, and belong to nothing; a volume that the kernel uses in any way is never deleted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ...guard.claims import Claim
from ...guard.rules import Refusal, missing_consent
from ...guard.signatures import Ledger, volume_uuid
from ...host.block_stack import above, describe, is_partition
from ...host.identity import same_text
from ...host.in_use import find_uses
from ...kit.command import Runner, run
from ...kit.errors import GuardRefusalError, StorqualError, ToolError
from ...kit.machine import Machine, visible
from ...kit.results import PartialError
from ...tools.capabilities import DriveFacts, ToolFacts, Value, VolumeFacts, VolumeRequest
from .plan import Existing, Wish

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
        found = []
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
                found.append(Existing(known, members, spares, own, now, failed, adapter.index))
        return found

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
        found = {}
        for claim in self.claims:
            fitting = [
                _Place(adapter.index, drive)
                for adapter in facts.adapters
                for drive in adapter.drives
                if same_drive(claim, drive)
            ]
            if len(fitting) == 1:
                found[claim.id] = fitting[0]
        return found

    def objections(self, wish: Wish) -> list[str]:
        """What the tool cannot make of a wish, and members that are not there, not alike, or not free."""
        said = [f"{wish.owner}: {problem}" for problem in self.tool.objections(self._request(wish, {}))]
        facts: ToolFacts = self.tool.read_facts(self.runner)
        places = self._places(facts)
        free: Sequence[str] = getattr(self.tool, "FREE", ())
        taken = {position for a in facts.adapters for v in a.volumes for position in (*v.members, *v.spares)}
        for drive in wish.drives:
            place = places.get(drive)
            if place is None:
                said.append(
                    f"{wish.owner}: {self.name} shows no drive with the WWN, serial and model of {visible(drive)}"
                )
            elif place.drive.position not in taken and free and place.drive.state not in free:
                said.append(
                    f"{wish.owner}: drive {visible(drive)} is {visible(place.drive.state) or 'in no known state'} in "
                    f"the words of {self.name}, expected {' or '.join(free)}; change its state, or name another drive"
                )
        indexes = {places[drive].adapter for drive in wish.drives if drive in places}
        if len(indexes) > 1:
            said.append(f"{wish.owner}: its drives are on {len(indexes)} adapters")
        return said

    def refusals(self, wish: Wish, delete: Iterable[Existing]) -> list[str]:
        """What forbids to delete these and make that; empty when nothing does."""
        going = list(delete)
        ours = {drive for volume in going if volume.this_run for drive in volume.drives}
        drives = {*wish.drives, *(drive for volume in going for drive in volume.drives)} - ours
        found = [
            *self._unconsented(drives),
            *(refusal for volume in going for refusal in volume_uses(self.machine, volume.facts)),
        ]
        return [str(refusal) for refusal in found]

    def _unconsented(self, drives: Collection[str]) -> Iterator[Refusal]:
        """What consent lacks for these drives, none of which anybody can look at."""
        known = {claim.id for claim in self.claims}
        for claim in self.claims:
            if claim.id in drives:
                yield from missing_consent(claim, known, self.consent)

    def delete(self, volume: Existing) -> list[str]:
        """Delete a volume. Raises GuardRefusalError without consent or when it is used, ToolError."""
        foreign = () if volume.this_run else volume.drives
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

    def create(self, wish: Wish, save: Callable[[], None]) -> list[str]:
        """Make a volume, set what cannot be said at its creation, start its initialisation.

        Raises GuardRefusalError, ToolError before the first write, PartialError after it.
        """
        made = Ledger.read(self.machine.path(self.state_dir))
        known = wish.key in self.made_now or all(wish.key in made.made.get(drive, ()) for drive in wish.drives)
        refusals = [] if known else list(self._unconsented(wish.drives))
        if refusals:
            raise GuardRefusalError([str(refusal) for refusal in refusals])
        places = self._places(self.tool.read_facts(self.runner))
        missing = [drive for drive in wish.drives if drive not in places]
        if missing:
            raise ToolError(f"{wish.owner}: {self.name} shows no drive {', '.join(missing)} any more")
        index = places[wish.members[0]].adapter
        save()
        made.announce(*wish.drives, name=wish.key)
        request = self._request(wish, {drive: place.drive.position for drive, place in places.items()})
        steps = [f"{wish.owner}: RAID {wish.level} of {len(wish.members)} drives made"]
        try:
            self.tool.create(self.runner, index, request)
            steps += self._finish(wish)
        except StorqualError as problem:
            raise PartialError(str(problem), steps=steps, settings=()) from problem
        return steps

    def _finish(self, wish: Wish) -> list[str]:
        """Policies that are not said at the creation, and the initialisation."""
        volume = next((volume for volume in self.look() if volume.facts.uuid == wish.key), None)
        if volume is None:
            raise ToolError(f"{wish.owner}: {self.name} shows no volume of these members after making it")
        steps = []
        for name, value in wish.policies.items():
            if name not in _AT_CREATION:
                steps += self.set_policy(wish.owner, volume, name, value)
        if wish.initialisation in ("fast", "full"):
            self.tool.initialise(self.runner, volume.adapter, volume.facts, wish.initialisation)
            steps.append(f"{wish.owner}: {wish.initialisation} initialisation started")
        return steps

    def set_policy(self, owner: str, volume: Existing, name: str, value: Value) -> list[str]:
        """Change a policy of a living volume. Raises ToolError."""
        self.tool.set_policy(self.runner, volume.adapter, volume.facts, name, value)
        return [f"{owner}: {name} set to {value}"]

    @staticmethod
    def resume(owner: str, volume: Existing) -> list[str]:  # noqa: ARG004 - as md's
        """Nothing: a controller goes on after a boot by itself."""
        return []

    def progress(self, volume: Existing) -> Mapping[str, float]:
        """Percent by task of what is under way. Raises ToolError, also for a volume that is gone."""
        if hasattr(self.tool, "progress"):
            found: Mapping[str, float] = self.tool.progress(self.runner, volume.adapter, volume.facts)
            return found
        listed: Sequence[VolumeFacts] = self.tool.read_volumes(self.runner, volume.adapter)
        for each in listed:
            if each.id == volume.facts.id:
                return each.progress
        raise ToolError(f"{self.name} shows no volume {volume.facts.id} of adapter {volume.adapter} any more")

    @staticmethod
    def _request(wish: Wish, positions: Mapping[str, str]) -> VolumeRequest:
        return VolumeRequest(
            level=wish.level,
            members=tuple(positions.get(drive, drive) for drive in wish.members),
            strip=wish.strip,
            name=wish.name or "",
            policies=wish.policies,
            initialisation=wish.initialisation,
            spares=tuple(positions.get(drive, drive) for drive in wish.spares or ()),
        )


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
