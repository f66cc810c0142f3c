# SPDX-License-Identifier: Apache-2.0
"""lsscsi: every SCSI device with its generic node, those that are no disks included (enclosures, processors, tapes).

`lsscsi -g` prints columns of fixed width, because vendor and model may hold blanks: type 8, vendor 8, model 16,
revision 4 (lsscsi(8)). An NVMe namespace has one column for its model instead. With `-t` these are one column of 30
for the transport and the address of the target.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK

_PLACE = r"^\[([0-9N]+:[0-9]+:[0-9]+:[0-9]+)\] *"
_NODE = r"(-|/dev/\S+)"
# behind the nodes `-s` prints a size, a dash for what has none
_NODES = _NODE + r"(?: +" + _NODE + r")?(?: +(?:-|[0-9.]+[kKMGTP]?i?B))?\s*$"
# a kernel without the driver sd or sg has no node to print
_SCSI = re.compile(_PLACE + r"(.{8})(.{8}) (.{16}) (.{4})(?: +" + _NODES + r"|\s*$)")
# `fc:0x21000024ff000001,0x010b00`, `sas:0x5000…`, `sata:5000…`, `iqn.…,t,0x1`, `usb: 1-1.3:1.2`, nothing
_TRANSPORT = re.compile(_PLACE + r"(.{8})(\S.*?)? +(?:" + _NODES + r"|$)")
_NODES_OF_ONE = 2
# a prompt with the command
_NOISE = re.compile(r"^(?:\S.*[#$>]\s*(?:\S+/)?|\$? ?)lsscsi\b(?!:)")
_NVME = re.compile(_PLACE + r"(.{8})(\S.*?) +" + _NODES)


@dataclass(frozen=True)
class ScsiDevice:
    """One logical unit by its path `host:channel:target:lun`; nodes are empty where there is none.

    `unread` is the line of a device that is not understood.
    """

    path: str
    kind: str
    vendor: str
    model: str
    revision: str
    node: str
    generic: str
    unread: str = ""


def parse_devices(text: str) -> tuple[ScsiDevice, ...]:
    """The lines of `lsscsi -g` (and without -g); a device that is not understood is told as unread.

    Raises ToolError for a text of lines that are none.
    """
    devices: list[ScsiDevice] = []
    for line in _whole_lines(text):
        scsi = None if line.startswith("[N:") else _SCSI.match(line)
        match = scsi or (_NVME.match(line) if line.startswith("[N:") else None)
        if match is None:
            path = re.match(r"\[([0-9N:]+)\]", line)
            devices.append(ScsiDevice(path.group(1) if path else "", "", "", "", "", "", "", line[:200]))
            continue
        place, kind, *fields, node, generic = match.groups()
        nodes = ["" if each in (None, "-") else each for each in (node, generic)]
        words = map(str.strip, (kind, *fields) if scsi else (kind, "", *fields, ""))
        devices.append(ScsiDevice(place, *words, *nodes))
    if devices and all(device.unread for device in devices):
        raise ToolError(f"lsscsi printed {devices[0].unread[:100]!r} where a device was expected")
    return tuple(devices)


def parse_transports(text: str) -> dict[str, str]:
    """`lsscsi -t`: through what each device is reached, by its path; nothing for one whose transport is not told.

    Raises ToolError for a line that is none, and for a device that comes twice.
    """
    transports: dict[str, str] = {}
    for line in _whole_lines(text):
        match = _TRANSPORT.match(line)
        if match is None or match.group(1) in transports:
            raise ToolError(f"lsscsi -t printed {line[:100]!r} where a device was expected, each once")
        transports[match.group(1)] = (match.group(3) or "").strip()
    return transports


def _whole_lines(text: str) -> list[str]:
    """The lines that are not empty; one that was wrapped before its nodes is one."""
    lines: list[str] = []
    for line in text.lstrip(BYTE_ORDER_MARK).splitlines():
        wrapped = re.match(r"\s+(?:-|/dev/\S+)(?:\s+\S+)*\s*$", line)
        if lines and wrapped and lines[-1].startswith("[") and lines[-1].count(" /dev/") < _NODES_OF_ONE:
            lines[-1] += f" {line.strip()}"
        elif line.strip() and not _NOISE.match(line):
            lines.append(line.rstrip())
    return lines


def read_transports(runner: Runner) -> dict[str, str]:
    """Through what every SCSI device is reached. Raises ToolError."""
    return parse_transports(runner(["lsscsi", "-t"], timeout=60.0).expect().stdout)


def read_devices(runner: Runner) -> tuple[ScsiDevice, ...]:
    """Every SCSI device of the machine. Raises ToolError."""
    return parse_devices(runner(["lsscsi", "-g"], timeout=60.0).expect().stdout)
