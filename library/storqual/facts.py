# SPDX-License-Identifier: Apache-2.0
"""Draft an inventory from what a bench shows of itself: for a technician to read, name and claim."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["draft_inventory"]

_TEMPLATE = re.compile(r"\{[{%#]")
# what people call the classes of PCI functions, for an alias that says something
_FAMILIES = {"nvme": "nvme", "virtio_scsi": "vscsi", "virtio_blk": "vblk", "ahci": "sata"}
_DRIVE_KEYS = ("wwn", "serial", "vendor", "model", "revision")


def draft_inventory(benches: Mapping[str, Mapping[str, Any]], *, kind: str = "hardware") -> str:
    """An inventory of the benches whose fact sets (`storqual.facts/1`) are given; nothing in it is claimed.

    Drives that the machine itself lives on carry a comment instead of a claim. Text of devices is quoted so that
    neither YAML nor Ansible reads anything into it.
    """
    lines = [
        "# Drafted by `storqual facts`. Nothing is claimed yet: a drive that may be destroyed gets `claim: true`.",
        "# Give the adapters the names you call them by. Tests take the drives of an adapter in this order.",
        "benches:",
        "  hosts:",
    ]
    for name, facts in benches.items():
        lines.append(f"    {_plain(name)}:")
        lines.append(f"      storqual_kind: {kind}")
        lines.append("      storqual_state_dir: /var/lib/storqual")
        lines.append("      storqual_adapters:" + ("" if facts["adapters"] else " {}"))
        lines.extend(" " * 8 + line for line in _adapters(facts))
    return "\n".join(lines) + "\n"


def _adapters(facts: Mapping[str, Any]) -> Iterator[str]:
    aliases: dict[str, int] = {}
    for adapter in facts["adapters"]:
        family = _FAMILIES.get(adapter["driver"], re.sub(r"\W+", "_", adapter["driver"]) or "adapter")
        number = aliases.setdefault(family, 0)
        aliases[family] += 1
        drives = [drive for drive in facts["drives"] if drive["adapter"] == adapter["pci"]]
        yield f"{family}{number}:"
        yield from ("  " + line for line in _adapter(adapter, drives))


def _adapter(adapter: Mapping[str, Any], drives: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"model: {_text(adapter['board'] or 'PCI ' + adapter['vendor'] + ':' + adapter['device'])}"
    if adapter["driver"]:
        yield f"driver: {_text(adapter['driver'])}"
    yield f"pci: {_text(adapter['pci'])}"
    if adapter["subsystem"].strip(":"):
        yield f"subsystem: {_text(adapter['subsystem'])}"
    if adapter["serial"]:
        yield f"serial: {_text(adapter['serial'])}"
    link = adapter["link"]
    if (
        link["width"]
        and link["width_max"]
        and (link["speed"], link["width"]) != (link["speed_max"], link["width_max"])
    ):
        now, most = f"{link['speed']} x{link['width']}", f"{link['speed_max']} x{link['width_max']}"
        yield f"# its link runs at {_plain(now)}, it could run at {_plain(most)}"
    yield "drives:" + ("" if drives else " []")
    for drive in drives:
        yield from ("  " + line for line in _drive(drive))


def _drive(drive: Mapping[str, Any]) -> Iterator[str]:
    named = [(key, drive[key]) for key in _DRIVE_KEYS if drive[key]]
    pairs = [f"{key}: {_text(value)}" for key, value in named]
    pairs.append(f"size: {int(drive['size'])}")
    if drive["rotation"] is not None:
        pairs.append(f"rotation_rate: {int(drive['rotation'])}")
    pairs += [f"port: {int(drive['port'])}", "claim: false"]
    if drive["system"]:
        yield f"# {_plain(drive['name'])} {_plain(drive['system'])}: never claim it"
    elif not drive["wwn"] and not drive["serial"]:
        yield f"# {_plain(drive['name'])} says neither WWN nor serial number, so it cannot be claimed"
    yield f"- {pairs[0]}"
    yield from (f"  {pair}" for pair in pairs[1:])


def _plain(text: str) -> str:
    """Text for a comment or a key: printable ASCII on one line."""
    return re.sub(r"[^ -~]", "?", text)


def _text(value: object) -> str:
    """A YAML scalar that is this text and nothing else, for YAML readers and for Ansible's templates."""
    quoted = json.dumps(str(value), ensure_ascii=True)
    # a control character has no place in YAML 1.1, and JSON's escapes are YAML's in double quotes
    return f"!unsafe {quoted}" if _TEMPLATE.search(str(value)) else quoted
