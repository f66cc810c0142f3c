# SPDX-License-Identifier: Apache-2.0
"""LSI's lsiutil (1.62 to 1.72): boards, firmware, settings, and words of configuration pages in NVRAM.

`-i -s` prints sections with an underlined title; devices and the disks hidden behind volumes stand in tables whose
columns follow their heading. The power page (IO unit page 7, menu 25) is a list of names and hexadecimal numbers.

The port table, `-b`, `-i -s` and the dialogue that changes one word of a page are read as recorded; its keys
are `-a 9,TYPE,NUMBER,0,y,OFFSET,VALUE,,y,,0`. Interrupt coalescing is IO controller page 1, whose layout is
that of the kernel's drivers/message/fusion/lsi/mpi_cnfg.h and drivers/scsi/mpt3sas/mpi/mpi2_cnfg.h. A word is
written only after the page was read and the old word is the one that the settings show. The SATA queue depth
lies in an extended page whose dialogue was never recorded: it is read and not written. The same holds for its
dialogue that downloads firmware: versions are read as recorded, and no download is offered. An adapter's index is
the port number; `-b` prints PCI buses in decimal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping, Sequence

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError
from ..kit.labelled_text import Fields, labelled, read_line
from ..kit.machine import visible
from .capabilities import AdapterFacts, DriveFacts, Spelling, ToolFacts, Value, all_but_odd

_UNDERLINE = re.compile(r"^\s*-{5,}\s*$")
_DEVICES = re.compile(r"^\s*B___T(?P<lun>___L)?\s+(?P<kind>Type|Device)\s+Vendor\s+Product\s+Rev\b", re.IGNORECASE)
_BUS_TARGET = re.compile(r"^\s*(?P<bus>\d+)\s+(?P<target>\d+)(?:\s+(?P<lun>\d+))?\s")
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
    mappings: list[str] = []
    drives: list[DriveFacts] = []
    settings: list[str] = []
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
        elif section == "firmware settings":
            settings.append(raw)
    if not shown:
        raise ToolError("lsiutil shows neither settings nor devices: this is not an answer to -i -s")
    return Display(labelled(settings)[0], tuple(mappings), all_but_odd(drives))


def _device(row: str, heading: str, *, hidden: bool) -> DriveFacts:
    """A row of a table of devices, its columns by the heading; one that has no place is told as unread."""
    place = _BUS_TARGET.match(row)
    starts = [heading.lower().find(name.lower()) for name in _COLUMNS]
    # the name stands to the left of its heading
    tail = _TAIL.match(row[starts[2] :])
    if place is None or tail is None:
        odd = f"lsiutil lists a device that is not understood: {row.strip()[:100]!r}"
        return DriveFacts(":".join(row.split()[:2])[:40], unread=odd)
    kind, vendor = row[place.end() - 1 : starts[0]].strip(), row[starts[0] : starts[1]].strip()
    fields = {"SASAddress": tail.group("name"), "PhyNum": tail.group("phy")}
    return DriveFacts(
        position=":".join(part for part in place.groups() if part is not None),
        # a SATA drive has the address that its expander or its adapter gives to the place
        wwn=printed_wwn(tail.group("name") or "") if vendor != "ATA" else "",
        vendor=vendor,
        model=row[starts[1] : starts[2]].strip(),
        revision=tail.group("revision").strip(),
        state="hidden" if hidden else "",
        media=kind,
        settings={name: value for name, value in fields.items() if value},
    )


def parse_power(text: str) -> dict[str, str]:
    """The power page, names as printed; a temperature with a unit also as `IOC temperature` in words.

    Raises ToolError when the text has no such page.
    """
    values = labelled(text.splitlines())[0]
    fields = Fields({label: value for label, value in values.items() if _NUMBER.match(value)})
    if not any(label in fields for label in ("IOCTemperature", "CurrentPowerMode", "PowerManagementCapabilities")):
        raise ToolError("lsiutil shows no power page")
    page = fields.printed()
    for name in ("IOC", "Board"):
        value, unit = fields.get(f"{name}Temperature"), fields.get(f"{name}TemperatureUnits")
        # a sensor that is not there reads 0
        if value and unit and int(unit.split()[0], 0) in _UNITS and int(value.split()[0], 0):
            page[f"{name} temperature"] = f"{int(value.split()[0], 0)} {_UNITS[int(unit.split()[0], 0)]}"
    return page


PROGRAMS = ("lsiutil", "lsiutil.x86_64", "lsiutil.i686")
_TIMEOUT = 120.0

SETTINGS: Mapping[str, Spelling] = {
    "interrupt_coalescing_timeout": Spelling("page 1/1, word 0008", "page dialogue", "recorded"),
    "interrupt_coalescing_depth": Spelling("page 1/1, word 000c, low byte", "page dialogue", "recorded"),
    "sata_queue_depth": Spelling("-i -s: SATA Maximum Queue Depth", "(not written)", "recorded"),
}
"""What it keeps by canonical name; the dialogue is recorded, on another page."""

_COALESCING_PAGE = (1, 1)
_FLAGS, _ENABLED = 0x04, 0x01
_PLACES = {"interrupt_coalescing_timeout": (0x08, 0xFFFFFFFF), "interrupt_coalescing_depth": (0x0C, 0xFF)}

# the name may hold single blanks (`Scsi Port 0`)
_PORT = re.compile(r"^\s*(\d+)\.\s+(\S+(?: \S+)*)\s{2,}(\S.*?)\s{2,}([0-9a-f]+)\s+([0-9a-f]{8})\s+(\d+)\s*$")
# releases before 1.63 print each port as a line of its own, with its board below
_OLD_PORT = re.compile(r"^\s*/proc/mpt/(\S+)\s+(\S.*?)\sMPT (\d+)\s+Firmware ([0-9a-f]{8})\s+IOC \d+\s*$")
_OLD_BOARD = re.compile(r"^\s*([0-9]{1,5})\s+([0-9]{1,5})\s+([0-9]{1,5})\s+([0-9]{1,5})\s{2,}(\S.*?)\s*$")
_KNOWN = re.compile(r"^\s*(?:LSI Logic MPT Configuration Utility|\d+ MPT Ports? found|Port Name\b|Select a device)")
_COUNTED = re.compile(r"^\s*([0-9]{1,9}) MPT Ports? found", re.MULTILINE)
_WORD = re.compile(r"^\s*([0-9a-fA-F]{4}) : ([0-9a-fA-F]{8})\s*$")
_COALESCING = re.compile(
    r"^\s*Interrupt Coalescing:\s+(?:Enabled, timeout is ([0-9]{1,9}) us, depth is ([0-9]{1,9})\b|Disabled)", re.M
)
_PLACE = re.compile("[0-9]{1,5}")
_SATA_DEPTH = re.compile(r"^\s*SATA Maximum Queue Depth:\s+([0-9]{1,9})\b", re.MULTILINE)
_SETTINGS_TITLE = re.compile(r"^\s*Firmware Settings\s*\n\s*-{5,}\s*$", re.MULTILINE)
_ACTIVE = re.compile(r"active firmware version is ([0-9a-f]{8})")
_IMAGE = re.compile(r"^\s*(Firmware|x86 BIOS|EFI BIOS|FCode) image's version is (\S+)", re.MULTILINE)
_FAILED = re.compile(r"^\s*(?:ERROR|Error|Failed|Unable|Couldn't)\b.*$", re.MULTILINE)
_WRITTEN = "Changes have been written"
_COMPONENTS = {"Firmware": "firmware.image", "x86 BIOS": "bios", "EFI BIOS": "efi", "FCode": "fcode"}


@dataclass(frozen=True)
class Port:
    """One line of the port table: number, kernel's name, chip, MPT revision, firmware in hexadecimal."""

    number: str
    name: str
    chip: str
    mpt: str
    firmware: str

    @property
    def version(self) -> str:
        """`20.00.07.00` of `14000700`: the bytes in decimal."""
        return ".".join(f"{int(self.firmware[place : place + 2], 16):02d}" for place in range(0, 8, 2))


