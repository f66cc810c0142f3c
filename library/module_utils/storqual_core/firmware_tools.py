# SPDX-License-Identifier: Apache-2.0
"""Which tool puts a drop's firmware in, by the name that the drop uses, and whether it is for adapters or drives."""

from __future__ import annotations

from types import ModuleType
from typing import Mapping

from .capabilities import offers
from .errors import BadInputError
from .tools import TOOLS

__all__ = ["DRIVE_TOOLS", "FIRMWARE_TOOLS", "REDFISH", "tool_for"]

FIRMWARE_TOOLS: Mapping[str, str] = {
    "arcconf": "arcconf",
    "fwupd": "fwupd",
    "hbacmd": "hbacmd",
    "mnv_cli": "mvcli",
    "nvme": "nvme_firmware",
    "perccli": "storcli",
    "qaucli": "qaucli",
    "sas2flash": "sasflash",
    "sas3flash": "sasflash",
    "sg_write_buffer": "sg_write_buffer",
    "ssacli": "ssacli",
    "storcli": "storcli",
}
"""The file in `tools/` by the name that a drop writes under `tool`.

lsiutil is not here: its download is a dialogue of which no record exists, and a flash is no place to guess answers.
"""

DRIVE_TOOLS = ("fwupd", "nvme", "sg_write_buffer")
"""Those that flash drives; the others flash adapters."""

REDFISH = "redfish"
"""An adapter's firmware by way of the bench's management controller: from the control node, by a role."""


def tool_for(name: str, *, drives: bool) -> ModuleType:
    """The tool that flashes adapters, or with `drives` drives. Raises BadInputError that names those there are."""
    known = [tool for tool in FIRMWARE_TOOLS if (tool in DRIVE_TOOLS) == drives and _flashes(tool)]
    if name not in known:
        what = "a drive" if drives else "an adapter"
        raise BadInputError([f"firmware of {what}: found tool {name!r}, expected one of {', '.join(sorted(known))}"])
    return TOOLS[FIRMWARE_TOOLS[name]]()


def _flashes(name: str) -> bool:
    file = FIRMWARE_TOOLS[name]
    return file in TOOLS and "firmware.download" in offers(TOOLS[file]())
