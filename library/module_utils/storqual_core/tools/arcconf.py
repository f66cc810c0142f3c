# SPDX-License-Identifier: Apache-2.0
"""arcconf: Adaptec and Microchip SmartRAID controllers.

`Controller Status: Optimal` is printed beside a battery that failed, and the write cache of volumes rests on that.

Builds of twenty years write the same label in several ways, and put parts (phys, error counters, segments) below an
object that others do not have. Labels below such a part are kept with its title, never taken for the object's own.
The last line that is no rule decides, not the exit status: `Command completed successfully.`

What is known: LIST, GETCONFIG and GETSTATUS (recorded), CREATE, SETCACHE, ROMUPDATE (documented: other people's code
runs them). DELETE is not verified and is looked for in the tool's own help before it is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Iterator, Mapping, Sequence

from ..host.identity import printed_wwn, same_maker
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import (
    Fields,
    PrintedLine,
    plain_label,
    printed_size,
    printed_value,
    read_line,
    read_lines,
    size_range,
    whole_number,
)
from .capabilities import (
    AdapterFacts,
    DriveFacts,
    EnclosureFacts,
    FirmwareImage,
    PortFacts,
    ToolFacts,
    Value,
    VolumeFacts,
    VolumeRequest,
    all_but_odd,
    all_controllers,
    with_tasks,
)

STATUS = "Controller Status"
_WELL = ("optimal", "okay", "ok")
# battery, ZMM (zero-maintenance module), cache backup unit and green backup: what keeps the cache without power
_BACKUP = re.compile(
    r"^[^:]*\b(?:battery|zmm|backup|supercap|cache properties(?=: cache status))\b.*: (?P<label>[^:#]+?)(?: #\d+)?$",
    re.IGNORECASE,
)
_BACKUP_WELL = {
    "over temperature": ("no",),
    "hardware error": ("no error",),
    "cache status": (*_WELL, "enabled", "disabled", "not configured", "not applicable", "not present"),
    # a capacitor that is measured is not ill
    "learn status": (),
    "status": (*_WELL, "ready", "zmm optimal", "not installed", "zmm not installed", "not present"),
}
_HEAT = re.compile(r"\((?P<word>[A-Za-z ]+)\)$")


def controller_health(fields: Fields, below: Fields) -> str:
    """What is wrong with a controller, or its status; `below` are the labels of its parts, by `title: label`.

    A word that is not known of its battery, capacitor or temperature is told as wrong.
    """
    status, wrong = fields.get(STATUS), [*_backup(below), *_temperature(fields)]
    if wrong and status and status.lower() not in _WELL:
        wrong.insert(0, f"{STATUS}: {status}")
    return "; ".join(wrong) or status


def _backup(below: Fields) -> Iterator[str]:
    for label, value in below.printed().items():
        match = _BACKUP.match(label)
        name = match.group("label").lower() if match else ""
        well = _BACKUP_WELL.get(name, _BACKUP_WELL["status"] if name.endswith("status") else ())
        # `Health Status: 88 percent` is no word
        if well and value.lower() not in well and not value.endswith("percent"):
            yield f"{label}: {value}"


def _temperature(fields: Fields) -> Iterator[str]:
    """`42 C/ 107 F (Normal)`; a controller without a sensor says `Not Supported`."""
    value = fields.get("Temperature")
    heat = _HEAT.search(value)
    if heat and heat.group("word").lower() != "normal":
        yield f"Temperature: {value}"


COUNTED = ("Logical devices/Failed/Degraded", "Logical drives/Failed/Degraded", "Logical drives/Offline/Critical")
_DONE = "command completed successfully."
_RULE = re.compile(r"^[-=]{8,}$")
COUNT = "controllers found"
_OBJECTS = (
    ("volume", re.compile(r"^Logical (?:device|drive) (?:number |#)(?P<name>\d+)$", re.IGNORECASE)),
    ("device", re.compile(r"^(?:Physical )?Device #(?P<name>\d+)$", re.IGNORECASE)),
    # it holds devices, and ends the one before it
    ("channel", re.compile(r"^Channel #(?P<name>\d+):?$", re.IGNORECASE)),
    ("array", re.compile(r"^Array Number (?P<name>\d+)$", re.IGNORECASE)),
    # a cache of drives, which has the labels of a volume
    ("cache", re.compile(r"^maxCache (?:device|pool) (?:number |#)(?P<name>\d+)$", re.IGNORECASE)),
)
_PARTS = re.compile(r"^(?:Phy|Connector|Sensor|Port) #?\d+:?$", re.IGNORECASE)
_TITLES = {
    "controller information": "controller",
    **dict.fromkeys(("logical device information", "logical drive information"), "volumes"),
    "physical device information": "devices",
    **dict.fromkeys(("array information", "maxcache information"), "other"),
}
_CONNECTORS = "connector information"
_MEMBER = re.compile(r"^(?:(?:Group (?P<group>\d{1,9}), )?Segment|Device) (?P<number>\d{1,9})$", re.IGNORECASE)
_SEGMENTS = ("Number of segments", "Segments", "Number of members", "Number of drives")
_LISTED_MEMBERS = ("Drive(s) (Channel,Device)", "Stripe order (Channel,Device)")
_MEMBER_VALUE = re.compile(r"^(?P<state>[A-Za-z][A-Za-z -]*?)(?:\s*\((?P<place>[^)]*)\))?(?:\s+(?P<serial>\S+))?$")
_PLACE = re.compile(
    r"(?:Enclosure|Backplane|(?P<cable>Connector))[: ](?P<holder>\d+)\s*,\s*(?:Slot|Device)[: ](?P<slot>\d+)",
    re.IGNORECASE,
)
_AT = re.compile(r"\bChannel[: ](?P<channel>\d+)\s*,\s*Device[: ](?P<device>\d+)", re.IGNORECASE)
_PAIRS = re.compile(r"(?P<channel>\d+)\s*,\s*(?P<device>\d+)")
_CHANNEL = re.compile(r"^\s*(?P<channel>\d+)\s*,\s*(?P<device>\d+)\s*(?:\(|$)")
_LEVEL = re.compile(r"^(?:RAID[ -]*)?(?P<level>\d+[A-Z]*)\b", re.IGNORECASE)
_PERCENT = re.compile(r"(?<![0-9.])(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)(?![0-9.])\s*%?")
# what a drive's phy is plugged into
_ATTACHED = re.compile(r": Attached SAS Address", re.IGNORECASE)
_SHARES = ("Configured Write Cache Ratio", "Write Cache Ratio", "Current Write Cache Ratio")
_SPEEDS = ("Transfer Speed", "Negotiated Transfer Speed")
_OPTIMAL = ("optimal", "okay")
_DRIVE_LABELS = ("Serial number", "World-wide name", "Vendor", "Model", "Firmware", "State", "Device", "SSD")
_VOLUME_LABELS = ("Logical device name", "Logical drive name", "RAID level", "Size", "Volume Unique Identifier")
# labels that only a volume or a drive has: elsewhere its heading was not understood
_OF_DRIVES = {plain_label(label) for label in ("Reported Channel,Device", "Total Size")}
_OWNED = {plain_label(label) for label in _VOLUME_LABELS[:3]} | _OF_DRIVES
_MEMBERS = (
    "logical device segment information",
    "logical drive segment information",
    "array physical device information",
)
_ROOMS = ("volume", "device", "array", "cache", "other")


@dataclass
class _Part:
    """One object or section: its own labels, and the labels of the parts below it by `title: label`.

    `wrong` is why it cannot be read whole, `strange` the titles below it that may begin a drive (or a volume).
    `listed` is how far a title without rules is indented, and what title it is in: it ends where a label stands no
    further in.
    """

    kind: str
    name: str = ""
    fields: Fields = field(default_factory=Fields)
    below: Fields = field(default_factory=Fields)
    title: str = ""
    listed: tuple[int, str] | None = None
    members: list[tuple[str, str, str, str]] = field(default_factory=list)
    segments: list[tuple[str, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    strange: dict[str, tuple[bool, str]] = field(default_factory=dict)

    def kept(self, *read: str) -> dict[str, str]:
        return {**self.fields.without(*read), **self.below.printed()}


def check_completed(text: str, what: str, command: str = "") -> None:
    """Raise ToolError unless the last line says that the command was completed."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _RULE.match(line.strip())]
    if not lines or lines[-1].lower() != _DONE:
        words = [line for line in lines if not line.lower().startswith(COUNT)]
        problem = "arcconf said " + (" ".join(words)[:300] or "nothing")
        if any(line.lower() in _TITLES for line in words):
            # an answer that was begun, and of which the end may be missing
            last = words[-1][:200]
            problem = f"its closing line `Command completed successfully.` is missing, the last one is {last!r}"
        raise ToolError(f"{what}: {problem}" + (f"; command: {command}" if command else ""))


