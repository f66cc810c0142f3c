# SPDX-License-Identifier: Apache-2.0
"""ssacli (hpssacli, hpacucli before): HPE Smart Array controllers. It prints an indented tree and no JSON.

What is known: the tree (recorded), `create type=ld` and `delete` (documented: other people's code runs them), the
return codes of a Smart Component (documented: HP Smart Update Manager guide). Words of `create` that only a manual
names are looked for in the tool's own help first. How policies are modified is not verified, so it is not offered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, Mapping

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import Line, printed_size, read_line
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
)

PROGRAMS = ("ssacli", "hpssacli", "hpacucli")

_LOOK_TIMEOUT = 180.0
_CHANGE_TIMEOUT = 600.0
_FLASH_TIMEOUT = 3600.0
_HEADER = re.compile(r"^(?P<model>\S.*?) in Slot (?P<slot>\w+)\b")
_DRIVE = re.compile(r"^physicaldrive (?P<position>[^\s(]+)(?: \((?P<summary>.*)\))?$")
_VOLUME = re.compile(r"^logicaldrive (?P<id>\d+) \((?P<size>[^,]+), (?P<level>RAID [^,]+), (?P<state>.*)\)$")
_ARRAY = re.compile(r"^array (?P<name>\w+)\b", re.IGNORECASE)
_ENCLOSURE = re.compile(r"^(?P<model>Enclosure SEP|SEP|Expander|.*(?= at Port ))(?P<rest>.*)$")
_PERCENT = re.compile(r"(?P<percent>\d+(?:\.\d+)?)\s*%")
_TASKS = (("recovering", "rebuild"), ("rebuilding", "rebuild"), ("expan", "reshape"), ("transform", "reshape"))
_BEGINS = {"Logical Drive": "volume", "Port Name": "port", "Sensor ID": "sensor"}
_PLAIN = ("Unassigned", "unassigned", "Physical Drives", "None attached", "HBA Drives")
_NONE = "No controllers detected"
_HEALTH = ("Controller Status", "Cache Status", "Battery/Capacitor Status")
_COMPONENT = {
    2: "it did not try: the hardware is not there, or it holds this version already",
    3: "it failed, or the version is older than the one there; see its log in /var/cpq",
    4: "it did not find its target",
    5: "somebody cancelled it",
    6: "something it depends on is missing",
    7: "the installation itself failed",
}


@dataclass
class _Part:
    """One object of the tree: port, enclosure, array, volume, drive, sensor."""

    kind: str
    name: str
    indent: int
    fields: dict[str, str] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    array: str = ""


@dataclass
class _Controller:
    """One controller while it is read."""

    model: str
    slot: str
    settings: dict[str, str] = field(default_factory=dict)
    parts: list[_Part] = field(default_factory=list)
    array: str = ""

    def of(self, kind: str) -> Iterator[_Part]:
        """Its parts of one kind."""
        return (part for part in self.parts if part.kind == kind)

    def drive(self, position: str, indent: int) -> _Part:
        """The drive at a position: it is listed in short first and in full later."""
        found = next((part for part in self.of("drive") if part.name == position), None)
        if found is None:
            return self.begin("drive", position, indent)
        found.indent = indent
        return found

    def begin(self, kind: str, name: str, indent: int) -> _Part:
        """A new part, in the array that is being read."""
        self.parts.append(_Part(kind, name, indent, array=self.array))
        return self.parts[-1]


def parse_controllers(text: str) -> ToolFacts:
    """What `ctrl all show config detail` and its shorter forms print. Raises ToolError for the tool's own error."""
    controllers: list[_Controller] = []
    notes: list[str] = []
    errors: list[str] = []
    part: _Part | None = None
    for raw in text.splitlines():
        line = read_line(raw)
        if line is None:
            continue
        header = _HEADER.match(line.text) if line.indent == 0 else None
        if header is not None:
            controllers.append(_Controller(header.group("model"), header.group("slot")))
            part = None
        elif line.label == "Error":
            errors.append(line.value)
        elif not controllers and errors:
            errors[-1] += f" {line.text}"
        elif not controllers:
            notes.append(line.text)
        else:
            part = _take(controllers[-1], part, line, notes)
    refused = [error for error in errors if _NONE not in error]
    if refused:
        raise ToolError(f"ssacli refused: {refused[0][:300]}")
    return ToolFacts(tuple(_adapter(controller) for controller in controllers), tuple(notes))


def _take(controller: _Controller, part: _Part | None, line: Line, notes: list[str]) -> _Part | None:
    """One line of a controller; the part that the next lines belong to."""
    begun = _begin(controller, part, line)
    if begun is not None:
        return begun
    if line.text in _PLAIN:
        controller.array = ""
        return None
    if not line.labelled:
        notes.append(line.text)
        return part
    if part is not None and line.indent > part.indent:
        part.fields[line.label] = line.value
        return part
    controller.settings[line.label] = line.value
    return None