def parse_ports(text: str) -> tuple[Port, ...]:
    """The port table, which stands in front of most outputs; each port once.

    Raises ToolError when it lists another number of ports than it says, and when there is no table.
    """
    ports: dict[str, Port] = {}
    for line in text.splitlines():
        match = _PORT.match(line)
        old = _OLD_PORT.match(line)
        if match:
            number, name, chip, mpt, firmware, _ = match.groups()
            ports.setdefault(number, Port(number, name, " ".join(chip.split()), mpt, firmware))
        elif old:
            # the number is not printed; ports are counted from 1 in this order
            name, chip, mpt, firmware = old.groups()
            number = str(len(ports) + 1)
            ports[number] = Port(number, name, " ".join(chip.split()), mpt, firmware)
    counted = _COUNTED.search(text)
    if int(counted.group(1)) != len(ports) if counted else not ports:
        claim = f"says that it found {counted.group(1)} ports" if counted else "does not say how many ports it found"
        raise ToolError(f"lsiutil {claim} and lists {len(ports)}")
    return tuple(ports.values())


def parse_notes(text: str) -> tuple[str, ...]:
    """Lines of a port table that are neither ports nor headings, kept as they are."""
    return tuple(
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not any(known.match(line) for known in (_KNOWN, _PORT, _OLD_PORT))
    )