def parse_config(text: str, index: str = "1", part: str = "") -> ToolFacts:
    """What `GETCONFIG N AL` (or AD, LD, PD: `part`) prints of controller `index`.

    Raises ToolError when it was not completed, is the answer to another command, or lists another number of volumes
    than it says.
    """
    check_completed(text, f"controller {index} could not be read")
    parts, notes = _parts_of(text)
    own = next((part for part in parts if part.kind == "controller"), _Part("controller"))
    kinds = {part.kind for part in parts}
    if "Controller Model" not in own.fields and not kinds & {"volumes", "devices"}:
        raise ToolError(
            f"controller {index}: this is not an answer to GETCONFIG: it has no controller, volume or device"
        )
    devices = [part for part in parts if part.kind == "device"]
    drives = [part for part in devices if _is_drive(part)]
    enclosures = [part for part in devices if "enclosure" in part.fields.get("Device").lower()]
    volumes = [part for part in parts if part.kind == "volume"]
    counted = re.match(r"([0-9]{1,9})\s*/", own.fields.get(*COUNTED))
    # a build counts the cache of drives among them
    listed = {len(volumes), len(volumes) + sum(each.kind == "cache" for each in parts)}
    if counted and part != "AD" and int(counted.group(1)) not in listed:
        raise ToolError(f"controller {index} says that it has {counted.group(1)} volumes and lists {len(volumes)}")
    if part == "AL" and not counted and not {"volumes", "devices"} <= kinds:
        raise ToolError(f"controller {index}: this is no answer to GETCONFIG AL: it lists no volumes or no devices")
    below = own.below.printed().items()
    version = Fields({label.partition(": ")[2]: value for label, value in below if "version" in label.lower()})
    names = [name for name in map(printed_wwn, _addresses(own, parts)) if name]
    expanders = [printed_wwn(part.fields.get("Enclosure Logical Identifier")) for part in enclosures]
    adapter = AdapterFacts(
        index=index,
        model=own.fields.get("Controller Model"),
        serial=printed_value(own.fields.get("Controller Serial Number")),
        pci=_pci(own.fields.get("PCI Address")),
        driver=own.fields.get("Driver Name"),
        driver_version=version.get("Driver").replace("Linux ", ""),
        firmware={
            name: version.get(label)
            for label, name in (("Firmware", "firmware"), ("BIOS", "bios"), ("Boot Flash", "boot_flash"))
            if version.get(label)
        },
        health=controller_health(own.fields, own.below),
        settings=_settings(parts, own, drives),
        drives=all_but_odd(
            [
                *(_drive(part, index, names, expanders) for part in drives),
                *(DriveFacts(name, unread=why) for name, why in _strange(parts, of_drives=True)),
            ],
            volumes,
        ),
        volumes=all_but_odd(
            [
                *(_volume(part, drives, own) for part in volumes),
                *(VolumeFacts(name, unread=why) for name, why in _strange(parts, of_drives=False)),
            ],
            drives,
        ),
        ports=tuple(PortFacts("host", wwn=name) for name in names[:1]),
        enclosures=tuple(
            EnclosureFacts(
                _position(part) or f"device {part.name}", part.fields.get("Vendor"), part.fields.get("Model")
            )
            for part in enclosures
        ),
    )
    return ToolFacts((adapter,), tuple(notes))


