# SPDX-License-Identifier: Apache-2.0
"""Give a bench the declared volumes: read, plan, refuse or save and write, initialise, read back.

The plan says which tool makes a volume: that of a RAID controller, md for other adapters and where it is named. For a
playbook that names none, md makes it where the kernel sees its members as disks, else the tool of their adapter does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Collection, Iterator, Mapping, Sequence, Union

from ...guard.claims import Claim, claims_of_adapters, read_claims
from ...guard.reach import matching
from ...host.sysfs import read_drives
from ...kit.command import Runner, run
from ...kit.errors import BadInputError, GuardRefusalError, StorqualError
from ...kit.lock import BenchLock, SavedState, read_saved, remember
from ...kit.machine import Machine
from ...kit.results import PartialError, Provisioned, refuse_unlike
from ...tools import TOOLS
from ...tools.capabilities import VolumeRequest, offers
from ..drives import claim_record, claims_for
from ..engine import SettingChange, StepOutcome, lock_for, refuse_problems
from .volume_plan import (
    ControllerVolumes,
    DeclaredVolume,
    Existing,
    MdVolumes,
    VolumePlan,
    plan_volumes,
    read_layouts,
    wait_for,
)

MEMORY = "raid.volume"
"""The setting under which a volume that was not there before is remembered: `raid.volume@<UUID>`."""

VolumeBackend = Union[MdVolumes, ControllerVolumes]
Backends = Callable[[str, Sequence[Claim], Collection[str]], VolumeBackend]
"""What makes volumes, by tool: the tool's name, the bench's claims, the UUIDs of what this run made."""


@dataclass(frozen=True)
class RaidRequest:
    """What the module was asked. `only`: volumes that this run made and that are not declared any more are removed.

    `wait_s`: how long to wait for volumes to be initialised; what is left then is told as progress.
    """

    volumes: Sequence[Mapping[str, Any]]
    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    consent: Collection[str] = ()
    only: bool = False
    wait_s: float = 0.0
    check: bool = False


@dataclass(frozen=True)
class _Part:
    """One tool's share of the step: what it is to do, and what of it must go although nothing takes its place."""

    tool: str
    backend: Any
    plans: Sequence[VolumePlan]
    leaving: Sequence[Existing]


def made_by(saved: SavedState | None, run: str) -> dict[str, Mapping[str, Any]]:
    if saved is None or saved.run != run:
        return {}
    return {
        owner: value
        for setting, _, owner, value in ((*key.partition("@"), value) for key, value in saved.values.items())
        if setting == MEMORY
    }


def provision_volumes(
    request: RaidRequest, backends: Backends, default_tool: Callable[[DeclaredVolume], str]
) -> dict[str, Any]:
    """Make the volumes as declared; the module's result.

    Raises BadInputError and ToolError (nothing was written; every problem is in it), GuardRefusalError (refused
    before the first write), PartialError (something was written).
    """
    layouts = read_layouts(request.volumes)
    claims_for(request.adapters, [drive for layout in layouts for drive in layout.drives])
    made = made_by(read_saved(Path(request.state_dir)), request.run)
    if not layouts and not (request.only and made):
        return StepOutcome([], []).result(progress={})
    claims = claims_of_adapters(request.adapters)
    with lock_for(request.state_dir, request.run, "RAID layout", check=request.check) as lock:
        parts = _parts(request, layouts, claims, made, backends, default_tool)
        if request.check:
            return _foreseen(parts)
        steps: list[str] = []
        try:
            for part in parts:
                _carry_out(part, lock, claims, steps)
            under_way = dict(_wait(parts, request.wait_s))
            records = [entry for part in parts for entry in _read_back(part)]
        except GuardRefusalError as problem:
            if not steps:
                raise
            raise PartialError(str(problem), steps=steps, settings=()) from problem
        except StorqualError as problem:
            done = [*steps, *(problem.steps if isinstance(problem, PartialError) else ())]
            if not done:
                raise
            raise PartialError(str(problem), steps=done, settings=()) from problem
    refuse_unlike(records, steps)
    return StepOutcome(records, steps, list(_changes(parts))).result(progress=under_way)


