# SPDX-License-Identifier: Apache-2.0
"""ssacli (hpssacli, hpacucli before): HPE Smart Array controllers. It prints an indented tree and no JSON.

A drive or a volume stands there in short (one line, its facts in brackets) or in full (a line, then labels below it);
what is said of ports, sensors, arrays and enclosures is kept among the settings of the controller.

What is known: the tree (recorded), `create type=ld` and `delete` (documented: other people's code runs them), the
return codes of a Smart Component (documented: HP Smart Update Manager guide). Words of `create` that only a manual
names are looked for in the tool's own help first. How policies are modified is not verified, so it is not offered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import dedent
from typing import Iterator, Mapping

from ..host.identity import printed_wwn, same_maker
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import (
    BYTE_ORDER_MARK,
    Fields,
    PrintedLine,
    plain_label,
    printed_size,
    printed_value,
    read_line,
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
    read_or_why,
)

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
_MAKE = re.compile(r"\(Vendor ID (?P<vendor>[^,()]+), Model (?P<model>[^()]+)\)", re.IGNORECASE)
_AT_PORT = re.compile(r" at Port (?P<port>\w+), Box (?P<box>\d+)\b", re.IGNORECASE)
# an expander card is told without a port, and nothing but this
_CARD_LABELS = {"devicenumber", "firmwareversion", "hardwarerevision", "wwid", "box", "vendorid", "model"}
_UNSOUND = re.compile(
    r"(?:initialization (?:failed|not)|in progress|queued|failed|degraded|rebuild|recover|pending|detected)",
    re.IGNORECASE,
)
_MODE = re.compile(r"^(?P<name>\S+) \((?P<mode>[^()]*)\)$")
_BAYS = re.compile("[0-9]{1,9}")
_COUNTS = {
    "array": ("Number of Arrays", "Arrays"),
    "volume": ("Number of Logical Drives", "Logical Drives"),
    "drive": ("Number of Physical Drives", "Physical Drives"),
    "port": ("Number of Ports", "Ports"),
}
_OF_HPE = re.compile(r"(?:HPE?|Dynamic|Smart|MSA|RAID|RA|P|E)\b|MSA|RA\d", re.IGNORECASE)


@dataclass
class TreePart:
    """One object of the tree; `short` is what its line in short said, `outer` what a part that is not known is in.

    `wrong` is why it cannot be read whole.
    """

    kind: str
    name: str
    indent: int
    fields: Fields = field(default_factory=Fields)
    short: Fields = field(default_factory=Fields)
    members: list[str] = field(default_factory=list)
    array: str = ""
    outer: TreePart | None = None
    wrong: str = ""

    def get(self, *labels: str) -> str:
        return self.fields.get(*labels) or self.short.get(*labels)


@dataclass
class SmartArray:
    """One controller while it is read."""

    model: str
    slot: str
    serial: str = ""
    settings: Fields = field(default_factory=Fields)
    parts: list[TreePart] = field(default_factory=list)
    array: str = ""
    array_indent: int = 0
    odd: dict[str, tuple[bool, str]] = field(default_factory=dict)

    def lose(self, name: str, why: str, *, drive: bool = False) -> None:
        """Keep what may be a volume (or a drive) and was not understood as one."""
        self.odd.setdefault(name[:80], (drive, why))

    def of(self, kind: str) -> Iterator[TreePart]:
        return (part for part in self.parts if part.kind == kind)

    def named(self, kind: str, name: str, indent: int) -> TreePart:
        """The drive or volume of this name: it is listed in short first and in full later."""
        match = next((part for part in self.of(kind) if part.name == name), None)
        if match is None:
            return self.begin(kind, name, indent)
        match.indent = indent
        return match

    def begin(self, kind: str, name: str, indent: int) -> TreePart:
        self.parts.append(TreePart(kind, name, indent, array=self.array))
        return self.parts[-1]


def go_on(controllers: list[SmartArray], header: SmartArray) -> None:
    """Make the controller of a header the last one: a release repeats the header before each drive of an HBA."""
    for known in controllers:
        if known.slot and (known.model, known.slot, known.serial) == (header.model, header.slot, header.serial):
            controllers.remove(known)
            known.array = ""
            header = known
            break
    controllers.append(header)


def adapter_of(controller: SmartArray) -> AdapterFacts:
    """The facts of a controller, of its drives, volumes, ports and enclosures. Raises ToolError."""
    settings = controller.settings
    wrong = [f"{name}: {settings.get(name)}" for name in _HEALTH if settings.get(name) not in _WELL]
    wrong += [f"{name}: {value}" for name, value in settings.without(*_HEALTH).items() if _TROUBLE.match(value)]
    wrong += [f"{name}: {value}" for name, value in settings.printed().items() if PROBLEM.search(name)]
    version = _version(settings.get("Firmware Version"))
    ports = tuple(_port(part) for part in controller.of("port"))
    # whatever label a name of theirs stands behind
    expanders = [
        printed_wwn(value) for part in controller.of("enclosure") for value in part.fields.printed().values()
    ]
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
        drives=all_but_odd(
            [
                *(_drive(part, [port.wwn for port in ports], expanders) for part in controller.of("drive")),
                *(DriveFacts(name, unread=why) for name, (drive, why) in controller.odd.items() if drive),
            ],
            [*controller.of("volume")],
        ),
        volumes=all_but_odd(
            [
                *(_volume(part, controller) for part in controller.of("volume")),
                *(VolumeFacts(name, unread=why) for name, (drive, why) in controller.odd.items() if not drive),
                *_without_volume(controller),
            ],
            [*controller.of("drive")],
        ),
        ports=ports,
        enclosures=tuple(dict.fromkeys(_enclosure(part) for part in controller.of("enclosure"))),
        unread=_miscounted(controller),
    )


def _miscounted(controller: SmartArray) -> str:
    """Why what is told of a controller is not all, by its counts and its own labels; empty when it is."""
    strange = next((part.name for part in controller.of("unknown") if part.fields.get(*_HEALTH)), "")
    if strange:
        return f"what ssacli tells of a controller stands under {strange[:80]!r}, which is not understood"
    for kind in ("array", "volume", "drive", "port"):
        told_of, listed = _COUNTS[kind], len({part.name for part in controller.of(kind)})
        count = whole_number(controller.settings.get(*told_of))
        if count not in (None, listed) and (listed or kind != "port"):
            return f"the controller in slot {controller.slot} reports {count} ({told_of[0]}) and lists {listed}"
    return ""


def _around(controller: SmartArray) -> dict[str, str]:
    """What is told of ports, sensors, arrays and enclosures and has no field of its own."""
    settings = {}
    for part in controller.parts:
        if part.kind in ("port", "sensor", "array", "enclosure"):
            name = part.name if part.kind == "enclosure" else f"{part.kind} {part.name}"
            labels = {**part.short.printed(), **part.fields.printed()}
            settings.update({f"{name}: {label}": value for label, value in labels.items()})
    return settings


def _version(text: str) -> str:
    return text.partition(" (")[0].strip()


def _port(part: TreePart) -> PortFacts:
    wwn = printed_wwn(part.fields.get("SAS Address"))
    mode = _MODE.match(part.name)
    if mode is not None:
        part.name = mode.group("name")
        part.short.add("Port Mode", mode.group("mode"))
    return PortFacts(part.name, wwn=wwn, link=part.fields.get("Port Location"))


def _drive(part: TreePart, ports: list[str], expanders: list[str]) -> DriveFacts:
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
        unread=part.wrong,
    )


def _volume(part: TreePart, controller: SmartArray) -> VolumeFacts:
    state, own = _array_state(part.get("Status"), part.array, controller), _own(part.array, controller)
    spares = tuple(drive.name for drive in own if "spare" in drive.get("Drive Type").lower())
    under_way = _progress(part)
    unread = part.fields.without("Status", "Logical Drive Label").values()
    sound = not any(_UNSOUND.match(value) for value in unread)
    size, device = part.get("Size"), part.get("Disk Name").split()
    members = tuple(part.members) or tuple(drive.name for drive in own if drive.name not in spares)
    states = {drive.name: drive.get("Status").lower() for drive in controller.of("drive")}
    failed = tuple(name for name in members if states.get(name, "").startswith("failed"))
    odd = part.wrong
    if len(set(members)) != len(members):
        odd = odd or f"logical drive {part.name} lists a drive twice: {', '.join(members)[:200]}"
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
        healthy=None if odd or not printed_value(state) else state == "OK" and not under_way and not failed and sound,
        # a size that is no size stays as it was printed
        settings=part.fields.without(*_VOLUME_LABELS, *(("Size",) if printed_size(size, base=1024) else ())),
        unread=odd,
    )


def _own(array: str, controller: SmartArray) -> list[TreePart]:
    return [drive for drive in controller.of("drive") if array and drive.array == array]


def _array_state(state: str, array: str, controller: SmartArray) -> str:
    """The state of a volume: that of its array, where the array failed and the volume is still called OK."""
    status = next((part.get("Status") for part in controller.of("array") if part.name == array), "")
    return status if "fail" in status.lower() and state in ("", "OK") else state


def _without_volume(controller: SmartArray) -> Iterator[VolumeFacts]:
    there = {part.array for part in controller.of("volume")}
    for part in controller.of("array"):
        if "fail" in part.get("Status").lower() and part.name not in there:
            members = tuple(drive.name for drive in _own(part.name, controller))
            yield VolumeFacts(f"array {part.name}", state=part.get("Status"), members=members, healthy=False)


def _level(text: str) -> str:
    """`RAID 1+0` and `6 (ADG)` as a drop writes them."""
    plain = re.sub(r"raid", "", text, flags=re.IGNORECASE).split("(")[0].strip()
    return {"1+0": "10", "5+0": "50", "6+0": "60"}.get(plain, plain)


def _progress(part: TreePart) -> dict[str, float]:
    """Percent by task: `Recovering, 32% complete`, and the parity of a new volume."""
    percents: dict[str, float] = {}
    state = part.get("Status").lower()
    task = next((name for word, name in _TASKS if word in state), "")
    percent = _PERCENT.search(state)
    if task:
        percents[task] = float(percent.group("percent")) if percent else 0.0
    if part.get("Parity Initialization Status").lower() in ("in progress", "queued"):
        percent = _PERCENT.search(part.get("Parity Initialization Progress"))
        percents["initialise"] = float(percent.group("percent")) if percent else 0.0
    return percents


def _policies(part: TreePart, settings: Fields) -> dict[str, Value]:
    policies: dict[str, Value] = {}
    caching = part.get("Caching", "Array Accelerator").lower()
    ratio = settings.get("Cache Ratio", "Accelerator Ratio").lower()
    if caching == "disabled" or (caching == "enabled" and re.search(r"(?<!\d)0% write$", ratio)):
        policies["write_policy"] = "wt"
    elif caching == "enabled" and ratio.endswith("write"):
        policies["write_policy"] = "wb"
    cache = settings.get("Drive Write Cache", "Configured Drive Write Cache Policy").lower()
    word = cache[:-1] if cache in ("enabled", "disabled") else cache
    if word in ("enable", "disable", "default"):
        policies["disk_cache"] = word
    return policies


def _enclosure(part: TreePart) -> EnclosureFacts:
    place = _AT_PORT.search(part.name)
    # the controller's own processor is at no port
    alone = part.fields.get("Port").lower() == "unknown" or {*map(plain_label, part.fields)} <= _CARD_LABELS
    half = not alone and bool(part.fields.get("Port")) != bool(part.fields.get("Box")) and place is None
    make = _MAKE.search(part.name)
    # `… Box 1 (Index 0), OK`
    pieces = part.name[place.end() if place else 0 :].rpartition(", ")
    port, box, bays = (part.fields.get(name) for name in ("Port", "Box", "Drive Bays"))
    return EnclosureFacts(
        position=":".join(place.groups()) if place else f"{port}:{box}" if port and box else part.name,
        vendor=part.fields.get("Vendor ID") or (make.group("vendor") if make else ""),
        model=part.fields.get("Model")
        or (make.group("model") if make else part.name[: place.start()] if place else part.name).strip(),
        slots=int(bays) if _BAYS.fullmatch(bays) else None,
        state=f"ssacli gives only part of where {part.name[:80]!r} is"
        if half
        else pieces[2]
        if pieces[1] and not set(pieces[2]) & set("()")
        else "",
    )


PROGRAMS = ("ssacli", "hpssacli", "hpacucli")

_LOOK_TIMEOUT = 180.0
_CHANGE_TIMEOUT = 600.0
_FLASH_TIMEOUT = 3600.0
_COMPONENT = {
    2: "it did not try: the hardware is not there, or it holds this version already",
    3: "it failed, or the version is older than the one there; see its log in /var/cpq",
    4: "it did not find its target",
    5: "somebody cancelled it",
    6: "something it depends on is missing",
    7: "the installation itself failed",
}


def _ask(runner: Runner, *words: str, timeout: float = _LOOK_TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, words, timeout=timeout)


def _do(runner: Runner, *words: str) -> None:
    """A change: the status and the text must both be good."""
    ended = _ask(runner, *words, timeout=_CHANGE_TIMEOUT)
    lines = (ended.stdout.strip() or ended.stderr.strip()).splitlines()
    if ended.rc != 0 or any(line.strip().startswith("Error") for line in lines):
        detail = " ".join(line.strip() for line in lines)[:300] or "nothing"
        raise ToolError(f"the controller in slot {words[1][5:]} refused: {detail}; command: {ended.line}")


def read_facts(runner: Runner) -> ToolFacts:
    """All controllers with their drives and volumes. Raises ToolError."""
    return parse_controllers(_ask(runner, "ctrl", "all", "show", "config", "detail").stdout)


def _adapter_at(runner: Runner, index: str) -> AdapterFacts:
    ended = _ask(runner, "ctrl", f"slot={index}", "show", "config", "detail")
    adapters = [adapter for adapter in parse_controllers(ended.stdout).adapters if adapter.index == index]
    if not adapters:
        raise ToolError(f"ssacli shows no controller in slot {index}; command: {ended.line}")
    return adapters[0]


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The firmware version; this tool does not tell of one that waits for a boot. Raises ToolError."""
    return _adapter_at(runner, index).firmware


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:  # noqa: ARG001
    """A Smart Component flashes every controller it fits and cannot be told which one, so another one forbids it."""
    return tuple(
        f"a Smart Component flashes every controller it fits, and there is another one in slot {adapter.index}: "
        "take it out, or flash by hand"
        for adapter in read_facts(runner).adapters
        if adapter.index != index
    )


