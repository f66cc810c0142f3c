# SPDX-License-Identifier: Apache-2.0
"""Draft an inventory from what a bench shows of itself: for a technician to read, name and claim."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from storqual.inputs.inventory import PSEUDO_DRIVER
from storqual_core.host.fabric import port_words
from storqual_core.host.identity import SOFTWARE_INITIATORS

_TEMPLATE = re.compile(r"\{[{%#]")
# what people call the classes of PCI functions, for an alias that says something
_FAMILIES = {"nvme": "nvme", "virtio_scsi": "vscsi", "virtio_blk": "vblk", "ahci": "sata"}
_DRIVE_KEYS = ("wwn", "serial", "vendor", "model", "revision")


def draft_inventory(benches: Mapping[str, Mapping[str, Any]]) -> str:
    """An inventory of the benches whose fact sets (`storqual.facts/1`) are given; nothing in it is claimed.

    Drives that the machine itself lives on carry a comment instead of a claim; what no inventory could name (a drive
    without WWN and serial, a second path of one) stands there as a comment. Text of devices is quoted so that neither
    YAML nor Ansible reads anything into it.
    """
    lines = [
        "# Drafted by `storqual facts`. Nothing is claimed yet: a drive that may be destroyed gets `claim: true`.",
        "# Give the adapters the names you call them by. Tests take the drives of an adapter in this order.",
        "benches:",
        "  hosts:",
    ]
    for name, facts in benches.items():
        lines.append(f"    {_plain(name)}:")
        lines.append("      storqual_kind: hardware")
        lines.append("      storqual_state_dir: /var/lib/storqual")
        lines.append("      storqual_adapters:" + ("" if facts["adapters"] else " {}"))
        lines.extend(" " * 8 + line for line in _adapters(facts))
    return "\n".join(lines) + "\n"


def _adapters(facts: Mapping[str, Any]) -> Iterator[str]:
    aliases: dict[str, int] = {}
    named: set[tuple[str, ...]] = set()
    listed = []
    volumes = {volume["node"]: volume for volume in facts["volumes"] if volume["kind"] == "controller"}
    for adapter in facts["adapters"]:
        if adapter["driver"] == PSEUDO_DRIVER:
            # it rests on no hardware: only the inventory of a virtual bench has one, and says so
            continue
        family = _FAMILIES.get(adapter["driver"], re.sub(r"[^A-Za-z0-9]+", "_", adapter["driver"]).strip("_"))
        family = family[:48] or "adapter"
        number = aliases.setdefault(family, 0)
        aliases[family] += 1
        listed.append((f"{family}{number}", adapter))
    routes = _routes(facts, {adapter["pci"]: alias for alias, adapter in listed})
    for alias, adapter in listed:
        drives = [drive for drive in facts["drives"] if drive["adapter"] == adapter["pci"]]
        # of a LUN each path is a disk; the first of them stands for it
        drives = [
            drive for drive in drives if not drive.get("paths") or routes[drive["id"]][0]["device"] == drive["name"]
        ]
        yield f"{alias}:"
        yield from ("  " + line for line in _adapter(alias, adapter, drives, routes, volumes, named))


def _routes(facts: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, list[dict[str, str]]]:
    """The paths through a fabric by drive: the disk that each stands on, its ends, the alias of its adapter."""
    routes: dict[str, list[dict[str, str]]] = {}
    for drive in facts["drives"]:
        for path in drive.get("paths") or ():
            route = {
                "device": drive["name"],
                "adapter": aliases.get(drive["adapter"], ""),
                "initiator": path["initiator"],
                "target": path["portal"] or path["target"],
            }
            routes.setdefault(drive["id"], []).append(route)
    return routes


def _route(route: Mapping[str, str], alias: str) -> str:
    """`{initiator: "0x...", target: "0x..."}`, with the adapter where it is not the drive's."""
    keys = ["initiator", "target", *(["adapter"] if route["adapter"] not in ("", alias) else [])]
    return "{" + ", ".join(f"{key}: {_text(route[key])}" for key in keys) + "}"


