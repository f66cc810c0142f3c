# SPDX-License-Identifier: Apache-2.0
"""What lsiutil shows of one port: its settings with delays and mappings, the devices behind it, the power page.

`-i -s` prints sections with an underlined title; devices and the disks hidden behind volumes stand in tables whose
columns follow their heading. The power page (IO unit page 7, menu 25) is a list of names and hexadecimal numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping

from ...host.identity import printed_wwn
from ...kit.errors import ToolError
from ...kit.labelled_text import Fields, read_line
from ..capabilities import DriveFacts

_UNDERLINE = re.compile(r"^\s*-{5,}\s*$")
_DEVICES = re.compile(r"^\s*B___T(?P<lun>___L)?\s+(?P<kind>Type|Device)\s+Vendor\s+Product\s+Rev\b", re.IGNORECASE)
_PLACE = re.compile(r"^\s*(?P<bus>\d+)\s+(?P<target>\d+)(?:\s+(?P<lun>\d+))?\s")
_HIDDEN = re.compile(r"^\s*Hidden RAID Devices", re.IGNORECASE)
_NO_MAPPINGS = re.compile(r"^\s*No persistent entries found", re.IGNORECASE)
_NUMBER = re.compile(r"^(?:0x[0-9a-f]{1,16}|\d{1,10})\b", re.IGNORECASE)
_UNITS = {1: "Fahrenheit", 2: "Celsius"}
_COLUMNS = ("Vendor", "Product", "Rev")
_TAIL = re.compile(r"^(?P<revision>.{0,5}?)(?:\s+(?P<name>[0-9a-f]{16}))?(?:\s+(?P<phy>\d{1,3}))?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Display:
    """One port: settings as printed, persistent mappings as printed, devices; a hidden disk's state says so."""

    settings: Mapping[str, str] = field(default_factory=dict)
    mappings: tuple[str, ...] = ()
    drives: tuple[DriveFacts, ...] = ()


def parse_display(text: str) -> Display:
    """`-i -s` of one port.

    Raises ToolError when it shows neither settings nor devices, or a row of a table that is not understood.
    """
    lines = text.splitlines()
    settings = Fields()
    mappings: list[str] = []
    drives: list[DriveFacts] = []
    section = heading = ""
    shown = hidden = False
    for number, raw in enumerate(lines):
        line = read_line(raw)
        if line is None or _UNDERLINE.match(raw):
            continue
        if number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]):
            section, heading = line.text.lower(), ""
            shown = shown or section in ("firmware settings", "persistent mappings")
        elif _HIDDEN.match(raw):
            hidden = True
        elif _DEVICES.match(raw):
            heading, section, shown = raw, "devices", True
        elif section == "devices":
            drives.append(_device(raw, heading, hidden=hidden))
        elif section == "persistent mappings" and not _NO_MAPPINGS.match(raw):
            mappings.append(line.text)
        elif section == "firmware settings" and line.labelled:
            settings.add(line.label, line.value)
    if not shown:
        raise ToolError("lsiutil shows neither settings nor devices: this is not an answer to -i -s")
    return Display(settings.printed(), tuple(mappings), tuple(drives))


def _device(row: str, heading: str, *, hidden: bool) -> DriveFacts:
    """A row of a table of devices, its columns by the heading. Raises ToolError when it has no place."""
    place = _PLACE.match(row)
    if place is None:
        raise ToolError(f"lsiutil lists a device that is not understood: {row.strip()[:100]!r}")
    starts = [heading.lower().find(name.lower()) for name in _COLUMNS]
    # the name stands to the left of its heading
    tail = _TAIL.match(row[starts[2] :])
    if tail is None:
        raise ToolError(f"lsiutil lists a device that is not understood: {row.strip()[:100]!r}")
    kind, vendor = row[place.end() - 1 : starts[0]].strip(), row[starts[0] : starts[1]].strip()
    told = {"SASAddress": tail.group("name"), "PhyNum": tail.group("phy")}
    return DriveFacts(
        position=":".join(part for part in place.groups() if part is not None),
        # a SATA drive has the address that its expander or its adapter gives to the place
        wwn=printed_wwn(tail.group("name") or "") if vendor != "ATA" else "",
        vendor=vendor,
        model=row[starts[1] : starts[2]].strip(),
        revision=tail.group("revision").strip(),
        state="hidden" if hidden else "",
        media=kind,
        settings={name: value for name, value in told.items() if value},
    )


def parse_power(text: str) -> dict[str, str]:
    """The power page, names as printed; a temperature with a unit also as `IOC temperature` in words.

    Raises ToolError when the text has no such page.
    """
    fields = Fields()
    for raw in text.splitlines():
        line = read_line(raw)
        if line is not None and line.labelled and _NUMBER.match(line.value):
            fields.add(line.label, line.value)
    if not any(label in fields for label in ("IOCTemperature", "CurrentPowerMode", "PowerManagementCapabilities")):
        raise ToolError("lsiutil shows no power page")
    found = fields.printed()
    for name in ("IOC", "Board"):
        value, unit = fields.get(f"{name}Temperature"), fields.get(f"{name}TemperatureUnits")
        if value and unit and int(unit.split()[0], 0) in _UNITS:
            found[f"{name} temperature"] = f"{int(value.split()[0], 0)} {_UNITS[int(unit.split()[0], 0)]}"
    return found
