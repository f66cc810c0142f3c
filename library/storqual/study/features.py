# SPDX-License-Identifier: Apache-2.0
"""A reference chart of the adapters' features: what the bench read of each, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Feature:
    """One feature and what each adapter has; an empty text where the bench does not say."""

    name: str
    values: tuple[str, ...]


def features(bench: Mapping[str, Any], adapters: Sequence[str]) -> list[Feature]:
    """The features of a bench's adapters from run.json: inventory and environment, told by one of them at least."""
    columns = [dict(_of(bench, alias)) for alias in adapters]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [Feature(name, tuple(column.get(name, "") for column in columns)) for name in names]
    return [row for row in rows if any(row.values)]


def _of(bench: Mapping[str, Any], alias: str) -> Iterator[tuple[str, str]]:
    declared: Mapping[str, Any] = (bench.get("adapters") or {}).get(alias) or {}
    before = (bench.get("environment") or {}).get("before") or {}
    found: Mapping[str, Any] = (before.get("adapters") or {}).get(alias) or {}
    module = found.get("module") or {}
    link = found.get("link") or {}
    drives: Mapping[str, Mapping[str, Any]] = found.get("drives") or {}
    yield "Model", str(declared.get("model") or "")
    yield "Board", str(found.get("board") or "")
    yield "Subsystem", str(found.get("subsystem") or "").strip(":")
    yield "Driver", " ".join(filter(None, [str(found.get("driver") or declared.get("driver") or ""), _text(module)]))
    yield "Firmware", str(found.get("firmware") or "")
    yield "PCI link", _link(link)
    yield "Ports with drives", str(len({drive.get("port") or 0 for drive in declared.get("drives") or ()}) or "")
    yield "Drives", str(len(declared.get("drives") or ()) or "")
    yield "Queue depth per drive", _several(drive.get("queue_depth") for drive in drives.values())
    yield "Requests per hardware queue", _several(drive.get("nr_requests") for drive in drives.values())
    yield "Drive write cache", _several(drive.get("write_cache") for drive in drives.values())
    yield "Configured by", str(declared.get("tool") or "")


def _text(module: Mapping[str, Any]) -> str:
    return str(module.get("version") or "")


def _link(link: Mapping[str, Any]) -> str:
    speed, width = str(link.get("speed") or ""), str(link.get("width") or "")
    return f"{speed} x{width}" if speed and width else ""


def _several(values: Iterable[object]) -> str:
    return " or ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))


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