def _parts_of(text: str) -> tuple[list[_Part], list[str]]:
    """The objects and sections of an answer, and the lines that belong to none."""
    parts: list[_Part] = []
    notes: list[str] = []
    ruled = False
    for line in read_lines(text, _begins):
        if line.text.lower() == _DONE or line.label.lower() == COUNT:
            continue
        if _RULE.match(line.text):
            ruled = True
            continue
        _take(parts, line, notes, ruled=ruled)
        ruled = False
    return parts, notes


def _begins(line: PrintedLine) -> bool:
    """Whether a line begins an object, a part or a section, or is a rule."""
    known = (_RULE, _PARTS, _MEMBER, *(pattern for _, pattern in _OBJECTS))
    return (
        any(pattern.match(text) for pattern in known for text in (line.text, line.label))
        or line.text.lower() in (*_TITLES, _DONE)
        or line.text.lower().startswith(("device is a", "no "))
        or line.text.lower().endswith(" information")
    )


def _take(parts: list[_Part], line: PrintedLine, notes: list[str], *, ruled: bool) -> None:
    last = parts[-1] if parts else None
    for kind, pattern in _OBJECTS:
        match = pattern.match(line.text)
        if match is not None:
            parts.append(_Part(kind, match.group("name")))
            return
    title = _section(line, last)
    if title is not None:
        parts.append(_Part(title, line.text))
    elif _PARTS.match(line.text) or (line.labelled and not line.value and _PARTS.match(line.label)):
        if last is not None:
            last.title = f"{last.title.partition(' / ')[0]} / {line.text}".strip(" /")
    elif line.labelled and last is not None:
        if last.listed is not None and line.indent <= last.listed[0]:
            last.title, last.listed = last.listed[1], None
        _keep(last, line)
    elif line.text.lower().startswith("device is a") and last is not None and last.kind == "device":
        last.fields.add("Device", line.text)
    elif last is not None and not line.labelled and line.text.lower().startswith("no "):
        # what there is none of, where its labels would stand: no title of what follows
        last.below.add(last.title or "Note", line.text)
    elif last is not None and not line.labelled:
        ended = ruled or line.text.lower().endswith(" information")
        last.title, last.listed = line.text, None if ended else (line.indent, last.title)
        if not ruled:
            notes.append(line.text)
    else:
        notes.append(line.text)


