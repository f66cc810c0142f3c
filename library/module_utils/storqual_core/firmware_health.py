# SPDX-License-Identifier: Apache-2.0
"""What stands against a flash in the state of an adapter: only a controller whose volumes are all well is flashed.

The state words of every tool come as `healthy`; what is not known to be well counts as not well.
"""

from __future__ import annotations

import re
from typing import Iterator

from .capabilities import AdapterFacts, VolumeFacts

__all__ = ["obstacles"]

_BUSY = re.compile(r"rebuild|rbld|copyback|cpybck|init|eras|sanit|expan|migrat|transform", re.IGNORECASE)
_TASK = re.compile(r"patrol ?read|consistency check|learn", re.IGNORECASE)
_RUNNING = re.compile(r"^(?:active|running|in progress|started)\b", re.IGNORECASE)
_WELL = re.compile(r"^(?:ok|optimal|opt|normal|good|healthy|online)\b", re.IGNORECASE)


def obstacles(adapter: AdapterFacts) -> list[str]:
    """Every reason in the adapter's state against writing firmware into it, as words; none when it is well."""
    found = [reason for volume in adapter.volumes for reason in _volume(volume)]
    if adapter.health and not _WELL.match(adapter.health):
        found.append(f"its state is {adapter.health}")
    found += [f"drive {drive.position} is {drive.state}" for drive in adapter.drives if _BUSY.search(drive.state)]
    found += [
        f"{label} is {value}"
        for label, value in adapter.settings.items()
        if _TASK.search(label) and _RUNNING.match(value)
    ]
    return found


def _volume(volume: VolumeFacts) -> Iterator[str]:
    name = f"volume {volume.name or volume.id}"
    for task, percent in volume.progress.items():
        yield f"{name}: {task} is under way ({percent:g} %)"
    if volume.healthy is not True and not volume.progress:
        yield f"{name} is {volume.state or 'in a state that its tool does not tell'}"
