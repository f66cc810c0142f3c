# SPDX-License-Identifier: Apache-2.0
"""Slot and port placement from what slots and links carry: how many ports a slot feeds, links below their best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["placement_advice"]

_MB = 1_000_000


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
            yield f"{carries}: not one port runs at full rate here; a faster slot may give {link / slot:.1f} times."
    lane = found.get("link") or {}
    for what, name in (("speed", "speed"), ("width", "width")):
        now, best = str(lane.get(name) or ""), str(lane.get(f"{name}_max") or "")
        if now and best and now != best:
            yield f"{alias}: its PCI link runs at {what} {now}, the card can {best}: another slot may give more."