def parse_boards(text: str) -> dict[str, tuple[str, str, str]]:
    """`-b`: by kernel's name (`ioc0`) the PCI address, board name and tracer (serial number).

    Columns are two blanks or more apart, because a board's name may hold single ones. A row that is not understood is
    left out. Raises ToolError when it lists none.
    """
    boards: dict[str, tuple[str, str, str]] = {}
    odd: list[str] = []
    heading = False
    port = ""
    for line in text.splitlines():
        if "Board Name" in line and "Seg/Bus/Dev" in line:
            heading = line.lstrip().startswith("Port Name")
            continue
        old_port, old_board = _OLD_PORT.match(line), _OLD_BOARD.match(line)
        if old_port:
            port = old_port.group(1)
        elif port and old_board:
            segment, bus, device, function = map(int, old_board.groups()[:4])
            names = re.split(r"\s{2,}", old_board.group(5))
            boards[port] = (
                f"{segment:04x}:{bus:02x}:{device:02x}.{function:x}",
                names[0],
                names[2] if names[2:] else "",
            )
            port = ""
        columns = re.split(r"\s{2,}", line.strip())
        if not heading or not line.strip():
            continue
        if len(columns) < 4 or not all(map(_PLACE.fullmatch, columns[1:4])):
            odd.append(line.strip()[:100])
            continue
        segment, bus, device = map(int, columns[1:4])
        tracer = columns[6] if len(columns) > 6 else ""
        boards[columns[0]] = (f"{segment:04x}:{bus:02x}:{device:02x}.0", "".join(columns[4:5]), tracer)
    if not boards:
        problem = f"a board that is not understood: {odd[0]!r}" if odd else f"no boards: {_message(text)}"
        raise ToolError(f"lsiutil lists {problem}")
    return boards


def parse_versions(text: str) -> dict[str, str]:
    """Menu 1 (or `-i`): the running firmware and the images in flash, by component.

    Raises ToolError when it does not tell the running firmware.
    """
    active = _ACTIVE.search(text)
    if active is None:
        raise ToolError(f"lsiutil shows no firmware version: {_message(text)}")
    versions = {"firmware": Port("", "", "", "", active.group(1)).version}
    for kind, version in _IMAGE.findall(text):
        versions.setdefault(_COMPONENTS[kind], version.rpartition("-")[2] if kind != "Firmware" else version)
    return versions


def parse_settings(text: str) -> dict[str, Value]:
    """`-i -s`: the settings that it prints, by canonical name; disabled coalescing is a depth of 1 after 0 us.

    Raises ToolError when it shows no settings at all.
    """
    settings: dict[str, Value] = {}
    coalescing, depth = _COALESCING.search(text), _SATA_DEPTH.search(text)
    if coalescing:
        settings["interrupt_coalescing_timeout"] = int(coalescing.group(1) or 0)
        settings["interrupt_coalescing_depth"] = int(coalescing.group(2) or 1)
    if depth:
        settings["sata_queue_depth"] = int(depth.group(1))
    if not settings and not _SETTINGS_TITLE.search(text):
        raise ToolError(f"lsiutil shows no settings: {_message(text)}")
    return settings


def parse_page(text: str) -> dict[int, int]:
    """The words of a configuration page by offset. Raises ToolError when the text shows none."""
    words = {
        int(match.group(1), 16): int(match.group(2), 16) for match in map(_WORD.match, text.splitlines()) if match
    }
    if not words:
        raise ToolError(f"lsiutil shows no configuration page: {_message(text)}")
    return words


