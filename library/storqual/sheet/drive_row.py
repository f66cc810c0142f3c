# SPDX-License-Identifier: Apache-2.0
"""A drive's row of the sheet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storqual_core.attributes import selected_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storqual.model.inventory import Drive

__all__ = ["DriveRow", "declared_row", "found_row", "hidden_row"]

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


@dataclass(frozen=True)
class DriveRow:
    """One drive: where it sits, who it is, how it is set, how it is, what may be done to it."""

    place: str
    name: str
    serial: str
    model: str
    revision: str
    size: str
    settings: str
    state: str
    may_be_destroyed: bool
    reference: bool = False


def declared_row(drive: Drive, there: Mapping[str, Any] | None, *, looked: bool, reference: str | None) -> DriveRow:
    """A drive of the inventory, with what the bench shows of it where it was looked at."""
    there = there or {}
    if drive.file:
        state = "a file of this machine"
    elif there:
        state = _state(there)
    else:
        state = "MISSING" if looked else "not looked at"
    return DriveRow(
        place=drive.position or there.get("position") or f"port {drive.port}",
        name=drive.file or drive.wwn or there.get("wwn") or "no WWN",
        serial=drive.serial or there.get("serial") or "",
        model=" ".join(
            word for word in (drive.vendor or there.get("vendor"), drive.model or there.get("model")) if word
        ),
        revision=there.get("revision") or drive.revision or "",
        size=_size(drive.size or there.get("size")),
        settings=_settings(there),
        state=state,
        may_be_destroyed=drive.claim,
        reference=bool(reference) and reference in (drive.wwn, drive.serial, drive.id),
    )


def found_row(there: Mapping[str, Any]) -> DriveRow:
    """A drive that no inventory names."""
    return DriveRow(
        place=there.get("position") or there["hctl"] or there["name"],
        name=there["wwn"] or "no WWN",
        serial=there["serial"],
        model=" ".join(word for word in (there["vendor"], there["model"]) if word),
        revision=there["revision"],
        size=_size(there["size"]),
        settings=_settings(there),
        state=there["system"] or _state(there),
        may_be_destroyed=False,
    )


def hidden_row(there: Mapping[str, Any]) -> DriveRow:
    """A disk behind a RAID controller, which tests never write to by itself."""
    return DriveRow(
        place=there["kind"],
        name=there["wwn"] or "no WWN",
        serial=there["serial"],
        model=" ".join(word for word in (there["vendor"], there["model"]) if word),
        revision=there["firmware"],
        size=_size(there["size"]),
        settings="",
        state=_state(there),
        may_be_destroyed=False,
    )


def _size(size: int | None) -> str:
    """As the label of a drive has it: decimal units, three figures."""
    if not size:
        return ""
    for factor, unit in _UNITS:
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def _settings(there: Mapping[str, Any]) -> str:
    """Write cache, queue depth and scheduler as they are now."""
    queue = there.get("queue") or {}
    words = [
        there.get("cache", ""),
        f"depth {queue['queue_depth']}" if queue.get("queue_depth") else "",
        f"scheduler {selected_word(queue['scheduler'])}" if queue.get("scheduler") else "",
    ]
    return ", ".join(word for word in words if word)


def _state(there: Mapping[str, Any]) -> str:
    """What the kernel calls it, and what the drive says of its own health."""
    health = there.get("health") or {}
    words = [there.get("state") or "present"]
    if health.get("passed") is False:
        words.append("FAILING by its own word")
    if health.get("hours") is not None:
        words.append(f"{health['hours']} h")
    return ", ".join(words)