def _section(line: PrintedLine, last: _Part | None) -> str | None:
    """The kind of section that a line begins; the controller's connectors may stand after all its devices."""
    late = last is not None and last.kind == "device" and line.indent == 0
    return "other" if late and line.text.lower() == _CONNECTORS else _TITLES.get(line.text.lower())


def _keep(part: _Part, line: PrintedLine) -> None:
    """A label and its value: of the part itself, of something below it, or a member of a volume."""
    member = _MEMBER.match(line.label) if part.kind == "volume" else None
    value = _MEMBER_VALUE.match(line.value) if member is not None else None
    if member is not None and value is not None:
        state, place, serial = (value.group(name) or "" for name in ("state", "place", "serial"))
        number = member.group("number") if line.label.lower().startswith("device") else ""
        part.members.append((state, place, serial, number))
        if not number:
            part.segments.append((member.group("group") or "", int(member.group("number"))))
        if not (place or serial or number):
            part.below.add(f"{part.title}: {line.label}", line.value)
        return
    lists_members = (
        part.kind == "volume" and part.title.lower() in _MEMBERS and not line.value.startswith("Availability")
    )
    if member is not None or lists_members:
        part.wrong.append(f"arcconf printed {line.text[:100]!r} where a member of a volume was expected")
        return
    plain = plain_label(line.label)
    if plain in _OWNED and (part.kind not in _ROOMS or part.title):
        where = part.title or part.name or "nothing"
        why = f"arcconf printed {line.label!r} under {where[:60]!r}, where no volume and no drive begins"
        part.strange.setdefault(where[:60], (plain in _OF_DRIVES, why))
    if part.title:
        part.below.add(f"{part.title}: {line.label}", line.value)
    else:
        part.fields.add(line.label, line.value)


def _strange(parts: Sequence[_Part], *, of_drives: bool) -> list[tuple[str, str]]:
    """What may be a drive (or a volume) by its labels, and stands under a heading that is not known; and why."""
    return [(name, why) for part in parts for name, (drive, why) in part.strange.items() if drive == of_drives]