def _message(text: str) -> str:
    failure = _FAILED.search(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return visible(failure.group(0).strip() if failure else lines[-1] if lines else "no message")[:200]


def _run(runner: Runner, *words: str) -> Completed:
    ended = run_first(runner, PROGRAMS, words, timeout=_TIMEOUT)
    if "No such port" in ended.stdout:
        raise ToolError(f"`{ended.line}`: {_message(ended.stdout)}")
    return ended


def _keys(index: str, keys: Sequence[str]) -> list[str]:
    """A dialogue as arguments: the keys by commas, and nothing that a person would have to answer."""
    return [f"-p{index}", "-a", ",".join(keys)]


def read_facts(runner: Runner) -> ToolFacts:
    """All ports, with board and PCI address. Raises ToolError."""
    table = _run(runner)
    adapters = []
    notes = list(parse_notes(table.stdout))
    boards: Mapping[str, tuple[str, str, str]] = {}
    try:
        boards = parse_boards(_run(runner, "-b").stdout)
    except ToolError as problem:
        notes.append(str(problem))
    for port in parse_ports(table.stdout):
        pci, board, tracer = boards.get(port.name, ("", "", ""))
        notes += (
            [] if port.name in boards or not boards else [f"port {port.number}: -b lists no board of {port.name}"]
        )
        display, power = _looked_at(runner, port.number, notes)
        adapters.append(
            AdapterFacts(
                index=port.number,
                model=board or port.chip,
                vendor="LSI",
                serial=tracer,
                pci=pci,
                firmware={"firmware": port.version},
                settings={"Chip Vendor/Type/Rev": port.chip, "MPT Rev": port.mpt, **_settings(display, power)},
                drives=display.drives,
            )
        )
    return ToolFacts(tuple(adapters), tuple(notes))


def _looked_at(runner: Runner, index: str, notes: list[str]) -> tuple[Display, Mapping[str, str]]:
    """What one port shows, and its power page; what an adapter does not show is a note."""
    display = Display()
    power: Mapping[str, str] = {}
    try:
        display = parse_display(_run(runner, f"-p{index}", "-i", "-s").stdout)
    except ToolError as problem:
        notes.append(f"port {index}: {problem}")
    try:
        power = parse_power(_run(runner, *_keys(index, ["25", "2", "0", "0"])).stdout)
    except ToolError as problem:
        notes.append(f"port {index}: {problem}")
    return display, power


def _settings(display: Display, power: Mapping[str, str]) -> dict[str, str]:
    mappings = {f"Persistent mapping {number}": line for number, line in enumerate(display.mappings)}
    return {**display.settings, **mappings, **{f"Power / {name}": value for name, value in power.items()}}


def read_page(runner: Runner, index: str, kind: int, number: int) -> dict[int, int]:
    """The words of a page as NVRAM keeps it. Raises ToolError."""
    return parse_page(_run(runner, *_keys(index, ["9", str(kind), str(number), "0", "n", "", "0"])).stdout)


def write_word(runner: Runner, index: str, page: tuple[int, int], offset: int, old: int, new: int) -> None:
    """Change one word of a page in NVRAM, if it still is `old`, and read it back. Raises ToolError."""
    has = read_page(runner, index, *page).get(offset)
    where = f"page {page[0]}/{page[1]}, word {offset:04x}"
    if has != old:
        word = "nothing" if has is None else f"{has:08x}"
        raise ToolError(
            f"{where} of lsiutil port {index} holds {word} where {old:08x} was expected: nothing was written"
        )
    keys = ["9", str(page[0]), str(page[1]), "0", "y", f"{offset:04x}", f"{new:08x}", "", "y", "", "0"]
    ended = _run(runner, *_keys(index, keys))
    now = read_page(runner, index, *page).get(offset)
    if _WRITTEN not in ended.stdout or now != new:
        word = "nothing" if now is None else f"{now:08x}"
        raise ToolError(f"`{ended.line}` left {where} at {word} instead of {new:08x}: {_message(ended.stdout)}")


def read_settings(runner: Runner, index: str) -> Mapping[str, Value]:
    """What the adapter keeps by canonical name: coalescing as NVRAM has it, the SATA depth as `-i -s` prints it.

    Raises ToolError.
    """
    page = read_page(runner, index, *_COALESCING_PAGE)
    settings: dict[str, Value] = {
        name: page[offset] & mask for name, (offset, mask) in _PLACES.items() if offset in page
    }
    shown = parse_settings(_run(runner, f"-p{index}", "-i", "-s").stdout)
    if "sata_queue_depth" in shown:
        settings["sata_queue_depth"] = shown["sata_queue_depth"]
    return settings


def objection(runner: Runner, index: str, name: str, value: Value) -> str:
    """Why a value cannot be written; empty when it can. Raises ToolError."""
    if name not in _PLACES:
        return "lsiutil keeps it in an extended page, whose dialogue is not known; set it with menu 13 of the tool"
    page = read_page(runner, index, *_COALESCING_PAGE)
    if not page.get(_FLAGS, 0) & _ENABLED:
        return "interrupt coalescing is disabled on this adapter; enable it with menu 10 of lsiutil first"
    if _PLACES[name][0] not in page or int(value) > _PLACES[name][1]:
        return "the adapter's page 1/1 has no room for it"
    return ""


def write_setting(runner: Runner, index: str, name: str, value: Value) -> None:
    """Write one setting into NVRAM; it counts from the adapter's next reset. Raises ToolError."""
    against = objection(runner, index, name, value)
    if against:
        raise ToolError(against)
    offset, mask = _PLACES[name]
    old = read_page(runner, index, *_COALESCING_PAGE)[offset]
    write_word(runner, index, _COALESCING_PAGE, offset, old, old & ~mask & 0xFFFFFFFF | int(value))


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Versions by component. Raises ToolError when the tool shows none."""
    return parse_versions(_run(runner, *_keys(index, ["1", "0"])).stdout)