def _adapter(
    alias: str,
    adapter: Mapping[str, Any],
    drives: Sequence[Mapping[str, Any]],
    routes: Mapping[str, Sequence[Mapping[str, str]]],
    volumes: Mapping[str, Mapping[str, Any]],
    named: set[tuple[str, ...]],
) -> Iterator[str]:
    board = adapter["board"] if _one_line(adapter["board"]) else ""
    initiator = adapter["driver"] in SOFTWARE_INITIATORS
    other = f"software initiator {adapter['driver']}" if initiator else f"PCI {adapter['vendor']}:{adapter['device']}"
    yield f"model: {_text(board or other)}"
    if adapter["driver"]:
        yield f"driver: {_text(adapter['driver'])}"
    if not initiator:
        yield f"pci: {_text(adapter['pci'])}"
    for host in adapter.get("hosts") or ():
        if "fc_port" in host:
            yield f"# port {_plain(port_words(host['fc_port']))}"
    for key, value in (
        ("subsystem", adapter["subsystem"].strip(":") and adapter["subsystem"]),
        ("serial", adapter["serial"]),
        ("slot", adapter["slot"]),
        ("tool", (adapter.get("tools") or [""])[0]),
    ):
        if value:
            yield f"{key}: {_text(value)}" if _one_line(value) else f"# its {key} is no text: {_plain(value)}"
    versions = adapter.get("versions") or {"firmware": adapter["firmware"]}
    if any(versions.values()):
        found_with = ", ".join(f"{part} {version}" for part, version in versions.items() if version)
        yield f"# found with {_plain(found_with)}"
    link = adapter["link"]
    if (
        link["width"]
        and link["width_max"]
        and (link["speed"], link["width"]) != (link["speed_max"], link["width_max"])
    ):
        now, most = f"{link['speed']} x{link['width']}", f"{link['speed_max']} x{link['width_max']}"
        yield f"# its link runs at {_plain(now)}, it could run at {_plain(most)}"
    blocks = []
    for drive in drives:
        ends = [_route(each, alias) for each in (routes[drive["id"]] if drive.get("paths") else ())]
        blocks.append((_unnamed(drive, named), list(_drive(drive, volumes.get(drive["node"]), ends))))
    yield "drives:" + ("" if any(not reason for reason, _ in blocks) else " []")
    for reason, lines in blocks:
        if reason:
            yield f"  # {reason}"
        yield from (f"  # {line.lstrip('# ')}" if reason else f"  {line}" for line in lines)


def _unnamed(drive: Mapping[str, Any], named: set[tuple[str, ...]]) -> str:
    what = _plain(drive["name"])
    if not drive["wwn"] and not drive["serial"]:
        return f"{what} reports neither WWN nor serial number, so it cannot be claimed:"
    names: set[tuple[str, ...]] = {("wwn", drive["wwn"])} if drive["wwn"] else set()
    if drive["serial"]:
        names.add(("serial", drive["vendor"].lower(), drive["serial"]))
    if not all(_one_line(name[-1]) for name in names):
        return f"{what} has control characters in its name, so it cannot be claimed:"
    if names & named:
        return f"{what} has a name of a drive above (another path, another namespace), so it cannot be claimed:"
    named |= names
    return ""


def _drive(drive: Mapping[str, Any], volume: Mapping[str, Any] | None, routes: Sequence[str]) -> Iterator[str]:
    named = [(key, drive[key]) for key in _DRIVE_KEYS if drive[key] and _one_line(drive[key])]
    pairs = [f"{key}: {_text(value)}" for key, value in named]
    if drive["size"]:
        pairs.append(f"size: {int(drive['size'])}")
    if drive["rotation"] is not None:
        pairs.append(f"rotation_rate: {int(drive['rotation'])}")
    pairs.append(f"port: {routes[0] if routes else int(drive['port'])}")
    if len(routes) > 1:
        pairs += ["paths:", *(f"  - {route}" for route in routes[1:])]
    if drive.get("position") and _one_line(drive["position"]):
        pairs.append(f"position: {_text(drive['position'])}")
    pairs.append("claim: false")
    if volume is not None:
        members = ", ".join(volume["members"])
        yield f"# volume {_plain(volume['name'])} (RAID {_plain(volume['level'])}) of {_plain(members)}"
    if drive["system"]:
        yield f"# {_plain(drive['name'])} {_plain(drive['system'])}: never claim it"
    health = drive.get("health") or {}
    if health.get("passed") is False:
        yield f"# {_plain(drive['name'])} reports that it is failing"
    yield f"- {pairs[0]}"
    yield from (f"  {pair}" for pair in pairs[1:])


def _one_line(text: str) -> bool:
    """Whether an inventory can hold this text: not blank, no control characters."""
    return bool(text.strip()) and not any(ord(character) < 32 or ord(character) == 127 for character in text)


def _plain(text: str) -> str:
    """Text for a comment or a key: printable ASCII on one line."""
    return re.sub(r"[^ -~]", "?", text)


def _text(value: object) -> str:
    """A YAML scalar that is this text and nothing else, for YAML readers and for Ansible's templates."""
    quoted = json.dumps(str(value), ensure_ascii=True)
    # a control character has no place in YAML 1.1, and JSON's escapes are YAML's in double quotes
    return f"!unsafe {quoted}" if _TEMPLATE.search(str(value)) else quoted