def download(runner: Runner, index: str, image: FirmwareImage) -> None:  # noqa: ARG001 - it knows no slot
    """Run a Smart Component (self-extracting, `CP…scexe`): the tool itself flashes nothing. Raises ToolError."""
    ended = runner(["sh", image.path, "-s", "-f"], timeout=_FLASH_TIMEOUT)
    if ended.rc not in (0, 1):
        reason = _COMPONENT.get(ended.rc, "its manual does not explain that status")
        raise ToolError(f"the Smart Component {image.path} ended with status {ended.rc}: {reason}")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:  # noqa: ARG001 - the capability's arguments
    return "reboot"


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """All volumes of the controller in a slot. Raises ToolError."""
    return _adapter_at(runner, index).volumes


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """A policy, a name or an initialisation: how they are set is not verified."""
    unknown = request.asks("policies", "name", "initialisation")
    refusal = f"how ssacli sets {', '.join(unknown)} of a new volume is not verified; leave it out of the drop"
    wrong = request.strip_objection(1 << 10, 1 << 20)
    return (*((refusal,) if unknown else ()), *((wrong,) if wrong else ()))


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    level = {"10": "1+0"}.get(request.level, request.level)
    words = [f"drives={','.join(request.members)}", f"raid={level}"]
    extra = [f"ss={request.strip // 1024}"] if request.strip is not None else []
    extra += [f"spares={','.join(request.spares)}"] if request.spares else []
    known = _ask(runner, "help", "create").stdout if extra else ""
    missing = [name for name in (word.partition("=")[0] for word in extra) if f"{name}=" not in known]
    if missing:
        raise ToolError(f"`ssacli help create` does not know {', '.join(missing)}; leave it out of the drop")
    _do(runner, "ctrl", f"slot={index}", "create", "type=ld", *words, *extra, "forced")


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume. Raises ToolError."""
    _do(runner, "ctrl", f"slot={index}", "ld", volume.id, "delete", "forced")


def resolve(runner: Runner, node: str) -> tuple[str, ...]:
    """The drives behind a block device of a Smart Array, spares among them. Raises ToolError."""
    for adapter in read_facts(runner).adapters:
        drives = {drive.position: drive.wwn or drive.serial for drive in adapter.drives}
        for volume in adapter.volumes:
            if volume.device == node and volume.unread:
                raise ToolError(volume.unread)
            if volume.device == node:
                return tuple(drives.get(position, position) for position in (*volume.members, *volume.spares))
    return ()


_HEADER = re.compile(r"^(?P<model>\S.*?) in Slot (?P<slot>\w+)\b(?P<rest>.*)$", re.IGNORECASE)
# an array of drives with controllers of its own is named by its chassis, not by a slot
_CHASSIS = re.compile(r"^(?P<model>(?:MSA|RAID Array|RA)\s?\S*.*?) in (?P<slot>\S.*)$")
_SERIAL = re.compile(r"\(sn:\s*(?P<serial>\S+?)\s*\)", re.IGNORECASE)
_DRIVE = re.compile(
    r"^physicaldrive (?P<position>[^\s(]+)(?: +\((?P<summary>.*)\))?(?:: (?P<state>[^()]+))?$", re.IGNORECASE
)
_VOLUME = re.compile(
    r"^logicaldrive (?P<id>\d+) +\((?P<size>[^,]+), (?P<level>[^,]*?)(?:, (?P<state>[^()]*(?:\([^()]*\))?))?\)"
    r"(?:: (?P<after>[^()]+))?$",
    re.IGNORECASE,
)
# arrays are called A to Z and on with AA, so that the label `Array Accelerator` is none
_ARRAY = re.compile(
    r"^array:? (?P<name>[A-Z]{1,2})(?: +\((?P<remarks>.*)\))?(?:: (?P<state>[^()]+))?$", re.IGNORECASE
)
_ENCLOSURE = re.compile(r"^(?:Enclosure SEP\b|SEP\b|Expander\b|.* at Port |.* SEP \d+$)", re.IGNORECASE)
_SHORT_ENCLOSURE = re.compile(
    r"^(?P<name>(?:Enclosure SEP|SEP|Expander)\b.*?) +\((?P<told>[^():]+: .*)\)$", re.IGNORECASE
)
# a drive that does not answer has a size of dashes
_SIZE = re.compile(r"^(?:\d+(?:\.\d+)?|[-?]+)\s*[KMGTP]i?B$", re.IGNORECASE)
_LISTED = re.compile(r"(?:physical|logical)drive\b|\S.*\((?:[^()]*, )?RAID [^()]*\)", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"(?:physicaldrive|logicaldrive|array) ", re.IGNORECASE)
_BEGINS = {"logicaldrive": "volume", "portname": "port", "sensorid": "sensor", "array": "array"}
_STATUSES = ("controllerstatus", "cachestatus", "batterycapacitorstatus", "batterystatus", "capacitorstatus")
_PLAIN = ("unassigned", "unassigned drives", "physical drives", "none attached", "hba drives")
_NONE = "no controllers detected"
# a paragraph for people, which may stand anywhere and ends with a blank line
_NOTICE = re.compile(r"(?:Warning|Caution|Note|Notice|FIRMWARE UPGRADE REQUIRED)\s*:", re.IGNORECASE)
# labels that nothing but a drive or a volume has: where they stand alone, its heading was not understood
_OWNED = (
    *("portid", "portlocation", "rotationalspeed", "phycount", "drivetype", "faulttolerance", "uniqueidentifier"),
    *("stripsize", "diskname", "mountpoints"),
)
# of these, what an array, a port, a sensor and an enclosure have none of
_INNER = _OWNED[_OWNED.index("rotationalspeed") :]
_OF_PORTS = _OWNED[: _OWNED.index("rotationalspeed")]
_OF_DRIVES = _OWNED[: _OWNED.index("faulttolerance")]
# labels that one object has once, so that a second one belongs to an object whose heading was not understood
_ONCE = ("portid", "sasaddress", "serialnumber", "wwid", "uniqueidentifier", "faulttolerance")


def parse_controllers(text: str) -> ToolFacts:
    """What `ctrl all show config detail` and its shorter forms print.

    Raises ToolError for the tool's own error, and for a text that names no controller and does not say that there is
    none.
    """
    controllers: list[SmartArray] = []
    # a text that was copied may stand further in as a whole
    lines, notes = _without_notices(dedent(text))
    errors: list[str] = []
    part: TreePart | None = None
    if lines and all(plain_label(line.label) in _STATUSES for line in lines):
        # `show status`, cut from what stands around it
        controllers.append(SmartArray("", ""))
    for line, following in zip(lines, [*lines[1:], None]):
        header = _header(line)
        if header is not None:
            go_on(controllers, header)
            part = None
        elif line.label.lower() == "error":
            errors.append(line.value)
        elif not controllers and errors:
            errors[-1] += f" {line.text}"
        elif not controllers:
            notes.append(line.text)
        else:
            part = _take(controllers[-1], part, line, following)
    refused = [error for error in errors if _NONE not in error.lower()]
    if refused:
        raise ToolError(f"ssacli refused: {refused[0][:300]}")
    headless = next(filter(_LISTED.match, notes), "")
    if headless or not (controllers or errors):
        words = headless or " ".join(notes) or "nothing"
        raise ToolError(
            f"ssacli names no controller{' before it lists' if headless else ', but says'}: {words[:200]}"
        )
    for controller in controllers:
        for each in [*controller.of("unknown")]:
            told_of = each.fields.printed().items()
            notes += [each.name, *(f"{each.name}: {label}: {value}" for label, value in told_of)]
            _look_into(controller, each)
    adapters = [
        read_or_why(partial(adapter_of, each), AdapterFacts(each.slot, each.model, serial=each.serial))
        for each in controllers
    ]
    return ToolFacts(all_but_odd(adapters), tuple(notes))


def _look_into(controller: SmartArray, part: TreePart) -> None:
    """Whether what stands under a heading that is not known may be a port, a drive or a volume."""
    owned = [label for label in part.fields if plain_label(label) in _OWNED]
    plain = {*map(plain_label, owned)}
    drive = part.name.lower().startswith("physicaldrive") or bool(plain & {*_OF_DRIVES})
    if _LISTED.match(part.name):
        name = part.name.split("(")[0].partition(" ")[2].strip() or part.name
        controller.lose(name, f"ssacli listed {part.name[:100]!r}, which is not understood", drive=drive)
    elif plain and plain <= {*_OF_PORTS}:
        part.kind, part.name = "port", ""
    elif owned:
        why = f"ssacli printed {owned[0]!r} under {part.name[:80]!r}, which is not a known drive or volume"
        controller.lose(part.name, why, drive=drive)


def _without_notices(text: str) -> tuple[list[PrintedLine], list[str]]:
    """The lines of a text that are not empty, without those of the paragraphs for people; and these."""
    lines: list[PrintedLine] = []
    notices: list[str] = []
    notice: PrintedLine | None = None
    before: PrintedLine | None = None
    for line in map(read_line, text.lstrip(BYTE_ORDER_MARK).splitlines()):
        if line is not None and lines and notice is None and _unended(lines[-1]) and before is not None:
            # what stands in brackets behind a drive, a volume or an array was wrapped
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text} {line.text}", label="", value="")
            continue
        if line is not None and notice is None and _goes_on(before, line):
            lines[-1] = before = replace(lines[-1], value=f"{lines[-1].value} {line.text.lstrip(': ')}")
            continue
        before = line
        if line is None or _header(line) is not None or _LISTED.match(line.text):
            notice = None
        elif _NOTICE.match(line.text):
            notice = line
        elif notice is not None and line.labelled and line.indent >= (notice.indent or 1):
            notice = None
        if line is not None and notice is not None:
            notices.append(line.text)
        elif line is not None:
            lines.append(line)
    return lines, notices


def _unended(line: PrintedLine) -> bool:
    return line.text.count("(") > line.text.count(")") and bool(_IN_BRACKETS.match(line.text))


def _goes_on(before: PrintedLine | None, line: PrintedLine) -> bool:
    """Whether a line is the rest of the value before it: a sentence that was wrapped goes on at the margin."""
    if before is None or not before.value:
        return False
    if before.value.count("(") > before.value.count(")") and line.indent > before.indent:
        return True
    unended = before.value.endswith(",") and not _LISTED.match(line.text)
    if unended and (line.indent > before.indent or (line.indent == before.indent and not line.labelled)):
        return True
    if line.indent > before.indent and (not line.labelled or line.text[0] in ":(") and not _begins_object(line):
        return True
    if PROBLEM.search(before.label):
        return not line.labelled and line.indent > before.indent
    return before.indent > 0 and line.indent == 0 and not _begins_object(line)


def _begins_object(line: PrintedLine) -> bool:
    begins = (_NOTICE, _LISTED, _ARRAY, _ENCLOSURE)
    return (
        _header(line) is not None
        or line.label.lower() == "error"
        or line.text.lower() in _PLAIN
        or any(pattern.match(line.text) for pattern in begins)
    )


def _header(line: PrintedLine) -> SmartArray | None:
    match = (_HEADER.match(line.text) or _CHASSIS.match(line.text)) if line.indent == 0 else None
    if match is None:
        return None
    serial = _SERIAL.search(line.text)
    slot = _SERIAL.sub("", match.group("slot")).strip()
    controller = SmartArray(match.group("model"), slot, serial.group("serial") if serial else "")
    # `(Embedded) (HBA Mode)`; the oldest controllers have empty brackets there
    remarks = _SERIAL.sub("", match.groupdict().get("rest") or "").strip()
    remarks = re.sub(r"\)\s*\(", ", ", remarks).strip("()")
    if remarks:
        controller.settings.add("Remarks", remarks)
    return controller


def _take(
    controller: SmartArray, part: TreePart | None, line: PrintedLine, following: PrintedLine | None
) -> TreePart | None:
    """One line of a controller; the part that the next lines belong to."""
    if PROBLEM.search(line.label):
        controller.settings.add(line.label, line.value)
        return None
    begun = _begin(controller, part, line)
    if begun is not None:
        if part is not None and part.kind == "unknown" and begun.kind == "volume" and line.indent > part.indent:
            begun.wrong = f"ssacli lists {line.text[:80]!r} under {part.name[:80]!r}, which is not understood"
        return begun
    if line.text.lower() in _PLAIN:
        controller.array = ""
        return None
    # a value of its own, with labels below it: the heading of an object of another release
    if not line.labelled or (line.value and following is not None and following.indent > line.indent):
        return _unknown(controller, part, line)
    while part is not None and part.kind == "unknown" and line.indent <= part.indent:
        part = part.outer
    if part is not None and line.indent > part.indent:
        if part.kind in ("array", "port", "sensor", "enclosure") and plain_label(line.label) in _INNER:
            why = f"ssacli tells {line.label!r} of {part.kind} {part.name[:60]!r}: a heading was not understood"
            controller.lose(f"in {part.kind} {part.name}", why, drive=plain_label(line.label) in _OF_DRIVES)
        if line.label in part.fields and plain_label(line.label) in _ONCE:
            why = f"ssacli tells {line.label!r} of {part.name[:60]!r} twice: a heading was not understood"
            part.wrong = part.wrong or why
            controller.lose(f"after {part.name}", why, drive=part.kind == "drive")
        part.fields.add(line.label, line.value)
        return part
    if plain_label(line.label) in _OWNED:
        why = f"ssacli printed {line.text[:80]!r}, which belongs to no drive and no volume"
        controller.lose(line.text, why, drive=plain_label(line.label) in _OF_DRIVES)
        for before in (*[*controller.of("volume")][-1:], *[*controller.of("drive")][-1:]):
            # it may be of the one before, which a heading that was not understood has ended
            before.wrong = before.wrong or why
    controller.settings.add(line.label, line.value)
    return None


def _unknown(controller: SmartArray, part: TreePart | None, line: PrintedLine) -> TreePart:
    """The part of a heading that is not known: what follows it further in is its own, what follows after is not."""
    if line.indent == controller.array_indent:
        # beside the array, so that what is listed below it is not the array's
        controller.array = ""
    heading = controller.begin("unknown", line.text, line.indent)
    heading.outer = part if part is not None and line.indent > part.indent else None
    return heading


def _begin(controller: SmartArray, part: TreePart | None, line: PrintedLine) -> TreePart | None:
    """The part that a line begins; None when it begins none."""
    drive, volume, array = _DRIVE.match(line.text), _VOLUME.match(line.text), _ARRAY.match(line.text)
    if drive is not None:
        return _drive_line(
            controller, part, line, drive.group("position"), drive.group("summary"), drive.group("state")
        )
    if volume is not None:
        entry = controller.named("volume", volume.group("id"), line.indent)
        size, level, state, after = volume.group("size", "level", "state", "after")
        entry.short = Fields({"Size": size, "Fault Tolerance": level, "Status": state or after or ""})
        return entry
    if array is not None:
        controller.array, controller.array_indent = array.group("name"), line.indent
        entry = controller.begin("array", controller.array, line.indent)
        entry.short = _remarks(array.group("remarks") or "", array.group("state") or "")
        return entry
    enclosure = _SHORT_ENCLOSURE.match(line.text)
    if enclosure is not None:
        controller.array = ""
        entry = controller.begin("enclosure", enclosure.group("name"), line.indent)
        entry.fields = _remarks(enclosure.group("told"), "")
        return entry
    kind = _BEGINS.get(plain_label(line.label)) if line.labelled else None
    if kind is not None:
        if kind == "array":
            controller.array, controller.array_indent = line.value, line.indent
        return (controller.named if kind == "volume" else controller.begin)(kind, line.value, line.indent)
    if not line.labelled and _ENCLOSURE.match(line.text):
        controller.array = ""
        return controller.begin("enclosure", line.text, line.indent)
    return None


def _remarks(remarks: str, state: str) -> Fields:
    """What stands in brackets behind an array or an enclosure: `SAS, Unused Space: 0  MB`, `Failed`, `Port: 1I`."""
    fields = Fields({"Status": state} if state else None)
    for word in remarks.split(","):
        label, colon, value = word.partition(":")
        if colon:
            fields.add(label.strip(), value.strip())
        elif re.search(r"\bfail|\boffline|\bok\b", word, re.IGNORECASE):
            fields.add("Status", word.strip())
        elif word.strip():
            fields.add("Interface Type", word.strip())
    return fields


def _drive_line(
    controller: SmartArray,
    part: TreePart | None,
    line: PrintedLine,
    position: str,
    summary: str | None,
    state: str | None,
) -> TreePart:
    """A drive, in full or in short; one in short below a volume is a member of its mirror group, or its spare."""
    volume = part if part is not None and part.kind == "volume" and line.indent > part.indent else None
    drive = controller.named("drive", position, line.indent)
    drive.array = controller.array or drive.array
    if summary is None:
        return drive
    words = [word.strip() for word in summary.split(",")]
    size = next((word for word in words if _SIZE.match(word)), "")
    place = words.index(size) if size else len(words) - 1
    remarks = words[place + 1 :] if size else words[-1:]
    spare = [word for word in remarks if "spare" in word.lower()]
    plain = [word for word in remarks if word not in spare]
    drive.short = Fields({"Size": size, "Status": state or ", ".join(plain)})
    if size and place > 1:
        drive.short.add("Interface Type", ", ".join(words[1:place]))
    if spare:
        # which drive it stands for, and whether it does already
        drive.short.add("Drive Type", ", ".join(spare))
    elif volume is not None:
        volume.members.append(position)
    return drive if volume is None else volume
