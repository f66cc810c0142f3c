# SPDX-License-Identifier: Apache-2.0
"""dmidecode: what the firmware says of the machine; here for the slots, which are printed on the sheet metal.

The text is records: `Handle …, DMI type N, M bytes`, a title, indented `Key: value` lines, and further indented
lists. Every record is kept, known type or not. Dates and serials are the vendor's text and may be odd. Releases
before 2.7 print the handle on a line of its own and everything below it one level further in; 2.0 says `Slot` and
`Status` for `Designation` and `Current Usage`, with a dot behind the state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Iterator, Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK

_HANDLE = re.compile(r"^Handle (0x[0-9A-Fa-f]+), DMI type (\d{1,3}), (\d{1,6}) bytes\.?\s*$")
_OLD_HANDLE = re.compile(r"^\s*(Handle 0x[0-9A-Fa-f]+)\s*$")
_OLD_TYPE = re.compile(r"^(\s+)(DMI type \d{1,3}, \d{1,6} bytes\.?)\s*$")
_PRESENT = re.compile(r"^SMBIOS [0-9.]+ present", re.MULTILINE)
_COUNT = re.compile(r"^\s*(\d{1,6}) structures occupying ")
_SLOT_TYPE = 9
_NO_SLOT = ("ff:1f.7", "0000:00:00.0")
_BUS_ADDRESS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\Z")


@dataclass(frozen=True)
class DmiRecord:
    """One structure: values by key, lists (characteristics, strings) by the key that opens them, and other lines.

    A list whose key tells how many it has is under both; `unread` is why it is not whole.
    """

    handle: str
    kind: int
    title: str
    values: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    unread: str = ""


@dataclass(frozen=True)
class Slot:
    """A slot: its label, what fits, whether something is in it, and the PCI address where it says so."""

    designation: str
    kind: str
    usage: str
    pci: str


def parse_records(text: str) -> tuple[tuple[DmiRecord, ...], tuple[str, ...]]:
    """Every record, and the lines before the first one. Raises ToolError when there is no record at all."""
    notes: list[str] = []
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line in _with_whole_handles(dedent(text.lstrip(BYTE_ORDER_MARK)).splitlines()):
        handle = _HANDLE.match(line)
        if handle:
            blocks.append((handle, []))
        elif line.strip():
            (blocks[-1][1] if blocks else notes).append(line.rstrip())
    counted = next((match for match in map(_COUNT.match, notes) if match), None)
    if counted and int(counted.group(1)) != len(blocks):
        raise ToolError(
            f"dmidecode reports {counted.group(1)} structures and shows {len(blocks)}: the answer is not whole"
        )
    if not blocks:
        note = notes[-1].strip()[:200] if notes else "nothing"
        raise ToolError(f"dmidecode shows no record of the machine's firmware: {note}")
    return tuple(_record(handle, lines) for handle, lines in blocks), tuple(notes)


def _with_whole_handles(lines: list[str]) -> Iterator[str]:
    """The lines as releases since 2.7 print them."""
    indent = handle = ""
    for line in lines:
        old, kind = _OLD_HANDLE.match(line), _OLD_TYPE.match(line)
        if handle and kind:
            indent = kind.group(1)
            yield f"{handle}, {kind.group(2)}"
        elif not old:
            yield line[len(indent) :] if indent and line.startswith(indent) else line
        handle = old.group(1) if old else ""


def _record(handle: re.Match[str], lines: list[str]) -> DmiRecord:
    values: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    others: list[str] = []
    title, opened, last = "", "", ""
    # a tab a level; where tabs were copied as blanks, the first key tells how deep a level is
    level = next((depth for line in lines if (depth := len(line) - len(line.lstrip()))), 1)
    for line in lines:
        depth = -(-(len(line) - len(line.lstrip())) // level)
        key, colon, value = (part.strip() for part in line.partition(":"))
        if depth == 0 and not title:
            title = line.strip()
        elif depth >= 2 and opened:
            lists[opened].append(line.strip())
        elif depth >= 2 and last.endswith("s") and values[last].isdecimal():
            # a list of so many
            lists.setdefault(last, []).append(line.strip())
        elif depth >= 2 and last:
            # a value that was wrapped
            values[last] = f"{values[last]} {line.strip().lstrip(': ')}"
        elif depth >= 1 and colon and key not in values and key not in lists:
            opened, last = ("", key) if value else (key, "")
            if value:
                values[key] = value
            else:
                lists[key] = []
        else:
            others.append(line.strip())
    short = [key for key, listed in lists.items() if len(listed) < int(values.get(key, "0")[:9])]
    return DmiRecord(
        handle.group(1),
        int(handle.group(2)),
        title,
        values,
        {k: tuple(v) for k, v in lists.items()},
        tuple(others),
        f"{title} lists fewer than it says: {', '.join(short)}" if short else "",
    )


def slots(records: tuple[DmiRecord, ...]) -> tuple[Slot, ...]:
    """The slots among the records; an address that can be no slot's is left out.

    It is no PCI address (`ff:1f.7` for an empty slot), the host bridge's, or the same for several slots.
    """
    listed = [record for record in records if record.kind == _SLOT_TYPE]
    addresses = [record.values.get("Bus Address", "") for record in listed]
    places = []
    for record, address in zip(listed, addresses):
        usable = (
            _BUS_ADDRESS.match(address) and not address.lower().endswith(_NO_SLOT) and addresses.count(address) == 1
        )
        places.append(
            Slot(
                record.values.get("Designation") or record.values.get("Slot", ""),
                record.values.get("Type", ""),
                record.values.get("Current Usage") or record.values.get("Status", "").rstrip("."),
                address.lower() if usable else "",
            )
        )
    return tuple(places)


def read_slots(runner: Runner) -> tuple[Slot, ...]:
    """The machine's slots; none where its firmware tells of none. Raises ToolError."""
    ended = runner(["dmidecode", "-t", "slot"], timeout=60.0).expect()
    if "Handle" not in ended.stdout and _PRESENT.search(ended.stdout):
        return ()
    return slots(parse_records(ended.stdout)[0])
