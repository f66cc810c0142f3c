# SPDX-License-Identifier: Apache-2.0
"""The indented tree that ssacli (hpssacli, hpacucli before) prints, as controllers, drives, volumes, ports and cages.

A drive or a volume stands there in short (one line, its facts in brackets) or in full (a line, then labels below it);
`config detail` prints both. A line without a label that is not known begins a part of its own, so that the labels
below it are never taken for those of the part before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from ...host.identity import printed_wwn, same_maker
from ...kit.errors import ToolError
from ...kit.labelled_text import Fields, Line, plain_label, printed_size, read_line, size_range
from ..capabilities import AdapterFacts, DriveFacts, EnclosureFacts, PortFacts, ToolFacts, Value, VolumeFacts

_HEADER = re.compile(r"^(?P<model>\S.*?) in Slot (?P<slot>\w+)\b(?P<rest>.*)$", re.IGNORECASE)
# an array of drives with controllers of its own is named by its chassis, not by a slot
_CHASSIS = re.compile(r"^(?P<model>(?:MSA|RAID Array|RA)\s?\S*.*?) in (?P<slot>\S.*)$")
_SERIAL = re.compile(r"\(sn:\s*(?P<serial>\S+?)\s*\)", re.IGNORECASE)
_DRIVE = re.compile(
    r"^physicaldrive (?P<position>[^\s(]+)(?: \((?P<summary>.*)\))?(?:: (?P<state>[^()]+))?$", re.IGNORECASE
)
_VOLUME = re.compile(
    r"^logicaldrive (?P<id>\d+) \((?P<size>[^,]+), (?P<level>[^,]*?)(?:, (?P<state>[^()]*(?:\([^()]*\))?))?\)"
    r"(?:: (?P<after>[^()]+))?$",
    re.IGNORECASE,
)
_ARRAY = re.compile(r"^array:? (?P<name>\w+)(?: \((?P<remarks>.*)\))?(?:: (?P<state>[^()]+))?$", re.IGNORECASE)
_ENCLOSURE = re.compile(r"^(?:Enclosure SEP\b|SEP\b|Expander\b|.* at Port )", re.IGNORECASE)
_PERCENT = re.compile(r"(?P<percent>\d+(?:\.\d+)?)\s*%")
_SIZE = re.compile(r"^\d+(?:\.\d+)?\s*[KMGTP]i?B$", re.IGNORECASE)
_TASKS = (("recovering", "rebuild"), ("rebuilding", "rebuild"), ("expan", "reshape"), ("transform", "reshape"))
_BEGINS = {"logicaldrive": "volume", "portname": "port", "sensorid": "sensor", "array": "array"}
_PLAIN = ("unassigned", "unassigned drives", "physical drives", "none attached", "hba drives")
_NONE = "no controllers detected"
_HEALTH = ("Controller Status", "Cache Status", "Battery/Capacitor Status")
_PCI = "PCI Address (Domain:Bus:Device.Function)"
# labels that nothing but a drive or a volume has: where they stand alone, its heading was not understood
_OWNED = (
    "portid",
    "portlocation",
    "rotationalspeed",
    "phycount",
    "drivetype",
    "faulttolerance",
    "uniqueidentifier",
    "stripsize",
)
# labels that one object has once, so that a second one belongs to an object whose heading was not understood
_ONCE = ("portid", "sasaddress", "serialnumber", "wwid", "uniqueidentifier", "faulttolerance")
_TROUBLE = re.compile(r"(?:failed|degraded|failure)\b", re.IGNORECASE)
_UNSOUND = re.compile(
    r"(?:initialization (?:failed|not)|in progress|queued|failed|degraded|rebuild|recover|pending)", re.IGNORECASE
)
_AT_PORT = re.compile(r" at Port (?P<port>\w+), Box (?P<box>\d+)\b", re.IGNORECASE)


@dataclass
class _Part:
    """One object of the tree; `short` is what its line in short said."""

    kind: str
    name: str
    indent: int
    fields: Fields = field(default_factory=Fields)
    short: Fields = field(default_factory=Fields)
    members: list[str] = field(default_factory=list)
    array: str = ""

    def get(self, *labels: str) -> str:
        """A value from the labels below it, else from its short line."""
        return self.fields.get(*labels) or self.short.get(*labels)


@dataclass
class _Controller:
    """One controller while it is read."""

    model: str
    slot: str
    serial: str = ""
    settings: Fields = field(default_factory=Fields)
    parts: list[_Part] = field(default_factory=list)
    array: str = ""

    def of(self, kind: str) -> Iterator[_Part]:
        """Its parts of one kind."""
        return (part for part in self.parts if part.kind == kind)

    def named(self, kind: str, name: str, indent: int) -> _Part:
        """The drive or volume of this name: it is listed in short first and in full later."""
        found = next((part for part in self.of(kind) if part.name == name), None)
        if found is None:
            return self.begin(kind, name, indent)
        found.indent = indent
        return found

    def begin(self, kind: str, name: str, indent: int) -> _Part:
        """A new part, in the array that is being read."""
        self.parts.append(_Part(kind, name, indent, array=self.array))
        return self.parts[-1]


def parse_controllers(text: str) -> ToolFacts:
    """What `ctrl all show config detail` and its shorter forms print.

    Raises ToolError for the tool's own error, and for a text that names no controller and does not say that there is
    none.
    """
    controllers: list[_Controller] = []
    notes: list[str] = []
    errors: list[str] = []
    part: _Part | None = None
    for raw in text.splitlines():
        line = read_line(raw)
        if line is None:
            continue
        header = _header(line)
        if header is not None:
            controllers.append(header)
            part = None
        elif line.label.lower() == "error":
            errors.append(line.value)
        elif not controllers and errors:
            errors[-1] += f" {line.text}"
        elif not controllers:
            notes.append(line.text)
        else:
            part = _take(controllers[-1], part, line)
    refused = [error for error in errors if _NONE not in error.lower()]
    if refused:
        raise ToolError(f"ssacli refused: {refused[0][:300]}")
    if not controllers and not errors:
        raise ToolError(f"ssacli names no controller, but says: {' '.join(notes)[:200] or 'nothing'}")
    for each in (part for controller in controllers for part in controller.of("unknown")):
        owned = [label for label in each.fields if plain_label(label) in _OWNED]
        if owned:
            raise ToolError(
                f"ssacli printed {owned[0]!r} under {each.name[:80]!r}, which is no known drive or volume"
            )
        notes += [each.name, *(f"{each.name}: {label}: {value}" for label, value in each.fields.printed().items())]
    return ToolFacts(tuple(_adapter(controller) for controller in controllers), tuple(notes))


def _header(line: Line) -> _Controller | None:
    """The controller that a line begins."""
    match = (_HEADER.match(line.text) or _CHASSIS.match(line.text)) if line.indent == 0 else None
    if match is None:
        return None
    serial = _SERIAL.search(line.text)
    slot = _SERIAL.sub("", match.group("slot")).strip()
    return _Controller(match.group("model"), slot, serial.group("serial") if serial else "")


def _take(controller: _Controller, part: _Part | None, line: Line) -> _Part | None:
    """One line of a controller; the part that the next lines belong to."""
    begun = _begin(controller, part, line)
    if begun is not None:
        return begun
    if line.text.lower() in _PLAIN:
        controller.array = ""
        return None
    if not line.labelled:
        return controller.begin("unknown", line.text, line.indent)
    if part is not None and line.indent > part.indent:
        if line.label in part.fields and plain_label(line.label) in _ONCE:
            raise ToolError(f"ssacli tells {line.label!r} of {part.name[:60]!r} twice: a heading was not understood")
        part.fields.add(line.label, line.value)
        return part
    if plain_label(line.label) in _OWNED:
        raise ToolError(f"ssacli printed {line.text[:80]!r}, which belongs to no drive and no volume")
    controller.settings.add(line.label, line.value)
    return None


def _begin(controller: _Controller, part: _Part | None, line: Line) -> _Part | None:
    """The part that a line begins; None when it begins none."""
    drive, volume, array = _DRIVE.match(line.text), _VOLUME.match(line.text), _ARRAY.match(line.text)
    if drive is not None:
        return _drive_line(
            controller, part, line, drive.group("position"), drive.group("summary"), drive.group("state")
        )
    if volume is not None:
        found = controller.named("volume", volume.group("id"), line.indent)
        size, level, state, after = volume.group("size", "level", "state", "after")
        found.short = Fields({"Size": size, "Fault Tolerance": level, "Status": state or after or ""})
        return found
    if array is not None:
        controller.array = array.group("name")
        found = controller.begin("array", controller.array, line.indent)
        found.short = _remarks(array.group("remarks") or "", array.group("state") or "")
        return found
    kind = _BEGINS.get(plain_label(line.label)) if line.labelled else None
    if kind is not None:
        controller.array = line.value if kind == "array" else controller.array
        return (controller.named if kind == "volume" else controller.begin)(kind, line.value, line.indent)
    if not line.labelled and _ENCLOSURE.match(line.text):
        controller.array = ""
        return controller.begin("enclosure", line.text, line.indent)
    return None


def _remarks(remarks: str, state: str) -> Fields:
    """What stands in brackets behind an array: `SAS, Unused Space: 0  MB`, `Failed`."""
    found = Fields({"Status": state} if state else None)
    for word in remarks.split(","):
        label, colon, value = word.partition(":")
        if colon:
            found.add(label.strip(), value.strip())
        elif re.search(r"\bfail|\boffline|\bok\b", word, re.IGNORECASE):
            found.add("Status", word.strip())
        elif word.strip():
            found.add("Interface Type", word.strip())
    return found


def _drive_line(
    controller: _Controller, part: _Part | None, line: Line, position: str, summary: str | None, state: str | None
) -> _Part:
    """A drive, in full or in short; one in short below a volume is a member of its mirror group."""
    if summary is not None and part is not None and part.kind == "volume" and line.indent > part.indent:
        part.members.append(position)
        return part
    drive = controller.named("drive", position, line.indent)
    drive.array = controller.array or drive.array
    if summary is not None:
        words = [word.strip() for word in summary.split(",")]
        size = next((word for word in words if _SIZE.match(word)), "")
        place = words.index(size) if size else len(words) - 1
        told = words[place + 1 :] if size else words[-1:]
        spare = [word for word in told if "spare" in word.lower()]
        plain = [word for word in told if word not in spare]
        drive.short = Fields({"Size": size, "Status": state or ", ".join(plain)})
        if size and place > 1:
            drive.short.add("Interface Type", ", ".join(words[1:place]))
        if spare:
            drive.short.add("Drive Type", "Spare Drive")
    return drive


def _adapter(controller: _Controller) -> AdapterFacts:
    settings = controller.settings
    wrong = [f"{name}: {settings.get(name)}" for name in _HEALTH if settings.get(name) not in ("", "OK")]
    wrong += [f"{name}: {value}" for name, value in settings.without(*_HEALTH).items() if _TROUBLE.match(value)]
    version = _version(settings.get("Firmware Version"))
    ports = tuple(_port(part) for part in controller.of("port"))
    return AdapterFacts(
        index=controller.slot,
        model=controller.model,
        vendor="HPE",
        serial=settings.get("Serial Number") or controller.serial,
        pci=settings.get(_PCI, "PCI Address").lower(),
        driver=settings.get("Driver Name"),
        driver_version=settings.get("Driver Version"),
        firmware={"firmware": version} if version else {},
        health="; ".join(wrong) or settings.get("Controller Status"),
        settings=settings.printed(),
        drives=tuple(_drive(part, [port.wwn for port in ports]) for part in controller.of("drive")),
        volumes=(*(_volume(part, controller) for part in controller.of("volume")), *_without_volume(controller)),
        ports=ports,
        enclosures=tuple(dict.fromkeys(_enclosure(part) for part in controller.of("enclosure"))),
    )


def _version(text: str) -> str:
    """A revision without the remark in brackets behind it."""
    return text.partition(" (")[0].strip()


def _port(part: _Part) -> PortFacts:
    wwn = printed_wwn(part.fields.get("SAS Address"))
    return PortFacts(part.name, wwn=wwn, link=part.fields.get("Port Location"))


def _drive(part: _Part, ports: list[str]) -> DriveFacts:
    vendor, blank, model = part.get("Model").partition(" ")
    wwn = printed_wwn(part.get("WWID"))
    size = part.get("Size")
    return DriveFacts(
        position=part.name,
        # a SATA drive has no name of its own there, the controller lends it one
        wwn="" if wwn.startswith("0x3") or any(same_maker(wwn, port) for port in ports) else wwn,
        serial=part.get("Serial Number"),
        vendor=vendor if blank else "",
        model=model.strip() if blank else vendor,
        revision=_version(part.get("Firmware Revision")),
        # drives are printed as on their label
        size=printed_size(size, base=1000) or None,
        size_range=size_range(size, base=1000) if printed_size(size, base=1000) else None,
        state=part.get("Status"),
        # the short line says more (`SAS HDD`) than the label (`SAS`)
        media=part.short.get("Interface Type") or part.get("Interface Type"),
        settings=part.fields.without("Serial Number", "Model", "Status", "Interface Type"),
    )


def _volume(part: _Part, controller: _Controller) -> VolumeFacts:
    state, own = _array_state(part.get("Status"), part.array, controller), _own(part.array, controller)
    spares = tuple(drive.name for drive in own if "spare" in drive.get("Drive Type").lower())
    under_way = _progress(part)
    unread = part.fields.without("Status", "Logical Drive Label").values()
    sound = not any(_UNSOUND.match(value) for value in unread)
    size, device = part.get("Size"), part.get("Disk Name").split()
    return VolumeFacts(
        id=part.name,
        name=part.get("Logical Drive Label"),
        wwn=printed_wwn(part.get("Unique Identifier")),
        level=_level(part.get("Fault Tolerance")),
        state=state,
        size=printed_size(size, base=1024),
        size_range=size_range(size, base=1024),
        strip=printed_size(part.get("Strip Size", "Stripe Size"), base=1024),
        members=tuple(part.members) or tuple(drive.name for drive in own if drive.name not in spares),
        spares=spares,
        policies=_policies(part, controller.settings),
        progress=under_way,
        # older releases print the mount points in the same line
        device=device[0] if device and device[0].startswith("/") else "",
        healthy=(state == "OK" and not under_way and sound) if state else None,
        settings=part.fields.without("Logical Drive Label", "Unique Identifier", "Fault Tolerance", "Status", "Size"),
    )


def _own(array: str, controller: _Controller) -> list[_Part]:
    """The drives of an array."""
    return [drive for drive in controller.of("drive") if array and drive.array == array]


def _array_state(state: str, array: str, controller: _Controller) -> str:
    """The state of a volume: that of its array, where the array failed and the volume is still called OK."""
    told = next((part.get("Status") for part in controller.of("array") if part.name == array), "")
    return told if "fail" in told.lower() and state in ("", "OK") else state


def _without_volume(controller: _Controller) -> Iterator[VolumeFacts]:
    """Arrays that failed and whose volumes are not listed any more."""
    there = {part.array for part in controller.of("volume")}
    for part in controller.of("array"):
        if "fail" in part.get("Status").lower() and part.name not in there:
            members = tuple(drive.name for drive in _own(part.name, controller))
            yield VolumeFacts(f"array {part.name}", state=part.get("Status"), members=members, healthy=False)


def _level(text: str) -> str:
    """`RAID 1+0` and `6 (ADG)` as a drop writes them."""
    plain = re.sub(r"raid", "", text, flags=re.IGNORECASE).split("(")[0].strip()
    return {"1+0": "10", "5+0": "50", "6+0": "60"}.get(plain, plain)


def _progress(part: _Part) -> dict[str, float]:
    """Percent by task: `Recovering, 32% complete`, and the parity of a new volume."""
    found: dict[str, float] = {}
    state = part.get("Status").lower()
    task = next((name for word, name in _TASKS if word in state), "")
    percent = _PERCENT.search(state)
    if task:
        found[task] = float(percent.group("percent")) if percent else 0.0
    if part.get("Parity Initialization Status").lower() in ("in progress", "queued"):
        percent = _PERCENT.search(part.get("Parity Initialization Progress"))
        found["initialise"] = float(percent.group("percent")) if percent else 0.0
    return found


def _policies(part: _Part, settings: Fields) -> dict[str, Value]:
    """Write-back needs the accelerator on and a share of the cache for writes."""
    found: dict[str, Value] = {}
    caching, ratio = part.get("Caching", "Array Accelerator").lower(), settings.get("Cache Ratio").lower()
    if caching == "disabled" or (caching == "enabled" and re.search(r"(?<!\d)0% write$", ratio)):
        found["write_policy"] = "wt"
    elif caching == "enabled" and ratio.endswith("write"):
        found["write_policy"] = "wb"
    cache = settings.get("Drive Write Cache", "Configured Drive Write Cache Policy").lower()
    word = cache[:-1] if cache in ("enabled", "disabled") else cache
    if word in ("enable", "disable", "default"):
        found["disk_cache"] = word
    return found


def _enclosure(part: _Part) -> EnclosureFacts:
    place = _AT_PORT.search(part.name)
    if bool(part.fields.get("Port")) != bool(part.fields.get("Box")) and place is None:
        raise ToolError(f"ssacli tells half of where {part.name[:80]!r} is")
    port, box, bays = (part.fields.get(name) for name in ("Port", "Box", "Drive Bays"))
    return EnclosureFacts(
        position=":".join(place.groups()) if place else f"{port}:{box}" if port and box else part.name,
        vendor=part.fields.get("Vendor ID"),
        model=part.fields.get("Model") or part.name,
        slots=int(bays) if bays.isascii() and bays.isdigit() else None,
        state=part.name.rsplit(", ", 1)[-1] if ", " in part.name and "(" not in part.name else "",
    )