def _settings(parts: Sequence[_Part], controller: _Part, drives: Sequence[_Part]) -> dict[str, str]:
    """What was printed of the controller, and of everything that is neither a volume nor a drive."""
    settings = Fields({**controller.fields.printed(), **controller.below.printed()})
    for part in parts:
        if part is not controller and part.kind != "volume" and part not in drives:
            name = (
                f"{part.kind} {_position(part) or part.name}"
                if part.kind in ("array", "cache", "device", "channel")
                else part.name
            )
            for label, value in part.kept().items():
                settings.add(f"{name}: {label}", value)
    return settings.printed()


def _addresses(controller: _Part, parts: Sequence[_Part]) -> list[str]:
    sections = [part.below.printed() for part in parts if part is controller or part.name.lower() == _CONNECTORS]
    below = [pair for labels in sections for pair in labels.items()]
    connectors = [value for label, value in below if label.endswith("SAS Address") and not _ATTACHED.search(label)]
    return [controller.fields.get("Controller World Wide Name", "WWN"), *connectors]


def _is_drive(part: _Part) -> bool:
    """Whether a device is a drive, or may be one: its kind is not told, or it has a size; that is told as wrong."""
    kind = part.fields.get("Device")
    drive = bool(re.search("hard drive|ssd|solid state", kind, re.IGNORECASE))
    if not drive and (not kind or part.fields.get("Total Size", "Size")):
        part.wrong.insert(
            0, f"arcconf lists device #{part.name} and no kind that is understood: {kind[:80] or 'nothing'}"
        )
        return True
    return drive


def _pci(text: str) -> str:
    """`0:a:0:0` as `0000:0a:00.0`; nothing when it is not printed so."""
    parts = re.split(r"[:.]", text.strip())
    if len(parts) != 4 or any(not re.fullmatch(r"[0-9a-fA-F]{1,4}", part) for part in parts):
        return ""
    domain, bus, device, function = (int(part, 16) for part in parts)
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def _position(part: _Part) -> str:
    """`0 4`: channel and device, the two words that commands take."""
    return _channel(_CHANNEL.match(part.fields.get("Reported Channel,Device(T:L)")))


def _channel(match: re.Match[str] | None) -> str:
    return f"{match.group('channel')} {match.group('device')}" if match else ""


def _drive(part: _Part, index: str, names: Sequence[str], expanders: Sequence[str]) -> DriveFacts:
    fields, position = part.fields, _position(part)
    if not position:
        part.wrong.append(f"controller {index}: device #{part.name} is listed without its channel and device")
    wwn, size = printed_wwn(fields.get("World-wide name", "WWN")), fields.get("Total Size", "Size")
    attached = [printed_wwn(name) for label, name in part.below.printed().items() if _ATTACHED.search(label)]
    lenders = [*names, *attached, *(expanders if fields.get(*_SPEEDS).upper().startswith("SATA") else ())]
    lent = wwn.startswith("0x3") or any(same_maker(wwn, name) for name in lenders)
    return DriveFacts(
        position=position or f"device {part.name}",
        # a SATA drive is called by a name that the controller lends it, or the expander that it is behind
        wwn="" if lent else wwn,
        serial=printed_value(fields.get("Serial number")),
        vendor=printed_value(fields.get("Vendor")),
        model=printed_value(fields.get("Model")),
        revision=printed_value(fields.get("Firmware", "Firmware level", "Firmware version")),
        # of a drive that does not answer 0 MB are told
        size=printed_size(size, base=1024) or None,
        size_range=size_range(size, base=1024) if printed_size(size, base=1024) else None,
        state=fields.get("State"),
        media=_media(fields),
        settings=part.kept(*_DRIVE_LABELS),
        unread="; ".join(part.wrong),
    )


def _media(fields: Fields) -> str:
    flash, speed = fields.get("SSD").lower(), fields.get("Rotational Speed").lower()
    if flash in ("yes", "no"):
        return "SSD" if flash == "yes" else "HDD"
    if "solid" in speed or "solid" in fields.get("Device").lower() or "ssd" in fields.get("Device").lower():
        return "SSD"
    return "HDD" if re.match(r"[1-9]\d* ?rpm", speed) else ""


