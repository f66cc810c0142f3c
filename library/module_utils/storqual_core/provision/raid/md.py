# SPDX-License-Identifier: Apache-2.0
"""Volumes that md makes of claimed drives, every write behind the guard.

mdadm must open the members itself, so the guard lets go of them for it, takes the new array in their place, and
repeats its layers 2 to 4 on what is there then. An array's UUID is on disk, as storqual's, before the array is made:
whatever a power cut leaves of it is known, and is cleared or made again by the next run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Collection, Iterable, Mapping, Sequence

from ...guard import hold
from ...guard.claims import Claim, VolumeClaim
from ...guard.rules import chosen, topmost
from ...guard.signatures import Ledger, own_volumes
from ...guard.snapshot import look
from ...kit.command import Runner, run
from ...kit.errors import StorqualError, ToolError
from ...kit.machine import Machine
from ...kit.results import PartialError
from ...tools import mdadm
from ...tools.capabilities import Value, VolumeRequest
from .plan import Existing, Wish

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
        found = []
        for facts in mdadm.read_volumes(self.runner, mdadm.INDEX):
            members, spares, failed = (
                tuple(names.get(kernel, kernel) for kernel in map(self._kernel_name, nodes))
                for nodes in (facts.members, facts.spares, facts.failed)
            )
            own = bool(members) and all(facts.uuid in made.get(drive, ()) for drive in (*members, *spares))
            found.append(Existing(facts, members, spares, own, own and facts.uuid in self.made_now, failed))
        return found

    def _names(self) -> dict[str, str]:
        """Claim ids by kernel name."""
        snapshot = look(self.machine, self.claims, state_dir=self.state_dir, contents=False, runner=self.runner)
        found = {}
        for claim in self.claims:
            drive = chosen(claim, snapshot)
            if drive is not None:
                found[drive.name] = found[topmost(drive, snapshot)] = claim.id
        return found

    def _kernel_name(self, path: str) -> str:
        node = self.machine.node(path)
        return (self.machine.name_of(node) if node is not None else "") or path.rpartition("/")[2]

    def objections(self, wish: Wish) -> list[str]:
        """What md cannot make of a wish."""
        said = [f"{wish.owner}: {problem}" for problem in mdadm.objections(self._request(wish, {}))]
        if not _NAME.match(wish.made_name):
            said.append(f"{wish.owner}: md takes names of up to 31 letters, digits, dots, dashes and underscores")
        return said

    def refusals(self, wish: Wish, delete: Iterable[Existing]) -> list[str]:
        """What the guard says to deleting these and making that, for check mode; nothing is held or written."""
        going = list(delete)
        foreign = [volume for volume in going if not volume.this_run]
        own = [_claim_of(volume) for volume in going if volume.this_run]
        apart = {drive for volume in foreign for drive in volume.drives}
        left = {*wish.drives, *(drive for volume in own for drive in volume.members)} - apart
        found = self._check(left, "write", own)
        for volume in foreign:
            found += self._check(volume.drives, "delete_volume", [_claim_of(volume)])
        return found

    def _check(self, drives: Iterable[str], purpose: str, volumes: Sequence[VolumeClaim]) -> list[str]:
        refusals = hold.check(
            self._claims_of(drives),
            purpose=purpose,
            consent=self.consent,
            state_dir=self.state_dir,
            volumes=volumes,
            machine=self.machine,
            runner=self.runner,
        )
        return [str(refusal) for refusal in refusals]

    def delete(self, volume: Existing) -> list[str]:
        """Stop an array, clear and stamp its drives. Raises GuardRefusalError before, PartialError after a write."""
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

    def create(self, wish: Wish, save: Callable[[], None]) -> list[str]:
        """Make the array; `save` keeps the state before the first write. Raises GuardRefusalError, PartialError."""
        claims = self._claims_of(wish.drives)
        with self._hold(claims, "write", []) as held:
            save()
            held.announce(*wish.drives, name=wish.key)
            nodes = {drive: held.release(drive) for drive in wish.drives}
            steps = [f"{wish.owner}: RAID {wish.level} of {len(wish.members)} drives made"]
            self._after([f"{wish.owner}: mdadm was started"], lambda: self._make(self._request(wish, nodes)))

        def verify() -> list[str]:
            made = [volume for volume in own_volumes(self.machine, self.state_dir, claims) if volume.uuid == wish.key]
            if not made:
                raise ToolError(f"{wish.owner}: the kernel shows no array {wish.key} after mdadm made it")
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
        return hold.hold(
            claims,
            purpose=purpose,
            consent=self.consent,
            state_dir=self.state_dir,
            run=self.run_id,
            volumes=volumes,
            machine=self.machine,
            runner=self.runner,
        )

    def _claims_of(self, drives: Iterable[str]) -> list[Claim]:
        wanted = set(drives)
        found = [claim for claim in self.claims if claim.id in wanted]
        unclaimed = sorted(wanted - {claim.id for claim in found})
        if unclaimed:
            raise ToolError(f"nobody claims {', '.join(unclaimed)}, so no volume on it is touched")
        return found

    @staticmethod
    def _device(wish: Wish) -> str:
        return f"/dev/md/{wish.made_name}"

    def _request(self, wish: Wish, nodes: Mapping[str, str]) -> VolumeRequest:
        return VolumeRequest(
            level=wish.level,
            members=tuple(nodes.get(drive, drive) for drive in wish.members),
            strip=wish.strip,
            name=wish.made_name,
            policies=wish.policies,
            initialisation=wish.initialisation,
            spares=tuple(nodes.get(drive, drive) for drive in wish.spares or ()),
            uuid=wish.key,
            device=self._device(wish),
        )


def _claim_of(volume: Existing) -> VolumeClaim:
    return VolumeClaim(volume.facts.id, volume.facts.device, volume.facts.uuid, tuple(sorted(volume.drives)))
