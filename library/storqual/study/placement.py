# SPDX-License-Identifier: Apache-2.0
"""Where cards sit: what a slot carries beside its ports, and what cards share above them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from storqual_core.kit.quantities import is_whole

_MB = 1_000_000
_LANE = {2.5: 250e6, 5.0: 500e6, 8.0: 984.6e6, 16.0: 1969.2e6, 32.0: 3938.5e6, 64.0: 7562.5e6}
"""Bytes per second of one PCIe lane and direction after its line code, by transfers per second (GT/s)."""


def placement_advice(alias: str, declared: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about one adapter: `declared` is its entry of the inventory, `found` what the bench read of it.

    A slot that carries less than its ports' links together is the limit however many drives are attached (HP A6826A
    paper, p. 2 and 7: 412 MB/s of two ports in a slot of 528 MB/s).
    """
    ceiling = declared.get("ceiling") or {}
    slot, link = float(ceiling.get("slot") or 0), float(ceiling.get("link") or 0)
    ports = len({drive.get("port") or 0 for drive in declared.get("drives") or ()})
    if slot and link:
        fed = int(slot // link)
        carries = f"{alias}: its slot carries {slot / _MB:.0f} MB/s, a port {link / _MB:.0f} MB/s"
        if fed >= max(ports, 1):
            yield f"{carries}: the slot feeds all {ports} port{'s' if ports != 1 else ''} at full rate."
        elif fed:
            yield f"{carries}: it feeds {fed} of {ports} ports at full rate; spread the others over another slot."
        else:
            yield (
                f"{carries}: no port runs at full rate here; a faster slot may give {link / slot:.1f} times the rate."
            )
    lane = found.get("link") or {}
    for what, name in (("speed", "speed"), ("width", "width")):
        now, best = str(lane.get(name) or ""), str(lane.get(f"{name}_max") or "")
        if now and best and now != best:
            yield f"{alias}: its PCI link runs at {what} {now}, the card can {best}: another slot may give more."


def shared_advice(bench: str, found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about the tested cards of a bench together: `found` is what it read of each adapter, by alias.

    Behind each PCI root how many cards are, and for each bridge that several share whether it carries what they can
    (HP A6826A paper, p. 6 and 7: so many cards in each half of an I/O backplane). Functions of one card are one card.
    """
    cards: dict[str, list[str]] = {}
    for alias, one in found.items():
        if one.get("pci") and one.get("root"):
            cards.setdefault(str(one["pci"]).rpartition(".")[0], []).append(alias)
    first = {card: found[aliases[0]] for card, aliases in cards.items()}
    names = {card: "/".join(aliases) for card, aliases in cards.items()}
    if len(cards) < 2 or not any(_carries(one.get("link")) or one.get("bridges") for one in first.values()):
        return
    yield f"{bench}: of {len(cards)} tested cards {_by_root(first, names)}."
    shared: dict[str, list[str]] = {}
    for card, one in first.items():
        for bridge in one.get("bridges") or ():
            shared.setdefault(bridge["pci"], []).append(card)
    told: list[list[str]] = []
    links = {bridge["pci"]: bridge for one in first.values() for bridge in one.get("bridges") or ()}
    # the narrowest link that the same cards share is the one that limits them
    for pci in sorted(shared, key=lambda pci: _carries(links[pci]) or float("inf")):
        behind = shared[pci]
        if len(behind) > 1 and behind not in told:
            told.append(behind)
            yield _of_bridge(bench, links[pci], {names[card]: first[card].get("link") or {} for card in behind})


def _by_root(first: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> str:
    roots: dict[str, list[str]] = {}
    for card, one in first.items():
        node = one.get("numa_node")
        where = f"PCI root {one['root']}" + (f" of NUMA node {node}" if isinstance(node, int) and node >= 0 else "")
        roots.setdefault(where, []).append(names[card])
    return ", ".join(
        f"{len(behind)} {'is' if len(behind) == 1 else 'are'} behind {where} ({', '.join(behind)})"
        for where, behind in roots.items()
    )


def _of_bridge(bench: str, bridge: Mapping[str, Any], links: Mapping[str, Mapping[str, Any]]) -> str:
    """What cards share, and whether it is enough for all of them."""
    start = f"{bench}: {', '.join(links)} share "
    upstream = _carries(bridge)
    if upstream is None:
        return f"{start}the bus behind PCI bridge {bridge['pci']}: all that it carries is divided among them"
    start += f"PCI bridge {bridge['pci']} ({_told(bridge)}, {upstream / _MB:.0f} MB/s)"
    each = {name: _carries(link) for name, link in links.items()}
    known = [rate for rate in each.values() if rate is not None]
    if len(known) < len(each):
        return f"{start}; the link of {', '.join(name for name, rate in each.items() if rate is None)} is not known."
    cards = ", ".join(f"{name} {rate / _MB:.0f}" for name, rate in each.items() if rate is not None)
    if sum(known) <= upstream:
        return f"{start}, enough for what their own links carry ({cards} MB/s)."
    return f"{start}, less than their own links together ({cards} MB/s): put one behind another root port."


def _told(link: Mapping[str, Any]) -> str:
    return f"{str(link['speed']).replace(' PCIe', '')} x{link['width']}"


def _carries(link: Mapping[str, Any] | None) -> float | None:
    """Bytes per second of a PCIe link and direction, before packets' own overhead; None where it is not known."""
    speed = re.match(r"([0-9.]+) GT/s", str((link or {}).get("speed") or ""))
    width = str((link or {}).get("width") or "")
    lane = _LANE.get(float(speed.group(1))) if speed else None
    return lane * int(width) if lane is not None and is_whole(width) and int(width) > 0 else None
