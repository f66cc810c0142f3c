# SPDX-License-Identifier: Apache-2.0
"""Errors that claimed drives have on record of themselves (smartctl): looked at before and after a campaign.

Only counts that healthy use never raises: uncorrected errors, defects that grew, media errors, CRC errors of a link.
Logs that also grow by a command that a drive does not know are left out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Iterator, Mapping

from .command import Runner, run
from .errors import ToolError
from .tools.smartctl import read_health

__all__ = ["read_smart_errors"]

_ERRORS = re.compile(
    r"(?:read|write|verify)\.total_uncorrected_errors|grown_defects|nvme\.(?:media_errors|critical_warning)"
    # reallocated, reported uncorrectable, pending and offline uncorrectable sectors, CRC errors (ATA attributes)
    r"|attribute\.(?:5|187|197|198|199)"
)


def read_smart_errors(
    facts: Mapping[str, Any], adapters: Mapping[str, Mapping[str, Any]], *, runner: Runner = run
) -> dict[str, dict[str, int]]:
    """Counts by claimed drive; a drive that says nothing, or cannot be asked, is left out. Raises nothing.

    `facts` are those of `read_facts`, `adapters` what the inventory declares.
    """
    found = {}
    for drive in _claimed(facts, adapters):
        with suppress(ToolError):
            counters = read_health(runner, str(drive["node"])).counters
            errors = {name: count for name, count in sorted(counters.items()) if _ERRORS.fullmatch(name)}
            if errors:
                found[str(drive["id"])] = errors
    return found


def _claimed(facts: Mapping[str, Any], adapters: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The drives of the bench that the inventory claims."""
    by_id = {drive["id"]: drive for drive in facts["drives"]}
    by_serial = {drive["serial"]: drive for drive in facts["drives"] if drive["serial"]}
    for adapter in adapters.values():
        for declared in adapter.get("drives") or ():
            there = by_id.get(str(declared.get("wwn") or "")) or by_serial.get(str(declared.get("serial") or ""))
            if there is not None and declared.get("claim"):
                yield there
