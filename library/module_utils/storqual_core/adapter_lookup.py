# SPDX-License-Identifier: Apache-2.0
"""From an adapter's alias in the inventory to the PCI function on this bench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from .errors import BadInputError
from .machine import Machine, visible
from .sysfs import read_adapters

__all__ = ["Place", "find_adapters"]


@dataclass(frozen=True)
class Place:
    """Where an adapter is: PCI address, driver, the driver's module, its SCSI hosts, and the inventory's tool."""

    alias: str
    pci: str
    driver: str
    module: str
    hosts: tuple[str, ...]
    tool: str


def find_adapters(machine: Machine, adapters: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Place]:
    """The adapters with the aliases `wanted`. Raises BadInputError with every alias that means no adapter here.

    The PCI address decides; without one the driver does, when one adapter has it.
    """
    present = read_adapters(machine)
    found: dict[str, Place] = {}
    problems = []
    for alias in wanted:
        declared = adapters.get(alias)
        if declared is None:
            known = ", ".join(adapters) or "none"
            problems.append(f"{alias!r} is no adapter of this bench's inventory (known: {known})")
            continue
        pci, driver = str(declared.get("pci") or "").lower(), str(declared.get("driver") or "")
        pci = f"0000:{pci}" if pci.count(":") == 1 else pci
        fitting = [each for each in present if (each.identity.pci == pci if pci else driver == each.driver)]
        if len(fitting) != 1:
            what = f"at {pci}" if pci else f"with driver {driver or '(not given)'}"
            problems.append(f"adapter {alias}: {len(fitting)} adapters of this bench are {visible(what)}, not one")
            continue
        one = fitting[0]
        hosts = tuple(str(host["host"]) for host in one.hosts)
        found[alias] = Place(alias, one.identity.pci, one.driver, one.module, hosts, str(declared.get("tool") or ""))
    if problems:
        raise BadInputError(problems)
    return found
