# SPDX-License-Identifier: Apache-2.0
"""Firmware by a bench's management controller: whether it must and may flash, and whether it did.

The control node talks to the controller (Redfish); what it read of the firmware inventory is judged here, by the
rules of every other flash, and the guard is asked on the bench.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Mapping, Sequence, cast

from ...kit.errors import ToolError
from ...kit.results import Provisioned
from ...tools import redfish
from ...tools.capabilities import ToolFacts
from .access import Access, Adapters, board_of
from .subject import order_problem, same_version

# the controller shows no drive of an adapter, so whatever is behind it must be claimed and visible
_SHOWS_NOTHING = SimpleNamespace(read_facts=lambda _runner: ToolFacts())


def guard_adapter(access: Access, alias: str, adapters: Mapping[str, Mapping[str, Any]]) -> None:
    """Ask the guard whether one of a bench's adapters may be flashed. Raises ToolError, GuardRefusalError."""
    pci = str(adapters[alias].get("pci") or "").lower()
    if pci and not board_of(access.machine, pci):
        raise ToolError(f"adapter {alias}: there is no adapter at {pci}; correct its inventory")
    with Adapters(access, {alias: adapters[alias]}, adapters).hold(cast("Any", _SHOWS_NOTHING), write=True):
        pass


def judge_inventory(
    image: Mapping[str, Any],
    alias: str,
    entries: Sequence[Any],
    target: str,
    *,
    before: str = "",
    flashed: bool = False,
) -> dict[str, Any]:
    """Whether the declared version must be flashed (`needed`), the version that is there (`found`), drift, settings.

    After the flash (`flashed`) `before` is the version that was found first. Raises ToolError.
    """
    declared = str(image["version"])
    now = redfish.find_version(entries, target)
    needed = not same_version(now, declared)
    if needed and flashed:
        raise ToolError(f"{alias}: {declared} was written and the management controller tells {now}")
    wrong = order_problem(now, declared, list(image.get("from") or ()) or None) if needed else ""
    if wrong:
        raise ToolError(f"{alias}: {wrong}")
    record = Provisioned(
        name="firmware.firmware",
        declared=declared,
        before=before or now,
        read_back=now if needed else declared,
        adapter=alias,
        changed=not same_version(now, before or now),
    )
    if not needed:
        record = record.with_proof(proven=True, proof="the management controller tells it")
    drift = [f"{alias} firmware.firmware: {now}, declared {declared}"] if needed else []
    return {"changed": False, "needed": needed, "found": now, "drift": drift, "settings": [record.record()]}


def refuse_answer(alias: str, answer: str) -> None:
    """Raise ToolError with what the controller answered to a request that failed; nothing for an empty answer."""
    if not answer:
        return
    try:
        told = redfish.parse_error(answer)
    except ToolError:
        told = answer[:500]
    raise ToolError(f"{alias}: the management controller did not flash it: {told}")
