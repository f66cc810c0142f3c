# SPDX-License-Identifier: Apache-2.0
"""Whether a word of an adapter's NVRAM is in effect: what the driver says and does with it, not what was stored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Sequence

from .adapter_drives import behind
from .adapter_lookup import Place
from .attributes import read_attribute
from .driver_parameters import driver_follows
from .kernel_log import KernelLog, texts
from .machine import Machine

__all__ = ["effect_of", "log_lines", "reported_id"]

# esp_scsi, which am53c974 is built on, says so when it takes an adapter
_ESP_ID = re.compile(r"\bSCSI ID (\d+)\s*$")
_STORED = "read back from the adapter; its effect was not measured"


def log_lines(device: str = "/dev/kmsg") -> list[str]:
    """All records that the kernel's log still holds, as lines; none when it cannot be read."""
    log = KernelLog(device, whole=True)
    try:
        return texts(log.read())
    finally:
        log.close()


def reported_id(lines: Sequence[str], pci: str) -> int | None:
    """The SCSI id that the driver of the adapter at `pci` said it read, the last time it said so; None: never."""
    found = [match.group(1) for line in lines if f" {pci}: " in line and (match := _ESP_ID.search(line))]
    return int(found[-1]) if found else None


def effect_of(
    machine: Machine, place: Place, name: str, value: object, lines: Sequence[str]
) -> tuple[bool | None, str]:
    """Whether the driver works with `value`, and how that is known. None: not shown. `lines`: the kernel's log."""
    ignored = driver_follows(place.driver, name)
    if ignored:
        return False, f"read back from the adapter, and not in effect: {ignored}"
    if place.driver != "am53c974":
        return None, _STORED
    if name == "host_scsi_id":
        return _host_id(place, value, lines)
    return _tags(machine, place, value) if name == "max_tags" else (None, _STORED)


def _host_id(place: Place, value: object, lines: Sequence[str]) -> tuple[bool | None, str]:
    seen = reported_id(lines, place.pci)
    if seen is None:
        return (
            None,
            "read back from the adapter; the kernel's log no longer holds what the driver read when it started",
        )
    return seen == value, f"the driver started with SCSI id {seen} (kernel log)"


def _tags(machine: Machine, place: Place, value: object) -> tuple[bool | None, str]:
    """am53c974 gives the number to each drive that takes tagged commands as its queue depth."""
    depths: dict[str, int] = {}
    for drive in behind(machine, [place.pci]):
        device = Path(machine.path(f"/sys/block/{drive.name}/device"))
        depth = read_attribute(device / "queue_depth")
        if read_attribute(device / "queue_type") == "simple" and depth and depth.isdigit():
            depths[drive.id] = int(depth)
    if not depths:
        return None, "read back from the adapter; no drive behind it takes tagged commands, so nothing could show it"
    wrong = {drive: depth for drive, depth in depths.items() if depth != value}
    if wrong:
        return False, "queue depths of its drives: " + ", ".join(f"{drive} {depth}" for drive, depth in wrong.items())
    return True, f"the driver gave {len(depths)} drives a queue depth of {value}"
