# SPDX-License-Identifier: Apache-2.0
"""Which tool keeps an adapter's settings, what it can do with a value, and what the driver does beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Callable, Mapping, Sequence

from ..host.adapters import Place, behind
from ..host.kernel_log import KernelLog, texts
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine, read_attribute
from ..kit.quantities import is_whole
from ..tools import TOOLS
from ..tools.capabilities import Spelling, Value, offers
from .driver import driver_follows, parameter_for

_OF_DRIVER = {
    "am53c974": "dc390",
    "qla2xxx": "qaucli",
    "lpfc": "hbacmd",
    "mptsas": "lsiutil",
    "mptspi": "lsiutil",
    "mptfc": "lsiutil",
    "mpt2sas": "lsiutil",
    "mpt3sas": "lsiutil",
    "megaraid_sas": "storcli",
}
# the PCI address is the index of an adapter whose tool is no program
_BY_ADDRESS = ("dc390",)
THROTTLE = "execution_throttle"
"""The setting that a driver may bring about in another way than the NVRAM."""


@dataclass(frozen=True)
class Backend:
    """A tool that keeps settings of one adapter; `index` is the tool's word for the adapter."""

    name: str
    tool: ModuleType
    index: str

    @property
    def spellings(self) -> Mapping[str, Spelling]:
        """The canonical names that the tool has."""
        spellings: Mapping[str, Spelling] = self.tool.SETTINGS
        return spellings

    def read(self, runner: Runner) -> Mapping[str, Value]:
        """The settings that this adapter shows. Raises ToolError."""
        values: Mapping[str, Value] = self.tool.read_settings(runner, self.index)
        return values

    def objection(self, runner: Runner, name: str, value: Value) -> str:
        """Why a value cannot be written; empty when it can. Raises ToolError."""
        if not hasattr(self.tool, "write_setting"):
            return f"{self.name} only reads it here"
        if not self.spellings[name].write:
            return f"how {self.name} sets it is not verified, so it is not tried; set it with the vendor's own menu"
        return str(self.tool.objection(runner, self.index, name, value)) if hasattr(self.tool, "objection") else ""

    def write(self, runner: Runner, name: str, value: Value) -> None:
        """Write one setting. Raises ToolError, BadInputError."""
        self.tool.write_setting(runner, self.index, name, value)


def backend_of(runner: Runner, place: Place) -> Backend | None:
    """The tool for an adapter: the inventory's, else its driver's usual one; None when there is none.

    Raises ToolError when the tool cannot be asked or does not see the adapter, which is known by its PCI address and
    never by the order in which a tool lists it.
    """
    name = _tool_name(place)
    if not name:
        return None
    tool = TOOLS[name]()
    if name in _BY_ADDRESS:
        return Backend(name, tool, place.pci)
    seen = tool.read_facts(runner).adapters
    fitting = [adapter.index for adapter in seen if adapter.pci == place.pci]
    if len(fitting) != 1:
        listed = ", ".join(adapter.pci or "no address" for adapter in seen) or "none"
        raise ToolError(f"{name} shows {len(fitting)} adapters at {place.pci} (it shows: {listed})")
    return Backend(name, tool, fitting[0])


def _tool_name(place: Place) -> str:
    for name in (place.tool, _OF_DRIVER.get(place.driver, "")):
        if name in TOOLS and "settings" in offers(TOOLS[name]()):
            return name
    return ""


def beside(place: Place, name: str, *, stored: bool) -> str:
    """The driver's own parameter that does what `name` means, where NVRAM does not or is not there; else empty."""
    parameter = parameter_for(place.module, "lun") if name == THROTTLE else None
    if parameter is None or (stored and not driver_follows(place.driver, name)):
        return ""
    return f"{parameter.module}.{parameter.name}"


# esp_scsi, which am53c974 is built on, says so when it takes an adapter
_ESP_ID = re.compile(r"\bSCSI ID (\d+)\s*$")
_STORED = "stored in the adapter"


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
    machine: Machine, place: Place, name: str, value: object, log: Callable[[], Sequence[str]]
) -> tuple[bool | None, str]:
    """Whether the driver works with `value`, and how that is known. None: not shown. `log` reads the kernel's log."""
    ignored = driver_follows(place.driver, name)
    if ignored:
        return False, f"read back from the adapter, and not in effect: {ignored}"
    look = SHOWN.get((place.driver, name))
    return look(machine, place, value, log) if look else (None, _STORED)


Log = Callable[[], Sequence[str]]


def _host_id(machine: Machine, place: Place, value: object, log: Log) -> tuple[bool | None, str]:
    del machine
    seen = reported_id(log(), place.pci)
    if seen is None:
        return (
            None,
            "the kernel's log no longer holds what the driver read when it started",
        )
    return seen == value, f"the driver started with SCSI id {seen} (kernel log)"


def _tags(machine: Machine, place: Place, value: object, log: Log) -> tuple[bool | None, str]:
    """am53c974 gives the number to each drive that takes tagged commands as its queue depth."""
    del log
    depths: dict[str, int] = {}
    for drive in behind(machine, [place.pci]):
        device = Path(machine.path(f"/sys/block/{drive.name}/device"))
        depth = read_attribute(device / "queue_depth")
        if read_attribute(device / "queue_type") == "simple" and depth and is_whole(depth):
            depths[drive.id] = int(depth)
    if not depths:
        return None, "no drive behind it takes tagged commands, so nothing could show it"
    wrong = {drive: depth for drive, depth in depths.items() if depth != value}
    if wrong:
        return False, "queue depths of its drives: " + ", ".join(f"{drive} {depth}" for drive, depth in wrong.items())
    return True, f"the driver gave {len(depths)} drives a queue depth of {value}"


SHOWN: Mapping[tuple[str, str], Callable[[Machine, Place, object, Log], tuple[bool | None, str]]] = {
    ("am53c974", "host_scsi_id"): _host_id,
    ("am53c974", "max_tags"): _tags,
}
"""What shows a word in effect, by driver and name."""
