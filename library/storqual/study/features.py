# SPDX-License-Identifier: Apache-2.0
"""A chart of the adapters' features: as the bench reads them, else as the inventory declares, else `not known`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Feature:
    """One feature and what each adapter has, in words; `NOT_KNOWN` where nobody says."""

    name: str
    values: tuple[str, ...]


def features(bench: Mapping[str, Any], adapters: Sequence[str]) -> list[Feature]:
    """The features of a bench's adapters from run.json: what the bench read, else what the inventory declares."""
    columns = [dict(_of(bench, alias)) for alias in adapters]
    names = dict.fromkeys(name for column in columns for name in column)
    return [Feature(name, tuple(column.get(name) or NOT_KNOWN for column in columns)) for name in names]


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
    yield "Commands per adapter", _several(found.get("can_queue") or ())
    yield "Configured by", str(declared.get("tool") or "")
    yield from _boot(declared.get("boot") or {}, found)


def _boot(declared: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Boot code (BIOS) and what it offers. A ROM says that there may be such code, not what it can do."""
    rom = "" if found.get("rom") is None else "a ROM, its version not known" if found["rom"] else "no ROM on the card"
    bios = str(found.get("boot_code") or "") or _declared(declared.get("bios"))
    cdroms, cdrom = found.get("cdroms"), declared.get("cdrom")
    yield "BIOS", bios or rom
    yield "BIOS options", _declared(", ".join(declared.get("options") or ()))
    yield "Boot from CD-ROM", "" if cdrom is None else _declared("yes" if cdrom else "no")
    yield "CD-ROM drives", "" if cdroms is None else str(cdroms or "none")
    yield "Boot from drives", _declared(declared.get("drives"))


def _declared(text: object) -> str:
    """What the inventory says, and that it is the inventory that says it."""
    return f"{text} (inventory)" if text else ""


def _text(module: Mapping[str, Any]) -> str:
    return str(module.get("version") or "")


def _link(link: Mapping[str, Any]) -> str:
    speed, width = str(link.get("speed") or ""), str(link.get("width") or "")
    return f"{speed} x{width}" if speed and width else ""


def _several(values: Iterable[object]) -> str:
    return " or ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))