def _volume(part: _Part, drives: Sequence[_Part], own: _Part) -> VolumeFacts:
    fields = part.fields
    state = fields.get("Status of logical device", "Status of logical drive")
    segments = [(_member(each, drives), each[0].lower()) for each in part.members]
    # ServeRAID lists them in one line, as channel and device
    listed = fields.get(*_LISTED_MEMBERS)
    segments += [(_channel(pair), "present") for pair in _PAIRS.finditer(listed)]
    dedicated = [
        _channel(pair)
        for label, value in fields.printed().items()
        if plain_label(label).startswith("dedicatedhotspare")
        for pair in _PAIRS.finditer(value)
    ]
    members = [(name, held) for name, held in segments if name]
    wrong = [*part.wrong, *_miscounted(part, len(segments), [name for name, _ in members])]
    level, size = _LEVEL.match(fields.get("RAID level")), fields.get("Size")
    rebuilding = "rebuilding" in state.lower() or any(held == "rebuilding" for _, held in segments)
    percent = _PERCENT.search(state.partition(":")[2]) if rebuilding else None
    disk = fields.get("Disk Name").split(" ")[0]
    return VolumeFacts(
        id=part.name,
        name=fields.get("Logical device name", "Logical drive name"),
        wwn=printed_wwn(fields.get("Volume Unique Identifier")),
        level=level.group("level") if level else fields.get("RAID level"),
        state=state,
        size=printed_size(size, base=1024),
        size_range=size_range(size, base=1024),
        strip=printed_size(fields.get("Stripe-unit size", "Strip Size"), base=1024),
        members=tuple(name for name, held in members if "spare" not in held),
        spares=(*(name for name, held in members if "spare" in held), *dedicated),
        failed=tuple(name for name, held in members if held in ("missing", "failed", "inconsistent", "offline")),
        policies=_policies(fields, own),
        # how far it is stands in GETSTATUS, and in the state of some builds
        progress={"rebuild": float(percent.group("percent")) if percent else 0.0} if rebuilding else {},
        device=disk if disk.startswith("/") else "",
        healthy=None
        if wrong or not printed_value(state)
        else state.lower() in _OPTIMAL and all(held == "present" for _, held in segments),
        settings=part.kept(*_VOLUME_LABELS),
        unread="; ".join(f"logical device {part.name}: {why}" for why in wrong),
    )


def _miscounted(part: _Part, listed: int, names: Sequence[str]) -> Iterator[str]:
    """Where what is listed of a volume's members is not all of it: by the count beside it, and by their numbers."""
    count = part.fields.get(*_SEGMENTS) or next(
        (
            value
            for label, value in part.below.printed().items()
            if plain_label(label.rpartition(": ")[2]) in map(plain_label, _SEGMENTS)
        ),
        "",
    )
    total = whole_number(count)
    if total is not None and total != listed:
        yield f"arcconf reports {total} segments and lists {listed}"
    groups: dict[str, list[int]] = {}
    for group, number in part.segments:
        groups.setdefault(group, []).append(number)
    for group, numbers in groups.items():
        if sorted(numbers) != list(range(len(numbers))) and sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield f"segments{f' of group {group}' if group else ''} are missing: it lists {sorted(numbers)}"
    if len({len(numbers) for numbers in groups.values()}) > 1:
        yield f"its groups are of different sizes: {[len(numbers) for numbers in groups.values()]}"
    if len(set(names)) != len(names):
        yield f"a drive is listed twice among its members: {', '.join(names)[:200]}"
    rest = [re.sub(_PAIRS, "", part.fields.get(label)).strip(" ,;()") for label in _LISTED_MEMBERS]
    if any(rest):
        yield f"members are listed that are not understood: {''.join(rest)[:100]}"


def _member(member: tuple[str, str, str, str], drives: Sequence[_Part]) -> str:
    """The position of a member: of the drive in its place (on a connector or not), with its number or its serial."""
    _, place, serial, number = member
    wanted, channel = _PLACE.search(place.lower()), _CHANNEL.match(place) or _AT.search(place)
    if channel is not None:
        return _channel(channel)
    for fitting in (
        [drive for drive in drives if wanted and _in_place(drive, wanted.groups())],
        [drive for drive in drives if number and drive.name == number],
        [drive for drive in drives if serial and drive.fields.get("Serial number") == serial],
    ):
        if len(fitting) == 1:
            return _position(fitting[0])
    return serial or place or number