def _parts(
    request: RaidRequest,
    layouts: Sequence[DeclaredVolume],
    claims: Sequence[Claim],
    made: Mapping[str, Mapping[str, Any]],
    backends: Backends,
    default_tool: Callable[[DeclaredVolume], str],
) -> list[_Part]:
    """The step by tool, read and planned. Raises ToolError with all that forbids it."""
    chosen = [(layout, layout.tool or default_tool(layout)) for layout in layouts]
    tools = {tool for _, tool in chosen} | {str(value["tool"]) for value in made.values() if request.only}
    parts, problems = [], []
    for tool in sorted(tools):
        backend = backends(tool, claims, made)
        mine = [layout for layout, by in chosen if by == tool]
        problems += [problem for layout in mine for problem in backend.objections(layout)]
        existing = backend.look()
        plans = plan_volumes(mine, existing, (claim.id for claim in claims))
        problems += [problem for plan in plans for problem in plan.problems]
        kept = {id(volume) for plan in plans for volume in (plan.there, *plan.delete)}
        leaving = [volume for volume in existing if request.only and volume.this_run and id(volume) not in kept]
        parts.append(_Part(tool, backend, plans, leaving))
    refuse_problems(problems)
    return parts


def _carry_out(part: _Part, lock: BenchLock | None, claims: Sequence[Claim], steps: list[str]) -> None:
    """Delete, make, set and go on with what the plans say; `steps` is what was done so far, also when this raises."""
    # one volume may be in the way of several
    going = {volume.facts.id: volume for volume in (*part.leaving, *(v for plan in part.plans for v in plan.delete))}
    for volume in going.values():
        steps += part.backend.delete(volume)
    for plan in part.plans:

        def save(plan: VolumePlan = plan) -> None:
            if lock is not None:
                remember(lock, _memory(part.tool, plan, claims))

        if plan.there is None:
            steps += part.backend.create(plan.layout, save)
            continue
        if plan.policies:
            save()
            for name, value in plan.policies.items():
                steps += part.backend.set_policy(plan.layout.owner, plan.there, name, value)
        steps += part.backend.resume(plan.layout.owner, plan.there)


def _memory(tool: str, plan: VolumePlan, claims: Sequence[Claim]) -> dict[str, Any]:
    """What is remembered before a write: that a volume was not there, or its policies; and the claims."""
    drives = plan.layout.drives if plan.there is None else tuple(sorted(plan.there.drives))
    values: dict[str, Any] = {f"claim@{claim.id}": claim_record(claim) for claim in claims if claim.id in drives}
    if plan.there is None:
        values[f"{MEMORY}@{plan.layout.key}"] = {"tool": tool, "drives": list(drives), "state": "absent"}
    elif not plan.there.this_run:
        before = plan.before()
        for name in plan.policies:
            place = f"raid.{name}@{plan.there.facts.uuid}"
            values[place] = {"tool": tool, "drives": list(drives), "value": before[name]}
    return values


def _existing_volumes(part: _Part) -> Iterator[tuple[VolumePlan, Existing | None]]:
    existing = part.backend.look()
    for plan in part.plans:
        same = [volume for volume in existing if set(volume.members) == set(plan.layout.members)]
        same += [volume for volume in existing if volume.own and volume.facts.uuid == plan.layout.key]
        yield plan, same[0] if same else None


def _wait(parts: Sequence[_Part], seconds: float) -> Iterator[tuple[str, Mapping[str, float]]]:
    for part in parts:
        for plan, volume in _existing_volumes(part):
            tasks = wait_for(volume, part.backend.progress, seconds) if volume is not None else {}
            if tasks:
                yield plan.layout.owner, dict(tasks)


