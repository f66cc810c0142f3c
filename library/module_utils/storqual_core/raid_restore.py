# SPDX-License-Identifier: Apache-2.0
"""Take away again the volumes that a run made, and give others the policies that they had."""

from __future__ import annotations

from typing import Any, Mapping

from .errors import BadInputError
from .guard_claims import read_claims
from .provisioned import Provisioned
from .raid_layout import MEMORY, Backends
from .raid_plan import Existing

__all__ = ["restore_volume"]


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


def _find(backend: Any, uuid: str) -> Existing | None:  # noqa: ANN401 - by tool
    return next((volume for volume in backend.look() if volume.facts.uuid == uuid), None)


def _take_away(
    backend: Any,  # noqa: ANN401 - by tool
    key: str,
    value: Mapping[str, Any],
    *,
    check: bool,
) -> tuple[Provisioned, list[str]]:
    uuid = key.partition("@")[2]
    before = _find(backend, uuid)
    steps: list[str] = [] if check else backend.remove(uuid, value["drives"])
    now = _find(backend, uuid)
    was, left = (volume.facts.state if volume else "absent" for volume in (before, now))
    return Provisioned(MEMORY, "absent", was, left, adapter=uuid, changed=was != left), steps


def _put_policy(
    backend: Any,  # noqa: ANN401 - by tool
    key: str,
    value: Mapping[str, Any],
    *,
    check: bool,
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