def _in_place(drive: _Part, place: tuple[str | None, ...]) -> bool:
    match = _PLACE.search(drive.fields.get("Reported Location").lower())
    return match is not None and match.groups() == place


def _policies(fields: Fields, controller: _Part) -> dict[str, Value]:
    policies: dict[str, Value] = {}
    read = fields.get("Read-cache setting", "Read-cache mode").lower()
    write = fields.get("Write-cache setting", "Write-cache mode").lower()
    if read.startswith(("enabled", "disabled")):
        policies["read_policy"] = "ra" if read.startswith("enabled") else "nora"
    if not write:
        # SmartRAID has one switch for both, and shares of the cache for the whole controller
        share = controller.fields.get(*_SHARES) or controller.below.get("Cache Properties: Write Cache Percentage")
        caching = fields.get("Caching").lower()
        write = "disabled" if caching == "enabled" and re.match(r"0\s*(?:%|percent)?$", share) else caching
    if "write-through" in write or write.startswith(("disabled", "off")):
        policies["write_policy"] = "wt"
    elif write.startswith(("enabled", "on")):
        policies["write_policy"] = "awb" if "always" in write else "wb"
    return policies


PROGRAMS = ("arcconf",)

_LOOK_TIMEOUT = 180.0
_CHANGE_TIMEOUT = 600.0
_FLASH_TIMEOUT = 1800.0
_CACHE = {"wb": "wb", "wt": "wt", "awb": "wbb"}
_LISTED = re.compile(r"^Controller (?P<index>\d+):?\s*:\s*(?P<facts>.*)$", re.IGNORECASE)


def _ask(runner: Runner, *words: str, timeout: float = _LOOK_TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, words, timeout=timeout)


def _do(runner: Runner, what: str, *words: str, timeout: float = _CHANGE_TIMEOUT) -> None:
    ended = _ask(runner, *words, timeout=timeout)
    check_completed(ended.stdout, what, ended.line)


def _facts_of(runner: Runner, index: str) -> ToolFacts:
    """One controller, with the percentages of what is under way."""
    facts = parse_config(_ask(runner, "GETCONFIG", index, "AL").stdout, index, "AL")
    return with_tasks(facts, lambda: parse_tasks(_ask(runner, "GETSTATUS", index).stdout))


def parse_list(text: str) -> tuple[str, ...]:
    """The controllers' numbers that `LIST` names; none when it found none.

    Raises ToolError, also when it names another number of them than it says.
    """
    counted = re.search(rf"^\s*{COUNT}\s*:\s*([0-9]{{1,9}})\s*$", text, re.MULTILINE | re.IGNORECASE)
    if counted and int(counted.group(1)) == 0:
        return ()
    check_completed(text, "the controllers could not be listed")
    matches = (_LISTED.match(line.strip()) for line in text.splitlines())
    numbers = tuple(match.group("index") for match in matches if match is not None)
    if not numbers or (counted and len(numbers) != int(counted.group(1))):
        count = counted.group(1) if counted else "no number of"
        raise ToolError(f"arcconf says that it found {count} controllers and lists {len(numbers)}")
    return numbers


def read_facts(runner: Runner) -> ToolFacts:
    """All controllers with their drives and volumes. Raises ToolError."""
    return all_controllers(partial(_facts_of, runner), parse_list(_ask(runner, "LIST").stdout))


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Firmware, BIOS and boot flash. Raises ToolError."""
    ended = _ask(runner, "GETCONFIG", index, "AD")
    return parse_config(ended.stdout, index, "AD").adapters[0].firmware


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Write an image (`.ufi`; of several parts, all beside the first) into a controller. Raises ToolError."""
    what = f"the image {image.path} was not accepted by controller {index}"
    _do(runner, what, "ROMUPDATE", index, image.path, "NOPROMPT", timeout=_FLASH_TIMEOUT)


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:  # noqa: ARG001 - the capability's arguments
    return "reboot"


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """All volumes of a controller. Raises ToolError."""
    return _facts_of(runner, index).adapters[0].volumes


