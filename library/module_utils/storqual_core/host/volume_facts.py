# SPDX-License-Identifier: Apache-2.0
"""Volumes made of drives (md, device-mapper) and enclosures, as sysfs shows them."""

from __future__ import annotations

from typing import Any, Mapping

from ..kit.machine import Machine, block_node
from .block_stack import physical


def read_volumes(machine: Machine, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every md array and device-mapper device; `ids` names the drives under it. Sizes in bytes."""
    volumes = []
    for name in machine.names("/sys/block"):
        place = f"/sys/block/{name}"
        if machine.exists(f"{place}/md"):
            facts = _array(machine, f"{place}/md")
        elif machine.exists(f"{place}/dm"):
            facts = _mapped(machine, f"{place}/dm")
        else:
            continue
        facts.update(
            name=name,
            node=block_node(name),
            size=(machine.number(f"{place}/size") or 0) * 512,
            members=[ids.get(disk, disk) for disk in physical(machine, name)],
        )
        volumes.append(facts)
    return volumes


def _array(machine: Machine, place: str) -> dict[str, Any]:
    return {
        "kind": "md",
        "title": "",
        "uuid": machine.text(f"{place}/uuid"),
        "level": machine.text(f"{place}/level"),
        "state": machine.text(f"{place}/array_state"),
        "chunk": machine.number(f"{place}/chunk_size"),
        "degraded": machine.number(f"{place}/degraded"),
        "action": machine.text(f"{place}/sync_action"),
        "metadata": machine.text(f"{place}/metadata_version"),
    }


def _mapped(machine: Machine, place: str) -> dict[str, Any]:
    uuid = machine.text(f"{place}/uuid")
    kinds = {"LVM": "lvm", "mpath": "multipath", "CRYPT": "crypt", "DMRAID": "dmraid"}
    return {
        "kind": kinds.get(uuid.split("-", 1)[0], "device-mapper"),
        "title": machine.text(f"{place}/name"),
        "uuid": uuid,
        "state": "suspended" if machine.text(f"{place}/suspended") == "1" else "active",
    }


def read_enclosures(machine: Machine) -> list[dict[str, Any]]:
    """Enclosures with a services processor (SES): what each says it is, and which slots hold a device."""
    found = []
    for name in machine.names("/sys/class/enclosure"):
        place = f"/sys/class/enclosure/{name}"
        slots = [slot for slot in machine.names(place) if machine.exists(f"{place}/{slot}/slot")]
        found.append(
            {
                "hctl": name,
                "id": machine.text(f"{place}/id"),
                "vendor": machine.text(f"{place}/device/vendor"),
                "model": machine.text(f"{place}/device/model"),
                "revision": machine.text(f"{place}/device/rev"),
                "slots": {
                    machine.text(f"{place}/{slot}/slot"): machine.target(f"{place}/{slot}/device") for slot in slots
                },
            }
        )
    return found
