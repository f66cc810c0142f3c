# SPDX-License-Identifier: Apache-2.0
"""Which of a tool's adapters is the one that the inventory means, and whether an image is for its board."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from .capabilities import AdapterFacts, ToolFacts
from .errors import ToolError
from .identity import same_text
from .machine import Machine, visible
from .sysfs import read_adapters

__all__ = ["board_of", "board_problem", "find_adapter", "find_by_serial"]


def find_adapter(facts: ToolFacts, alias: str, declared: Mapping[str, Any]) -> AdapterFacts:
    """The adapter that agrees with the inventory's PCI address and serial number, in all that both sides say.

    Raises ToolError when it is not exactly one, or when there is nothing to know it by: a tool's own number is no
    identity, it changes with every card that is plugged in.
    """
    known = {name: str(declared.get(name) or "") for name in ("pci", "serial")}
    if not any(known.values()):
        raise ToolError(
            f"adapter {alias}: the inventory states neither its PCI address nor its serial number; add them"
        )
    matching = [adapter for adapter in facts.adapters if _agrees(adapter, known)]
    if len(matching) == 1:
        return matching[0]
    seen = "; ".join(sorted(_seen(facts.adapters))) or "no adapter"
    wanted = " and ".join(f"{name} {visible(text)}" for name, text in known.items() if text)
    raise ToolError(f"adapter {alias}: {len(matching)} adapters of the tool have {wanted}; it shows {seen}")


def _agrees(adapter: AdapterFacts, known: Mapping[str, str]) -> bool:
    """Every part that both sides state is equal, and there is at least one such part."""
    compared = [
        same_text(mine.lower(), its.lower())
        for mine, its in ((known["pci"], adapter.pci), (known["serial"], adapter.serial))
        if mine and its
    ]
    return bool(compared) and all(compared)


def _seen(adapters: Sequence[AdapterFacts]) -> Iterator[str]:
    for adapter in adapters:
        parts = [adapter.index, adapter.model, adapter.pci, f"serial {adapter.serial}" if adapter.serial else ""]
        yield " ".join(visible(part) for part in parts if part)


def find_by_serial(facts: ToolFacts, drive: str, serial: str) -> AdapterFacts:
    """The device of a tool (fwupd) with a drive's serial number. Raises ToolError when it is not exactly one."""
    matching = [device for device in facts.adapters if serial and device.serial == serial]
    if len(matching) != 1:
        raise ToolError(
            f"drive {drive}: {len(matching)} devices of the tool have serial {visible(serial) or 'nothing'}"
        )
    return matching[0]


def board_of(machine: Machine, pci: str) -> str:
    """The PCI subsystem id of the adapter at an address, `1000:3010`; empty when no adapter is there."""
    for adapter in read_adapters(machine):
        if adapter.identity.pci == pci.lower():
            return f"{adapter.identity.subsystem_vendor}:{adapter.identity.subsystem_device}"
    return ""


def board_problem(board: str, boards: Sequence[str]) -> str:
    """Why an image for `boards` is not for this one; empty when it is, or when the drop names no boards."""
    if not boards or board.lower() in (each.lower() for each in boards):
        return ""
    return f"the image is for boards {', '.join(boards)}, this one is {board or 'not on the PCI bus'}"
