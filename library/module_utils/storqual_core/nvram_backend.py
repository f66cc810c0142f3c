# SPDX-License-Identifier: Apache-2.0
"""Which tool keeps an adapter's settings, what it can do with a value, and what the driver does beside it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Mapping

from .adapter_lookup import Place
from .capabilities import Spelling, Value, offers
from .command import Runner
from .driver_parameters import driver_follows, lun_depth_parameter
from .errors import ToolError
from .tools import TOOLS

__all__ = ["THROTTLE", "Backend", "backend_of", "beside"]

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
    parameter = lun_depth_parameter(place.module) if name == THROTTLE else None
    if parameter is None or (stored and not driver_follows(place.driver, name)):
        return ""
    return f"{parameter.module}.{parameter.name}"
