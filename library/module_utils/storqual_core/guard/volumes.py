# SPDX-License-Identifier: Apache-2.0
"""The md arrays of a bench that storqual made on claimed drives: the UUID of each was written down before."""

from __future__ import annotations

import uuid
from typing import Sequence

from ..kit.machine import Machine, block_node
from .claims import Claim, VolumeClaim
from .stamps import Ledger

_NAMESPACE = uuid.UUID("5b1f5a5c-2f0e-5d0b-9f63-6d1d8c3a7e11")


def volume_uuid(members: Sequence[str]) -> str:
    """The UUID of the volume that storqual makes of these drives (by id, in any order).

    The same drives give the same UUID, so that a plan can name a volume that is made later, on any day.
    """
    return str(uuid.uuid5(_NAMESPACE, "\n".join(sorted(members))))


def volume_path(name: str) -> str:
    """The link that udev makes to the array with this UUID, whatever its number is after a boot."""
    digits = name.replace("-", "")
    return "/dev/disk/by-id/md-uuid-" + ":".join(digits[place : place + 8] for place in range(0, 32, 8))


def own_volumes(machine: Machine, state_dir: str, claims: Sequence[Claim]) -> tuple[VolumeClaim, ...]:
    """The running arrays on these drives that storqual made, with those of the drives that are their members.

    Raises StorqualError when the list of what storqual made cannot be read.
    """
    made = Ledger.read(machine.path(state_dir)).made
    found = []
    for name in machine.names("/sys/block"):
        array = machine.text(f"/sys/block/{name}/md/uuid").lower()
        members = tuple(claim.id for claim in claims if array and array in made.get(claim.id, ()))
        if members:
            found.append(VolumeClaim(name, block_node(name), array, members))
    return tuple(found)