def objections(request: VolumeRequest) -> tuple[str, ...]:
    unknown = request.asks("policies", "spares", "initialisation")
    refusal = f"how arcconf sets {', '.join(unknown)} of a new volume is not verified; leave it out"
    wrong = request.strip_objection(1 << 10, 1 << 20)
    return (*((refusal,) if unknown else ()), *((wrong,) if wrong else ()))


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume over members given as `channel device`. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    words = ["NAME", request.name] if request.name else []
    words += ["STRIPESIZE", str(request.strip // 1024)] if request.strip is not None else []
    places = [word for member in request.members for word in member.split(" ")]
    what = f"controller {index} created no volume"
    _do(runner, what, "CREATE", index, "LOGICALDRIVE", *words, "MAX", request.level, *places, "NOPROMPT")


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume, where the tool's own help shows the words for it. Raises ToolError."""
    shown = _ask(runner, "DELETE")
    if "LOGICALDRIVE" not in shown.stdout or "noprompt" not in shown.stdout.lower():
        raise ToolError(
            f"`{shown.line}` does not show how a logical drive is deleted without a question; delete it by hand"
        )
    what = f"logical device {volume.id} of controller {index} was not deleted"
    _do(runner, what, "DELETE", index, "LOGICALDRIVE", volume.id, "NOPROMPT")


def set_policy(runner: Runner, index: str, volume: VolumeFacts, name: str, value: Value) -> None:
    """Set the read or write policy with SETCACHE. Raises ToolError for any other, and for a word it does not know."""
    mode = {"ra": "ron", "nora": "roff"}.get(str(value)) if name == "read_policy" else None
    mode = _CACHE.get(str(value)) if name == "write_policy" else mode
    if mode is None:
        raise ToolError(f"how arcconf sets {name} to {value} is not verified; set it by hand")
    what = f"{name} of logical device {volume.id} was not set to {value}"
    _do(runner, what, "SETCACHE", index, "LOGICALDRIVE", volume.id, mode, "noprompt")


def progress(runner: Runner, index: str, volume: VolumeFacts) -> Mapping[str, float]:
    """Percent by task of what is under way on a volume. Raises ToolError."""
    return parse_tasks(_ask(runner, "GETSTATUS", index).stdout).get(volume.id, {})


_TASKS = (
    ("rebuild", "rebuild"),
    *((begun, "initialise") for begun in ("build/verify", "clear", "initiali")),
    *((begun, "check") for begun in ("verify", "consistency")),
    *((begun, "reshape") for begun in ("reconfig", "expan", "transform", "migrat")),
)


def parse_tasks(text: str) -> dict[str, dict[str, float]]:
    """Percent by task by logical device, of `GETSTATUS N`.

    Raises ToolError when it was not completed, is the answer to another command, or tells a task of no volume.
    """
    check_completed(text, "what is under way could not be read")
    tasks: list[tuple[str, Fields]] = []
    for raw in text.splitlines():
        line = read_line(raw)
        if line is None:
            continue
        if plain_label(line.label or line.text).endswith("task") and not line.value:
            tasks.append((line.text.lower(), Fields()))
        elif plain_label(line.label) == "currentoperation" and not tasks and line.value.lower() != "none":
            raise ToolError("what is under way could not be read: an operation stands under no task")
        elif line.labelled and tasks:
            tasks[-1][1].add(line.label, line.value)
        elif plain_label(line.text) in (
            "controllerinformation",
            "logicaldeviceinformation",
            "physicaldeviceinformation",
        ):
            raise ToolError("what is under way could not be read: this is not an answer to GETSTATUS")
    percents: dict[str, dict[str, float]] = {}
    for title, fields in tasks:
        operation = fields.get("Current operation").lower()
        volume = fields.get("Logical device", "Logical drive", "Logical device number")
        if operation in ("", "none") or not title.startswith("logical"):
            continue
        if not volume:
            raise ToolError(f"arcconf reports a task ({operation[:60]}) and not of which volume")
        percent = _PERCENT.match(fields.get("Percentage complete", "Percent complete"))
        task = next((name for word, name in _TASKS if operation.startswith(word)), operation)
        percents.setdefault(volume.split(" ")[0], {})[task] = float(percent.group("percent")) if percent else 0.0
    return percents
