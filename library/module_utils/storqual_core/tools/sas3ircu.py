# SPDX-License-Identifier: Apache-2.0
"""sas3ircu and sas2ircu: integrated RAID of Broadcom SAS2 and SAS3 controllers.

Only `Utility Completed Successfully.` means success. What is known: LIST, DISPLAY, STATUS (recorded), CREATE and
DELETEVOLUME (documented only: their answers were never seen, so their words are looked for in the tool's help first).
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Mapping, Sequence

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner
from ..kit.errors import MissingToolError, ToolError, refuse_for
from ..kit.labelled_text import (
    Fields,
    PrintedLine,
    pci_of,
    plain_label,
    printed_value,
    read_lines,
    size_range,
    whole_number,
)
from .capabilities import (
    AdapterFacts,
    DriveFacts,
    EnclosureFacts,
    ToolFacts,
    VolumeFacts,
    VolumeRequest,
    all_but_odd,
    all_controllers,
    with_tasks,
)

PROGRAMS = ("sas3ircu", "sas2ircu")

_TIMEOUT = 180.0
_DONE = "Utility Completed Successfully."
_NONE = ("MPTLib2 Error 1", "No adapters found")
_NO_VOLUMES = "there are no ir volumes on the controller"
_LISTED = re.compile(
    r"^\s*(?P<index>\d+)\s+\S+\s+[0-9A-Fa-f]+h\s+[0-9A-Fa-f]+h\s+"
    r"(?P<domain>[0-9A-Fa-f]{1,8})h:(?P<bus>[0-9A-Fa-f]{1,4})h:(?P<device>[0-9A-Fa-f]{1,4})h:(?P<function>[0-9A-Fa-f]{1,4})h\s"
)
# each controller of a list has a table of its own
_HEADS = re.compile(r"^\s*(?:Adapter\s+Vendor\b|Index\s+Type\b)", re.IGNORECASE)
_RULE = re.compile(r"^-{8,}$")
_BANNER = re.compile(
    r"^(?:LSI|Avago|Broadcom|Copyright|Version )|^SAS[23]IRCU\s*: |^Read configuration has been", re.I
)
_MEGABYTES = re.compile(r"^(?P<size>[0-9]{1,15})(?:\s*/\s*(?P<sectors>[0-9]{1,18}))?$")
_MEMBER = re.compile(r"^PHY\[(?P<number>\d{1,9})\] Enclosure ?#/ ?Slot ?#$", re.IGNORECASE)
_ROW = re.compile(r"\s*\d{1,4}\s+\S")
_PLACE = re.compile(r"\d*:\d+\Z")
_COUNTS = ("Number of physical disks", "Number of physical hard disks", "Number of drives", "Number of members")
_MISSING = "0:0"
"""Where a member that is missing is said to be, and the next one as well."""
_UNREAD = "(unread)"
_TABLE = re.compile(r"^\s*-{3,}(?:\s+-{3,}){3,}\s*$")
_CODE = re.compile(r"\((?P<code>[A-Z]{2,4})\)")
_DRIVE_LABELS = (
    *("Enclosure #", "Slot #", "GUID", "Manufacturer", "Model Number", "Firmware Revision", "Serial No"),
    *("Unit Serial No(VPD)", "Drive Type"),
)
_VOLUME_LABELS = ("Volume ID", "Volume Name", "Volume wwid", "RAID level", "Size (in MB)")
_PERCENT = re.compile(r"(?<![0-9.])(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%")
_OPERATIONS = {
    "synchronize": "initialise",
    "background init": "initialise",
    "rebuild": "rebuild",
    "verify": "check",
    "consistency check": "check",
    "oce": "reshape",
}
# NAA 6 of LSI's volumes: the maker, zeros, then the volume's own name
_VOLUME_NAA = "600508e000000000"


def parse_list(text: str) -> dict[str, str]:
    """PCI addresses by the controller's number, empty where it is not understood; none when there is no controller.

    Raises ToolError.
    """
    if any(words in text for words in _NONE):
        return {}
    _check(text, "the controllers could not be listed")
    addresses: dict[str, str] = {}
    begun = False
    for line in text.splitlines():
        match, head = _LISTED.match(line), _HEADS.match(line) or _TABLE.match(line)
        if match is not None:
            domain, bus, device, function = (
                int(match.group(part), 16) for part in ("domain", "bus", "device", "function")
            )
            addresses[match.group("index")] = f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
        elif begun and _ROW.match(line):
            # its number is enough to ask it
            addresses[line.split()[0]] = ""
        elif begun and line.strip() and _DONE.lower() not in line.lower() and not head:
            raise ToolError(f"the list of controllers has a line that is not understood: {line.strip()[:120]!r}")
        begun = begun or bool(_TABLE.match(line))
    if not begun or not addresses:
        raise ToolError("this is not a list of controllers: it has no table of them")
    return addresses


def parse_display(text: str, index: str = "sas3ircu 0") -> ToolFacts:
    """What `N DISPLAY` prints of a controller. Raises ToolError when it was not completed, or lacks a part."""
    _check(text, f"controller {index} could not be read")
    section = ""
    sections: list[str] = []
    settings, strange = Fields(), Fields()
    parts: dict[str, list[Fields]] = {"ir": [], "physical": [], "enclosure": []}
    notes: list[str] = []
    for line in read_lines(text, lambda line: bool(_RULE.match(line.text) or _BANNER.match(line.text))):
        if _RULE.match(line.text) or _BANNER.match(line.text):
            continue
        lower = line.text.lower()
        if not line.labelled and lower.endswith(" information"):
            section = lower.partition(" ")[0]
            sections.append(section)
        elif section == "controller" and line.labelled:
            settings.add(line.label, line.value)
        elif _begins(section, line) or (line.labelled and parts.get(section)):
            _take(parts[section], section, line)
        elif line.labelled and section in ("ir", "physical"):
            # what stands in front of the first heading that is known
            parts[section].append(Fields({_UNREAD: f"{index}: {line.label!r} stands under no {section} object"}))
            _take(parts[section], section, line)
        elif line.labelled and section:
            strange.add(f"{section}: {line.label}", line.value)
        elif not lower.startswith("initiator at id"):
            notes.append(line.text)
    missing = [name for name in ("controller", "ir", "physical") if name not in sections]
    if missing or "Controller type" not in settings:
        raise ToolError(
            f"{index}: this is not an answer to DISPLAY: it has no {' and no '.join(missing) or 'controller'}"
        )
    if strange:
        raise ToolError(f"{index}: labels that belong to nothing: {', '.join(strange)[:200]}")
    services = [fields for fields in parts["physical"] if _is_no_disk(fields)]
    drives = [_drive(fields, index) for fields in parts["physical"] if fields not in services]
    adapter = AdapterFacts(
        index=index,
        model=settings.get("Controller type"),
        pci=pci_of(settings, "Bus", "Device", "Function", "Segment"),
        firmware={
            name: settings.get(label)
            for label, name in (("Firmware version", "firmware"), ("BIOS version", "bios"))
            if label in settings
        },
        settings={**settings.printed(), **_around([*parts["enclosure"], *services])},
        drives=all_but_odd(drives, parts["ir"]),
        volumes=all_but_odd([_volume(fields, drives) for fields in parts["ir"]], drives),
        enclosures=tuple(_enclosure(each, services) for each in parts["enclosure"]),
    )
    return ToolFacts((adapter,), tuple(notes))


def _take(objects: list[Fields], section: str, line: PrintedLine) -> None:
    """A line of a section of volumes, devices or enclosures: it begins one, or tells of the last."""
    enclosure = section == "enclosure"
    # one whose number stands under another label begins where a label comes again, and has its number behind others
    goes_on = enclosure and bool(objects) and "Enclosure#" not in objects[-1]
    if (_begins(section, line) and not goes_on) or (enclosure and line.label in objects[-1]):
        objects.append(Fields() if line.labelled else Fields({"": line.text}))
    elif line.label in objects[-1]:
        objects[-1].add(_UNREAD, f"{line.label!r} comes twice where one {section} object was begun")
    if line.labelled:
        objects[-1].add(line.label, line.value)


def _begins(section: str, line: PrintedLine) -> bool:
    """Whether a line is the first of a volume, a device or an enclosure."""
    lower = line.text.lower()
    return (
        (section == "ir" and not line.labelled and lower.startswith("ir volume "))
        or (section == "physical" and not line.labelled and lower.startswith("device is a"))
        or (section == "enclosure" and plain_label(line.label) == "enclosure")
    )


def parse_status(text: str) -> dict[str, dict[str, float]]:
    """Percent by task by volume id, of `N STATUS`; a controller without volumes has none. Raises ToolError."""
    if _NO_VOLUMES in " ".join(text.lower().split()):
        return {}
    _check(text, "what is under way could not be read")
    volumes: list[Fields] = []
    for line in read_lines(text):
        if re.match(r"IR volume \w+$", line.text, re.IGNORECASE):
            volumes.append(Fields())
        elif line.labelled and volumes:
            volumes[-1].add(line.label, line.value)
    percents: dict[str, dict[str, float]] = {}
    for volume in volumes:
        name, operation = volume.get("Volume ID"), volume.get("Current operation")
        if not name or not operation:
            raise ToolError("this is not an answer to STATUS: a volume has no id, or no current operation")
        if operation.lower() != "none":
            percent = _PERCENT.search(volume.get("Percentage complete"))
            task = _OPERATIONS.get(operation.lower(), operation)
            # a mirror that is synchronised anew has no second copy, one that was just made has two of nothing
            if operation.lower() == "synchronize" and volume.get("Volume state").lower() == "degraded":
                task = "rebuild"
            percents[name] = {task: float(percent.group("percent")) if percent else 0.0}
    if not volumes:
        raise ToolError("this is not an answer to STATUS: it names no volume, and does not say that there is none")
    return percents


def _check(text: str, what: str, command: str = "") -> None:
    if _DONE.lower() not in " ".join(text.lower().split()):
        lines = [
            line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("LSI", "Version"))
        ]
        tail = " ".join(lines[-2:])[:300] or "nothing"
        raise ToolError(f"{what}: it did not say `{_DONE}` but {tail}" + (f"; command: {command}" if command else ""))


def _code(text: str) -> str:
    """`Ready (RDY)` without the words that a release may change."""
    match = _CODE.search(text)
    return match.group("code") if match else text


def _is_no_disk(fields: Fields) -> bool:
    """Enclosure services, and a backplane that is called an unknown device: what is no disk stands by."""
    kind = fields.get("").lower()
    return "enclosure services" in kind or ("disk" not in kind and _code(fields.get("State")) == "SBY")


def _drive(fields: Fields, index: str) -> DriveFacts:
    place = fields.get("Enclosure #"), fields.get("Slot #")
    unread = fields.get(_UNREAD)
    if not all(place):
        unread = unread or f"{index}: a drive is listed without its enclosure or slot"
    size, sizes = _capacity(fields.get("Size (in MB)/(in sectors)"))
    serials = [printed_value(fields.get(label)) for label in ("Unit Serial No(VPD)", "Serial No")]
    others = fields.without("", _UNREAD, *_DRIVE_LABELS).values()
    if not serials[0] and serials[1] and any(value.startswith(serials[1]) for value in others):
        unread = unread or (
            f"{index}: a drive reports two serial numbers, one of them under a label that is not known"
        )
    return DriveFacts(
        position=":".join(place),
        wwn=printed_wwn(fields.get("GUID")),
        serial=next((serial for serial in serials if serial), ""),
        vendor=printed_value(fields.get("Manufacturer")),
        model=printed_value(fields.get("Model Number")),
        revision=printed_value(fields.get("Firmware Revision")),
        size=size,
        size_range=sizes,
        state=_code(fields.get("State")),
        media=printed_value(fields.get("Drive Type")),
        settings=fields.without("", _UNREAD, *_DRIVE_LABELS),
        unread=unread,
    )


def _around(enclosures: Sequence[Fields]) -> dict[str, str]:
    """What is told of enclosures and of their services devices and has no field of its own."""
    settings = Fields()
    for fields in enclosures:
        for label, value in fields.without("", _UNREAD, "Enclosure#", "Numslots").items():
            settings.add(f"enclosure {fields.get('Enclosure#')}: {label}", value)
    return settings.printed()


def _enclosure(fields: Fields, services: Sequence[Fields]) -> EnclosureFacts:
    number = fields.get("Enclosure#")
    device = next((each for each in services if each.get("Enclosure #") == number), Fields())
    return EnclosureFacts(
        position=number,
        vendor=printed_value(device.get("Manufacturer")),
        model=printed_value(device.get("Model Number")),
        slots=whole_number(fields.get("Numslots")),
        state=_code(device.get("State")),
    )


def _capacity(text: str) -> tuple[int | None, tuple[int, int] | None]:
    """The exact size, or what the megabytes can mean; `953869/1953525167` are full megabytes and the last block.

    Blocks have 512 or 4096 bytes, which only the megabytes tell.
    """
    match = _MEGABYTES.match(text)
    if match is None or not int(match.group("size")):
        return None, None
    megabytes, last = int(match.group("size")), int(match.group("sectors") or 0)
    for block in (512, 4096):
        if last and (last + 1) * block >> 20 == megabytes:
            return (last + 1) * block, None
    return megabytes << 20, size_range(f"{megabytes} MB", base=1024)


def _volume(fields: Fields, drives: Sequence[DriveFacts]) -> VolumeFacts:
    printed = fields.get("Status of volume")
    # `Inactive, Okay (OKY)`: whole, and not shown to the host
    state = f"inactive, {_code(printed)}" if printed.lower().startswith("inactive,") else _code(printed)
    size = _MEGABYTES.match(fields.get("Size (in MB)"))
    members = [fields.printed()[label].replace(" ", "") for label in fields if _MEMBER.match(label)]
    lost = {drive.position for drive in drives if drive.state in ("MIS", "FLD")}
    unread = fields.get(_UNREAD) or _miscounted(fields, members)
    if not fields.get("Volume ID"):
        unread = unread or f"a volume ({fields.get('')}) is listed without its id"
    return VolumeFacts(
        id=fields.get("Volume ID") or fields.get(""),
        name=fields.get("Volume Name"),
        wwn=_volume_wwn(fields.get("Volume wwid")),
        level=re.sub("raid", "", fields.get("RAID level"), flags=re.IGNORECASE).strip(),
        state=state,
        size=int(size.group("size")) << 20 if size else None,
        size_range=size_range(f"{size.group('size')} MB", base=1024) if size else None,
        strip=None,
        members=tuple(members),
        failed=tuple(member for member in members if member in lost),
        healthy=None if unread or not printed_value(state) else state == "OKY",
        settings={
            name: value
            for name, value in fields.without("", _UNREAD, *_VOLUME_LABELS).items()
            if not _MEMBER.match(name)
        },
        unread=unread,
    )


def _miscounted(fields: Fields, members: Sequence[str]) -> str:
    """Why the members that are listed are not all, by their numbers or a count beside them; empty when they are."""
    numbers = [int(match.group("number")) for match in map(_MEMBER.match, fields) if match]
    count = whole_number(fields.get(*_COUNTS))
    if numbers != list(range(len(numbers))) or count not in (None, len(members)):
        return f"{fields.get('')} lists the members {numbers} of {len(numbers) if count is None else count}"
    placed = [member for member in members if member != _MISSING]
    if len(set(placed)) != len(placed) or not all(map(_PLACE.match, members)):
        return f"{fields.get('')} lists members that are not understood: {', '.join(members)[:120]}"
    return ""


def _volume_wwn(printed: str) -> str:
    """The name that the host knows a volume by: the tool prints its last eight bytes from back to front."""
    own = printed_wwn(printed)[len("0x") :]
    return printed_wwn(_VOLUME_NAA + bytes.fromhex(own)[::-1].hex()) if len(own) == 16 else ""


def _ask(runner: Runner, index: str, *words: str) -> Completed:
    """Ask the program that `index` begins with: each of the two counts its own controllers from 0."""
    return runner([*index.split(" "), *words], timeout=_TIMEOUT)


def _facts_of(runner: Runner, index: str) -> ToolFacts:
    """One controller, with the percentages of what is under way."""
    facts = parse_display(_ask(runner, index, "DISPLAY").stdout, index)
    return with_tasks(facts, lambda: parse_status(_ask(runner, index, "STATUS").stdout))


def read_facts(runner: Runner) -> ToolFacts:
    """All controllers of both programs, where they are installed; `index` is `sas3ircu 0`. Raises ToolError."""
    indices = [f"{program} {number}" for program, numbers in _listed(runner) for number in numbers]
    return all_controllers(partial(_facts_of, runner), indices)


def _listed(runner: Runner) -> list[tuple[str, dict[str, str]]]:
    """The controllers of each program that is installed. Raises MissingToolError when none is."""
    listed: list[tuple[str, dict[str, str]]] = []
    for program in PROGRAMS:
        with suppress(MissingToolError):
            listed.append((program, parse_list(runner([program, "LIST"], timeout=_TIMEOUT).stdout)))
    if not listed:
        raise MissingToolError(f"none of {', '.join(PROGRAMS)} is installed on this machine")
    return listed


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Firmware and BIOS; flashing is sas3flash's. Raises ToolError."""
    return parse_display(_ask(runner, index, "DISPLAY").stdout, index).adapters[0].firmware


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """All volumes of a controller. Raises ToolError."""
    return _facts_of(runner, index).adapters[0].volumes