def _begin(controller: _Controller, part: _Part | None, line: Line) -> _Part | None:
    """The part that a line begins; None when it begins none."""
    drive, volume, array = _DRIVE.match(line.text), _VOLUME.match(line.text), _ARRAY.match(line.text)
    if drive is not None:
        return _drive_line(controller, part, line, drive.group("position"), drive.group("summary"))
    if volume is not None:
        found = controller.begin("volume", volume.group("id"), line.indent)
        size, level, state = volume.group("size", "level", "state")
        found.fields = {"Size": size, "Fault Tolerance": level, "Status": state}
        return found
    if line.label in _BEGINS:
        return controller.begin(_BEGINS[line.label], line.value, line.indent)
    if line.label == "Array" or (array is not None and not line.labelled):
        controller.array = line.value or (array.group("name") if array else "")
        return controller.begin("array", controller.array, line.indent)
    if not line.labelled and _ENCLOSURE.match(line.text):
        controller.array = ""
        return controller.begin("enclosure", line.text, line.indent)
    return None


def _drive_line(controller: _Controller, part: _Part | None, line: Line, position: str, summary: str | None) -> _Part:
    """A drive, in full or in short; one in short below a volume is a member of its mirror group."""
    if summary is not None and part is not None and part.kind == "volume" and line.indent > part.indent:
        part.members.append(position)
        return part
    drive = controller.drive(position, line.indent)
    drive.array = controller.array or drive.array
    if summary is not None:
        words = [word.strip() for word in summary.split(",")]
        drive.fields.setdefault("Status", words[-1])
        if "spare" in words[-1]:
            drive.fields.update({"Status": words[-2] if len(words) > 1 else "", "Drive Type": "Spare Drive"})
    return drive


def _adapter(controller: _Controller) -> AdapterFacts:
    settings = controller.settings
    wrong = [f"{name}: {settings[name]}" for name in _HEALTH if settings.get(name, "OK") != "OK"]
    version = settings.get("Firmware Version", "")
    return AdapterFacts(
        index=controller.slot,
        model=controller.model,
        vendor="HPE",
        serial=settings.get("Serial Number", ""),
        pci=settings.get("PCI Address (Domain:Bus:Device.Function)", "").lower(),
        driver=settings.get("Driver Name", ""),
        driver_version=settings.get("Driver Version", ""),
        firmware={"firmware": version} if version else {},
        health="; ".join(wrong) or settings.get("Controller Status", ""),
        settings=dict(settings),
        drives=tuple(_drive(part) for part in controller.of("drive")),
        volumes=tuple(_volume(part, controller) for part in controller.of("volume")),
        ports=tuple(_port(part) for part in controller.of("port")),
        enclosures=tuple(dict.fromkeys(_enclosure(part) for part in controller.of("enclosure"))),
    )


def _port(part: _Part) -> PortFacts:
    wwn = printed_wwn(part.fields.get("SAS Address", ""))
    return PortFacts(part.name, wwn=wwn, link=part.fields.get("Port Location", ""))


def _drive(part: _Part) -> DriveFacts:
    fields = part.fields
    vendor, _, model = fields.get("Model", "").partition(" ")
    return DriveFacts(
        position=part.name,
        wwn=printed_wwn(fields.get("WWID", "")),
        serial=fields.get("Serial Number", ""),
        vendor=vendor,
        model=model.strip(),
        revision=fields.get("Firmware Revision", ""),
        # drives are printed as on their label
        size=printed_size(fields.get("Size", ""), base=1000),
        state=fields.get("Status", ""),
        media=fields.get("Interface Type", ""),
    )


def _volume(part: _Part, controller: _Controller) -> VolumeFacts:
    fields, state = part.fields, part.fields.get("Status", "")
    own = [drive for drive in controller.of("drive") if drive.array == part.array and part.array]
    spares = tuple(drive.name for drive in own if "Spare" in drive.fields.get("Drive Type", ""))
    under_way = _progress(fields)
    parity = fields.get("Parity Initialization Status", "Initialization Completed")
    return VolumeFacts(
        id=part.name,
        name=fields.get("Logical Drive Label", ""),
        wwn=printed_wwn(fields.get("Unique Identifier", "")),
        level=_level(fields.get("Fault Tolerance", "")),
        state=state,
        size=printed_size(fields.get("Size", ""), base=1024),
        strip=printed_size(fields.get("Strip Size", ""), base=1024),
        members=tuple(part.members) or tuple(drive.name for drive in own if drive.name not in spares),
        spares=spares,
        policies=_policies(fields, controller.settings),
        progress=under_way,
        device=fields.get("Disk Name", ""),
        healthy=(state == "OK" and not under_way and parity == "Initialization Completed") if state else None,
    )