def _read_back(part: _Part) -> Iterator[Provisioned]:
    for plan, volume in _existing_volumes(part):
        now = volume.settings() if volume is not None else {}
        before = plan.before()
        for name, declared in plan.layout.declared().items():
            yield Provisioned(
                name=f"raid.{name}",
                declared=declared,
                before=before[name],
                read_back=now.get(name),
                adapter=plan.layout.owner,
                changed=before[name] != now.get(name),
                proof=f"read back from {part.tool}",
            )
        was = plan.there.facts.state if plan.there is not None else None
        state = volume.facts.state if volume is not None else None
        yield Provisioned("raid.state", None, was, state, adapter=plan.layout.owner, changed=was != state)


def _foreseen(parts: Sequence[_Part]) -> dict[str, Any]:
    """What would be done, and what the guard would say. Raises GuardRefusalError."""
    refusals = [
        refusal
        for part in parts
        for plan in part.plans
        if plan.makes
        for refusal in part.backend.refusals(plan.layout, plan.delete)
    ]
    if refusals:
        raise GuardRefusalError(refusals)
    settings = [
        Provisioned(f"raid.{name}", declared, was, was, adapter=plan.layout.owner)
        for part in parts
        for plan in part.plans
        for (name, declared), was in zip(plan.layout.declared().items(), plan.before().values())
    ]
    changes = list(_changes(parts))
    return StepOutcome(settings, [f"{change.owner}: would be changed" for change in changes], changes).result(
        progress={}
    )


def _changes(parts: Sequence[_Part]) -> Iterator[SettingChange]:
    for part in parts:
        for volume in part.leaving:
            yield SettingChange(volume.facts.id, "raid.level", volume.facts.level, None)
        for plan in part.plans:
            before = plan.before()
            for name, declared in plan.layout.declared().items():
                if plan.makes or before[name] != declared:
                    yield SettingChange(
                        plan.layout.owner, f"raid.{name}", before[name] if plan.delete else None, declared
                    )


def restore_volume(
    key: str, value: Mapping[str, Any], claims: Mapping[str, Mapping[str, Any]], backends: Backends, *, check: bool
) -> tuple[Provisioned, list[str]]:
    """What one entry of saved.json says of a volume made so again: its record, and the steps that were done.

    `key` is `raid.volume@<UUID>` for a volume that was not there, `raid.<policy>@<UUID>` for a policy. Only what the
    run made goes, and only from drives that were claimed when it was made. Raises StorqualError (PartialError after
    the first write).
    """
    put = _take_away if key.partition("@")[0] == MEMORY else _put_policy
    try:
        drives = [str(drive) for drive in value["drives"]]
        tool = str(value["tool"])
    except (KeyError, TypeError) as problem:
        raise BadInputError([f"{key} is remembered as {value!r}, which cannot be restored: {problem!r}"]) from None
    claimed = read_claims({drive: claims.get(drive, {}) for drive in drives})
    backend = backends(tool, claimed, [key.partition("@")[2]] if put is _take_away else [])
    return put(backend, key, value, check=check)


def _find(backend: VolumeBackend, uuid: str) -> Existing | None:
    return next((volume for volume in backend.look() if volume.facts.uuid == uuid), None)


def _take_away(
    backend: VolumeBackend, key: str, value: Mapping[str, Any], *, check: bool
) -> tuple[Provisioned, list[str]]:
    uuid = key.partition("@")[2]
    before = _find(backend, uuid)
    steps: list[str] = [] if check else backend.remove(uuid, value["drives"])
    now = _find(backend, uuid)
    was, left = (volume.facts.state if volume else "absent" for volume in (before, now))
    return Provisioned(MEMORY, "absent", was, left, adapter=uuid, changed=was != left), steps


def _put_policy(
    backend: VolumeBackend, key: str, value: Mapping[str, Any], *, check: bool
) -> tuple[Provisioned, list[str]]:
    setting, _, uuid = key.partition("@")
    name = setting.partition(".")[2]
    volume = _find(backend, uuid)
    before = volume.facts.policies.get(name) if volume else None
    steps: list[str] = []
    if volume and before != value["value"] and not check:
        steps = backend.set_policy(uuid, volume, name, value["value"])
        volume = _find(backend, uuid)
    now = volume.facts.policies.get(name) if volume else None
    return Provisioned(setting, value["value"], before, now, adapter=uuid, changed=before != now), steps


