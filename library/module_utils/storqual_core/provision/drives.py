# SPDX-License-Identifier: Apache-2.0
"""From drives named in a drop to nodes that may be changed: claims of the inventory, then the guard."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Collection, ContextManager, Iterable, Iterator, Mapping

from ..guard import hold
from ..guard.claims import Claim, claims_of_adapters
from ..guard.volumes import own_volumes
from ..kit.errors import BadInputError
from ..kit.lock import BenchLock, hold_lock
from ..kit.machine import Machine
from ..kit.results import Provisioned
from ..kit.saved_state import read_saved, remember
from .drive_step import carry_out, declared_for, target_of
from .mode_pages import DriveTarget


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
def usable_drives(claims: tuple[Claim, ...], state_dir: str, run: str) -> Iterator[dict[str, DriveTarget]]:
    """The claimed drives as targets, once the guard lets their settings be changed. Raises GuardRefusalError.

    A drive in a volume that storqual made is reached beside the volume, which is held in its place.
    """
    volumes = own_volumes(Machine(), state_dir, claims)
    members = {member for volume in volumes for member in volume.members}
    with hold.hold(claims, purpose="settings", state_dir=Path(state_dir), run=run, volumes=volumes) as held:
        yield {
            claim.id: target_of(claim.id, held.member(claim.id) if claim.id in members else held[claim.id])
            for claim in claims
        }


LOCK_WAIT_S = 30.0
Access = Callable[[Any, str, str], ContextManager[Mapping[str, DriveTarget]]]


@dataclass(frozen=True)
class DriveRequest:
    """What a module was asked: declared settings by drive, the bench's adapters, its state, the run.

    `as_found`: settings by drive that must have the value that was remembered, where one was (what only the other arm
    of a campaign declares). `switched`: settings by drive that a block will change, to be remembered now.
    """

    drives: Mapping[str, Mapping[str, object]]
    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    check: bool = False
    as_found: Mapping[str, Collection[str]] = field(default_factory=dict)
    switched: Mapping[str, Collection[str]] = field(default_factory=dict)


def provision_drives(
    request: DriveRequest,
    subsystem: Any,  # noqa: ANN401 - ModePages or Queues
    *,
    queue: bool,
    prove: Callable[[Iterable[Provisioned], Mapping[str, DriveTarget]], list[Provisioned]] | None = None,
    access: Access = usable_drives,
) -> dict[str, Any]:
    """Make the drives as declared; the module's result. Raises StorqualError of all kinds (see `drive_step`).

    `prove` looks at the effect of what was set, after the step; `access` is the guard, an argument for tests.
    """
    declared = declared_for(_with_found(request), queue=queue)
    if not declared:
        return {"changed": False, "settings": [], "steps": [], "drift": []}
    claims = claims_for(request.adapters, declared)
    with _lock(request, "queue of drives" if queue else "settings of drives") as lock:

        def save(before: Mapping[str, Mapping[str, object]]) -> None:
            if lock is not None and any(before.values()):
                remember(lock, memory_of(claims, before))

        with access(claims, request.state_dir, request.run) as targets:
            outcome = carry_out(
                subsystem, targets, declared, check=request.check, save=save, remember=request.switched
            )
            settings = outcome.settings if request.check or prove is None else prove(outcome.settings, targets)
    return {
        "changed": outcome.changed,
        "settings": [entry.record() for entry in settings],
        "steps": outcome.steps,
        "drift": outcome.drift,
        "diff": outcome.diff,
    }


def _with_found(request: DriveRequest) -> dict[str, dict[str, object]]:
    """What is declared, and what must be as it was found; a value that nobody changed is only read."""
    drives = {drive: dict(values) for drive, values in request.drives.items()}
    saved = read_saved(Path(request.state_dir)) if request.as_found else None
    for drive, names in request.as_found.items():
        for name in names:
            value = saved.values.get(f"drive.{name}@{drive}") if saved else None
            drives.setdefault(drive, {}).setdefault(name, value)
    return drives


def _lock(request: DriveRequest, purpose: str) -> ContextManager[BenchLock | None]:
    """The bench's lock; check mode touches nothing, not even that."""
    if request.check:
        return nullcontext()
    return hold_lock(Path(request.state_dir), request.run, purpose, wait_s=LOCK_WAIT_S)


def memory_of(claims: Iterable[Claim], before: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """What is remembered of drives about to be changed: each old value, and the claim that allowed the change."""
    values: dict[str, Any] = {}
    for claim in claims:
        if before.get(claim.id):
            values[f"claim@{claim.id}"] = claim_record(claim)
            values.update({f"drive.{name}@{claim.id}": value for name, value in before[claim.id].items()})
    return values