def _level(text: str) -> str:
    """`RAID 1+0` and `6 (ADG)` as a drop writes them."""
    plain = text.replace("RAID", "").split("(")[0].strip()
    return {"1+0": "10", "5+0": "50", "6+0": "60"}.get(plain, plain)


def _progress(fields: Mapping[str, str]) -> dict[str, float]:
    """Percent by task: `Recovering, 32% complete`, and the parity of a new volume."""
    found: dict[str, float] = {}
    state = fields.get("Status", "").lower()
    task = next((name for word, name in _TASKS if word in state), "")
    percent = _PERCENT.search(state)
    if task:
        found[task] = float(percent.group("percent")) if percent else 0.0
    if fields.get("Parity Initialization Status", "") in ("In Progress", "Queued"):
        percent = _PERCENT.search(fields.get("Parity Initialization Progress", ""))
        found["initialise"] = float(percent.group("percent")) if percent else 0.0
    return found


def _policies(fields: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, Value]:
    """Write-back needs the accelerator on and a share of the cache for writes."""
    found: dict[str, Value] = {}
    caching, ratio = fields.get("Caching"), settings.get("Cache Ratio", "")
    if caching == "Disabled" or (caching == "Enabled" and ratio.endswith("/ 0% Write")):
        found["write_policy"] = "wt"
    elif caching == "Enabled" and ratio.endswith("Write"):
        found["write_policy"] = "wb"
    cache = settings.get("Drive Write Cache", settings.get("Configured Drive Write Cache Policy", ""))
    words = {"Enabled": "enable", "Enable": "enable", "Disabled": "disable", "Disable": "disable"}
    if cache in (*words, "Default"):
        found["disk_cache"] = words.get(cache, "default")
    return found


def _enclosure(part: _Part) -> EnclosureFacts:
    port, box, bays = (part.fields.get(name, "") for name in ("Port", "Box", "Drive Bays"))
    return EnclosureFacts(
        position=f"{port}:{box}" if port and box else part.name,
        vendor=part.fields.get("Vendor ID", ""),
        model=part.fields.get("Model", "") or part.name,
        slots=int(bays) if bays.isascii() and bays.isdigit() else None,
        state=part.name.rsplit(", ", 1)[-1] if ", " in part.name and "(" not in part.name else "",
    )


def _ask(runner: Runner, *words: str, timeout: float = _LOOK_TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, words, timeout=timeout)


def _do(runner: Runner, *words: str) -> None:
    """A change: the status and the text must both be good."""
    ended = _ask(runner, *words, timeout=_CHANGE_TIMEOUT)
    said = (ended.stdout.strip() or ended.stderr.strip()).splitlines()
    if ended.rc != 0 or any(line.strip().startswith("Error") for line in said):
        detail = " ".join(line.strip() for line in said)[:300] or "nothing"
        raise ToolError(f"the controller in slot {words[1][5:]} refused: {detail}; command: {ended.line}")


def read_facts(runner: Runner) -> ToolFacts:
    """All controllers with their drives and volumes. Raises ToolError."""
    return parse_controllers(_ask(runner, "ctrl", "all", "show", "config", "detail").stdout)


def _adapter_at(runner: Runner, index: str) -> AdapterFacts:
    ended = _ask(runner, "ctrl", f"slot={index}", "show", "config", "detail")
    found = [adapter for adapter in parse_controllers(ended.stdout).adapters if adapter.index == index]
    if not found:
        raise ToolError(f"ssacli shows no controller in slot {index}; command: {ended.line}")
    return found[0]


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
    """Controllers start what was flashed at the next boot."""
    return "reboot"


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """All volumes of the controller in a slot. Raises ToolError."""
    return _adapter_at(runner, index).volumes


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """A policy, a name or an initialisation: how they are set is not verified."""
    unknown = request.asks("policies", "name", "initialisation")
    told = f"how ssacli sets {', '.join(unknown)} of a new volume is not verified; leave it out of the drop"
    return (told,) if unknown else ()


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    level = {"10": "1+0"}.get(request.level, request.level)
    words = [f"drives={','.join(request.members)}", f"raid={level}"]
    extra = [f"ss={request.strip // 1024}"] if request.strip is not None else []
    extra += [f"spares={','.join(request.spares)}"] if request.spares else []
    known = _ask(runner, "help", "create").stdout if extra else ""
    missing = [word.split("=")[0] for word in extra if word.split("=")[0] + "=" not in known]
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
            if volume.device == node:
                return tuple(drives.get(position, position) for position in (*volume.members, *volume.spares))
    return ()