def _do(runner: Runner, what: str, index: str, *words: str) -> None:
    shown = runner([index.split(" ", maxsplit=1)[0], "HELP"], timeout=_TIMEOUT)
    if words[0] not in shown.stdout or "noprompt" not in shown.stdout.lower():
        raise ToolError(f"`{shown.line}` does not show {words[0]} without a question; do it by hand")
    ended = _ask(runner, index, *words)
    _check(ended.stdout, what, ended.line)


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What the tool cannot be told; the controller chooses the strip."""
    unknown = request.asks("policies", "strip", "spares", "initialisation")
    refusal = f"integrated RAID cannot be told {', '.join(unknown)} of a new volume; leave it out of the drop"
    return (refusal,) if unknown else ()


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    name = [request.name] if request.name else []
    level = f"RAID{request.level}"
    _do(
        runner,
        f"controller {index} created no volume",
        index,
        "CREATE",
        level,
        "MAX",
        *request.members,
        *name,
        "noprompt",
    )


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume. Raises ToolError."""
    _do(runner, f"volume {volume.id} was not deleted", index, "DELETEVOLUME", volume.id, "noprompt")


def progress(runner: Runner, index: str, volume: VolumeFacts) -> Mapping[str, float]:
    """Percent by task of what is under way on a volume. Raises ToolError."""
    return parse_status(_ask(runner, index, "STATUS").stdout).get(volume.id, {})
