# SPDX-License-Identifier: Apache-2.0
"""From drives named in a drop to nodes that may be changed: claims of the inventory, then the guard."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

from . import guard
from .drive_settings import DriveTarget
from .drive_step import target_of
from .errors import BadInputError
from .guard_claims import Claim, claims_of_adapters
from .machine import Machine
from .own_volumes import own_volumes

__all__ = ["claim_record", "claims_for", "usable_drives"]


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
    with guard.hold(claims, purpose="settings", state_dir=Path(state_dir), run=run, volumes=volumes) as held:
        yield {
            claim.id: target_of(claim.id, held.member(claim.id) if claim.id in members else held[claim.id])
            for claim in claims
        }