MD = "mdadm"
CONTROLLER_TOOLS: Mapping[str, str] = {
    "aacraid": "arcconf",
    "megaraid_sas": "storcli",
    "mpi3mr": "storcli2",
    **dict.fromkeys(("mpt2sas", "mpt3sas"), "sas3ircu"),
    **dict.fromkeys(("hpsa", "smartpqi"), "ssacli"),
}
"""The vendor's tool that makes volumes of a driver's adapters."""

_HBAS = frozenset({"mpt2sas", "mpt3sas"})
"""Drivers of plain HBAs, too: their tool makes volumes where it is named only."""


def volume_tool(adapter_tool: str, driver: str) -> str:
    """What makes a volume of an adapter's drives where its drop names no tool: md, but for RAID controllers.

    `adapter_tool` is the tool that the inventory names for the adapter.
    """
    if adapter_tool in volume_tools():
        return adapter_tool
    return MD if driver in _HBAS else CONTROLLER_TOOLS.get(driver, MD)


def count_objection(tool: str, level: str, count: int) -> str:
    """Why a tool does not make such a volume of so many members; empty when it does."""
    return volume_objection(tool, VolumeRequest(level, tuple(str(number) for number in range(count))))


def volume_objection(tool: str, request: VolumeRequest) -> str:
    return "; ".join(TOOLS[tool]().objections(request)) if tool in TOOLS and _makes_volumes(tool) else ""


def volume_tools() -> tuple[str, ...]:
    return tuple(name for name in TOOLS if _makes_volumes(name))


def volumes_of(
    state_dir: str,
    run_id: str,
    consent: Collection[str] = (),
    *,
    machine: Machine | None = None,
    runner: Runner = run,
) -> Backends:
    """What makes volumes on a bench, by tool, for one run. It raises BadInputError for a tool that makes none."""

    def backend(tool: str, claims: Sequence[Claim], made: Collection[str]) -> VolumeBackend:
        if tool == MD:
            return MdVolumes(claims, state_dir, run_id, consent, made, machine or Machine(), runner)
        makers = volume_tools()
        if tool not in makers:
            raise BadInputError([f"raid.tool {tool!r} makes no volumes; known: {', '.join(makers)}"])
        return ControllerVolumes(tool, TOOLS[tool](), claims, state_dir, consent, made, machine or Machine(), runner)

    return backend


def _makes_volumes(tool: str) -> bool:
    return {"raid.objections", "raid.create", "raid.delete"} <= set(offers(TOOLS[tool]()))


@dataclass(frozen=True)
class Chooser:
    """The tool for volumes whose drop names none."""

    adapters: Mapping[str, Any]
    machine: Machine = field(default_factory=Machine)

    def tool(self, layout: DeclaredVolume) -> str:
        """The adapter's own tool where the inventory names one that makes volumes, else by what the kernel sees.

        Software RAID when it sees every member, the tool of the adapter's driver when it sees none. Raises
        BadInputError when neither is so, or when no tool is known for the driver.
        """
        own = str(self.adapters.get(layout.adapter, {}).get("tool") or "")
        if own in volume_tools():
            return own
        claims = [claim for claim in claims_of_adapters(self.adapters) if claim.id in layout.drives]
        drives = read_drives(self.machine)
        seen = [claim.id for claim in claims if matching(claim, drives)]
        if len(seen) == len(claims):
            return MD
        driver = str(self.adapters.get(layout.adapter, {}).get("driver", ""))
        if not seen and driver in CONTROLLER_TOOLS:
            return CONTROLLER_TOOLS[driver]
        hidden = ", ".join(claim.id for claim in claims if claim.id not in seen)
        raise BadInputError(
            [f"{layout.owner}: the kernel of this bench does not see {hidden}; name the tool that does (raid.tool)"]
        )
