# SPDX-License-Identifier: Apache-2.0
"""Block devices that this machine serves to others: NVMe and SCSI targets, SCST, USB gadgets.

NFS serves mounted file systems only, and a mount is a finding already (in_use.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator

from ..kit.machine import Machine, visible
from .block_stack import resolve

_TARGET = "/sys/kernel/config/target/core/*/*"
# the file that names the device; beside it the file `enable`, where the server has one
_NAMED = (
    ("an NVMe target", "/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("an NVMe target", "/sys/kernel/config/nvmet/subsystems/*/passthru/device_path"),
    ("a SCSI target", f"{_TARGET}/udev_path"),
    ("a SCSI target", "/sys/kernel/scst_tgt/handlers/*/*/filename"),
    ("a USB gadget", "/sys/kernel/config/usb_gadget/*/functions/*/*/file"),
    ("a USB gadget", "/sys/class/udc/*/device/*/*/file"),
)
# udev_path is a note of the tool that set a SCSI target up; what the kernel itself opened stands in `info`
_OPENED = re.compile(r"(?: File| UDEV PATH): (.+?)  (?:Size|readonly): ")


@dataclass(frozen=True)
class Export:
    """What a server of block devices was given, and the block devices behind it, none where they cannot be told."""

    title: str
    path: str
    names: tuple[str, ...]


def read_exports(machine: Machine) -> list[Export]:
    """Every device that is set up for being served, switched on or not, each once."""
    return list(
        dict.fromkeys(Export(title, path, resolve(machine, path).names) for title, path, _ in _paths(machine))
    )


def lost_exports(machine: Machine) -> list[str]:
    """What is served now and leads to nothing any more, in words: it may be any device."""
    return [
        f"{title} serves {visible(path)}, which leads to nothing now"
        for title, path, on in _paths(machine)
        if on and machine.node(path) is None
    ]


def _paths(machine: Machine) -> Iterator[tuple[str, str, bool]]:
    """Title, path, and whether it is switched on, of all that is set up."""
    for title, pattern in _NAMED:
        for place in _matching(machine, pattern):
            path = machine.text(place).strip()
            if path.startswith("/"):
                yield title, path, machine.text(place.rpartition("/")[0] + "/enable") == "1"
    for place in _matching(machine, f"{_TARGET}/info"):
        for path in _OPENED.findall(machine.text(place)):
            yield "a SCSI target", path, True


def _matching(machine: Machine, pattern: str) -> list[str]:
    """Existing paths for a pattern in which `*` stands for one whole name."""
    places = [""]
    for word in pattern.strip("/").split("/"):
        if word == "*":
            places = [f"{place}/{name}" for place in places for name in machine.names(place)]
        else:
            places = [f"{place}/{word}" for place in places]
    return [place for place in places if machine.exists(place)]
