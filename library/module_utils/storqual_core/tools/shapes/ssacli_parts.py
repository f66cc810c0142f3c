# SPDX-License-Identifier: Apache-2.0
"""What ssacli printed of a controller, part by part, and the facts that are made of it.

A drive or a volume stands there in short (one line, its facts in brackets) or in full (a line, then labels below it);
what is said of ports, sensors, arrays and enclosures is kept among the settings of the controller.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator

from ...host.identity import printed_wwn, same_maker
from ...kit.errors import ToolError
from ...kit.labelled_text import Fields, plain_label, printed_size, size_range
from ..capabilities import AdapterFacts, DriveFacts, EnclosureFacts, PortFacts, Value, VolumeFacts

_PERCENT = re.compile(r"(?<![0-9.])(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%")
_TASKS = (("recovering", "rebuild"), ("rebuilding", "rebuild"), ("expan", "reshape"), ("transform", "reshape"))
_HEALTH = ("Controller Status", "Cache Status", "Battery/Capacitor Status")
# a controller without volumes, and one in HBA mode, have no cache to configure
_WELL = ("", "OK", "Not Configured")
_PCI = "PCI Address (Domain:Bus:Device.Function)"
_VOLUME_LABELS = ("Logical Drive Label", "Unique Identifier", "Fault Tolerance", "Status")
_TROUBLE = re.compile(r"(?:failed|degraded|failure|(?:temporarily|permanently) disabled|recharging)\b", re.IGNORECASE)
# `CACHE STATUS PROBLEM DETECTED`, above the labels of a controller that calls itself OK
PROBLEM = re.compile(r"\bproblem detected$", re.IGNORECASE)
_MAKE = re.compile(r"\(Vendor ID (?P<vendor>[^,()]+), Model +(?P<model>[^()]+?) *\)", re.IGNORECASE)
_AT_PORT = re.compile(r" at Port (?P<port>\w+), Box (?P<box>\d+)\b", re.IGNORECASE)
# an expander card is told without a port, and nothing but this
_CARD_LABELS = {"devicenumber", "firmwareversion", "hardwarerevision", "wwid", "box", "vendorid", "model"}
_UNSOUND = re.compile(
    r"(?:initialization (?:failed|not)|in progress|queued|failed|degraded|rebuild|recover|pending)", re.IGNORECASE
)
_MODE = re.compile(r"^(?P<name>\S+) \((?P<mode>[^()]*)\)$")
_BAYS = re.compile("[0-9]{1,9}")
_OF_HPE = re.compile(r"(?:HPE?|Dynamic|Smart|MSA|RAID|RA|P|E)\b|MSA|RA\d", re.IGNORECASE)


@dataclass
class Part:
    """One object of the tree; `short` is what its line in short said, `outer` what a part that is not known is in."""

    kind: str
    name: str
    indent: int
    fields: Fields = field(default_factory=Fields)
    short: Fields = field(default_factory=Fields)
    members: list[str] = field(default_factory=list)
    array: str = ""
    outer: Part | None = None

    def get(self, *labels: str) -> str:
        """A value from the labels below it, else from its short line."""
        return self.fields.get(*labels) or self.short.get(*labels)


@dataclass
class Controller:
    """One controller while it is read."""

    model: str
    slot: str
    serial: str = ""
    settings: Fields = field(default_factory=Fields)
    parts: list[Part] = field(default_factory=list)
    array: str = ""
    array_indent: int = 0

    def of(self, kind: str) -> Iterator[Part]:
        """Its parts of one kind."""
        return (part for part in self.parts if part.kind == kind)

    def named(self, kind: str, name: str, indent: int) -> Part:
        """The drive or volume of this name: it is listed in short first and in full later."""
        found = next((part for part in self.of(kind) if part.name == name), None)
        if found is None:
            return self.begin(kind, name, indent)
        found.indent = indent
        return found

    def begin(self, kind: str, name: str, indent: int) -> Part:
        """A new part, in the array that is being read."""
        self.parts.append(Part(kind, name, indent, array=self.array))
        return self.parts[-1]


def go_on(controllers: list[Controller], header: Controller) -> None:
    """Make the controller of a header the last one: a release repeats the header before each drive of an HBA."""
    for known in controllers:
        if known.slot and (known.model, known.slot, known.serial) == (header.model, header.slot, header.serial):
            controllers.remove(known)
            known.array = ""
            header = known
            break
    controllers.append(header)


def adapter_of(controller: Controller) -> AdapterFacts:
    """The facts of a controller, of its drives, volumes, ports and enclosures. Raises ToolError."""
    settings = controller.settings
    wrong = [f"{name}: {settings.get(name)}" for name in _HEALTH if settings.get(name) not in _WELL]
    wrong += [f"{name}: {value}" for name, value in settings.without(*_HEALTH).items() if _TROUBLE.match(value)]
    wrong += [f"{name}: {value}" for name, value in settings.printed().items() if PROBLEM.search(name)]
    version = _version(settings.get("Firmware Version"))
    ports = tuple(_port(part) for part in controller.of("port"))
    expanders = [printed_wwn(part.get("WWID")) for part in controller.of("enclosure")]
    return AdapterFacts(
        index=controller.slot,
        model=controller.model,
        # the same program is Microchip's for cards of its own
        vendor="HPE" if _OF_HPE.match(controller.model) else controller.model.split(" ")[0],
        serial=settings.get("Serial Number") or controller.serial,
        pci=settings.get(_PCI, "PCI Address").lower(),
        driver=settings.get("Driver Name"),
        driver_version=settings.get("Driver Version"),
        firmware={"firmware": version} if version else {},
        health="; ".join(wrong) or settings.get("Controller Status"),
        settings={**settings.printed(), **_around(controller)},
        drives=tuple(_drive(part, [port.wwn for port in ports], expanders) for part in controller.of("drive")),
        volumes=(*(_volume(part, controller) for part in controller.of("volume")), *_without_volume(controller)),
        ports=ports,
        enclosures=tuple(dict.fromkeys(_enclosure(part) for part in controller.of("enclosure"))),
    )


def _around(controller: Controller) -> dict[str, str]:
    """What is told of ports, sensors, arrays and enclosures and has no field of its own."""
    found = {}
    for part in controller.parts:
        if part.kind in ("port", "sensor", "array", "enclosure"):
            name = part.name if part.kind == "enclosure" else f"{part.kind} {part.name}"
            told = {**part.short.printed(), **part.fields.printed()}
            found.update({f"{name}: {label}": value for label, value in told.items()})
    return found


def _version(text: str) -> str:
    """A revision without the remark in brackets behind it."""
    return text.partition(" (")[0].strip()


def _port(part: Part) -> PortFacts:
    wwn = printed_wwn(part.fields.get("SAS Address"))
    mode = _MODE.match(part.name)
    if mode is not None:
        part.name = mode.group("name")
        part.short.add("Port Mode", mode.group("mode"))
    return PortFacts(part.name, wwn=wwn, link=part.fields.get("Port Location"))


def _drive(part: Part, ports: list[str], expanders: list[str]) -> DriveFacts:
    vendor, blank, model = part.get("Model").partition(" ")
    wwn = printed_wwn(part.get("WWID"))
    size = part.get("Size")
    # a SATA drive has no name of its own there: the controller, or the expander that it is behind, lends it one
    lenders = [*ports, *(expanders if "SATA" in part.get("Interface Type").upper() else ())]
    return DriveFacts(
        position=part.name,
        wwn="" if wwn.startswith("0x3") or any(same_maker(wwn, lender) for lender in lenders) else wwn,
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
        settings={
            **part.short.without("Size", "Status", "Interface Type"),
            **part.fields.without("Serial Number", "Model", "Status", "Interface Type"),
        },
    )


def _volume(part: Part, controller: Controller) -> VolumeFacts:
    state, own = _array_state(part.get("Status"), part.array, controller), _own(part.array, controller)
    spares = tuple(drive.name for drive in own if "spare" in drive.get("Drive Type").lower())
    under_way = _progress(part)
    unread = part.fields.without("Status", "Logical Drive Label").values()
    sound = not any(_UNSOUND.match(value) for value in unread)
    size, device = part.get("Size"), part.get("Disk Name").split()
    members = tuple(part.members) or tuple(drive.name for drive in own if drive.name not in spares)
    states = {drive.name: drive.get("Status").lower() for drive in controller.of("drive")}
    failed = tuple(name for name in members if states.get(name, "").startswith("failed"))
    return VolumeFacts(
        id=part.name,
        name=part.get("Logical Drive Label"),
        wwn=printed_wwn(part.get("Unique Identifier")),
        level=_level(part.get("Fault Tolerance")),
        state=state,
        size=printed_size(size, base=1024),
        size_range=size_range(size, base=1024),
        strip=printed_size(part.get("Strip Size", "Stripe Size"), base=1024),
        members=members,
        spares=spares,
        failed=failed,
        policies=_policies(part, controller.settings),
        progress=under_way,
        # older releases print the mount points in the same line
        device=device[0] if device and device[0].startswith("/") else "",
        # a spare that stands in for a member that failed makes the state OK
        healthy=(state == "OK" and not under_way and not failed and sound) if state else None,
        # a size that is no size stays as it was printed
        settings=part.fields.without(*_VOLUME_LABELS, *(("Size",) if printed_size(size, base=1024) else ())),
    )


def _own(array: str, controller: Controller) -> list[Part]:
    """The drives of an array."""
    return [drive for drive in controller.of("drive") if array and drive.array == array]


def _array_state(state: str, array: str, controller: Controller) -> str:
    """The state of a volume: that of its array, where the array failed and the volume is still called OK."""
    told = next((part.get("Status") for part in controller.of("array") if part.name == array), "")
    return told if "fail" in told.lower() and state in ("", "OK") else state


def _without_volume(controller: Controller) -> Iterator[VolumeFacts]:
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


def _progress(part: Part) -> dict[str, float]:
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


def _policies(part: Part, settings: Fields) -> dict[str, Value]:
    """Write-back needs the accelerator on and a share of the cache for writes."""
    found: dict[str, Value] = {}
    caching, ratio = (
        part.get("Caching", "Array Accelerator").lower(),
        settings.get("Cache Ratio", "Accelerator Ratio").lower(),
    )
    if caching == "disabled" or (caching == "enabled" and re.search(r"(?<!\d)0% write$", ratio)):
        found["write_policy"] = "wt"
    elif caching == "enabled" and ratio.endswith("write"):
        found["write_policy"] = "wb"
    cache = settings.get("Drive Write Cache", "Configured Drive Write Cache Policy").lower()
    word = cache[:-1] if cache in ("enabled", "disabled") else cache
    if word in ("enable", "disable", "default"):
        found["disk_cache"] = word
    return found


def _enclosure(part: Part) -> EnclosureFacts:
    place = _AT_PORT.search(part.name)
    # the controller's own processor is at no port
    alone = (
        part.fields.get("Port").lower() == "unknown" or {plain_label(label) for label in part.fields} <= _CARD_LABELS
    )
    if not alone and bool(part.fields.get("Port")) != bool(part.fields.get("Box")) and place is None:
        raise ToolError(f"ssacli gives only part of where {part.name[:80]!r} is")
    make = _MAKE.search(part.name)
    # `… Box 1 (Index 0), OK`
    told = part.name[place.end() if place else 0 :].rpartition(", ")
    port, box, bays = (part.fields.get(name) for name in ("Port", "Box", "Drive Bays"))
    return EnclosureFacts(
        position=":".join(place.groups()) if place else f"{port}:{box}" if port and box else part.name,
        vendor=part.fields.get("Vendor ID") or (make.group("vendor") if make else ""),
        model=part.fields.get("Model") or (make.group("model") if make else part.name),
        slots=int(bays) if _BAYS.fullmatch(bays) else None,
        state=told[2] if told[1] and not set(told[2]) & set("()") else "",
    )
