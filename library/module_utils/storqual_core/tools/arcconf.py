# SPDX-License-Identifier: Apache-2.0
"""arcconf: Adaptec and Microchip SmartRAID controllers.

The last line decides, not the exit status: `Command completed successfully.` What is known: LIST, GETCONFIG and
GETSTATUS (recorded), CREATE, SETCACHE, ROMUPDATE (documented: other people's code runs them). DELETE is not verified
and is looked for in the tool's own help before it is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Mapping

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import Line, printed_size, read_line
from .capabilities import AdapterFacts, DriveFacts, FirmwareImage, ToolFacts, Value, VolumeFacts, VolumeRequest

PROGRAMS = ("arcconf",)

_LOOK_TIMEOUT = 180.0
_CHANGE_TIMEOUT = 600.0
_FLASH_TIMEOUT = 1800.0
_DONE = "Command completed successfully."
_LISTED = re.compile(r"^Controller (?P<index>\d+):\s*:\s*(?P<facts>.*)$")
_RULE = re.compile(r"^-{8,}$")
_VOLUME = re.compile(r"^Logical [Dd]evice number (?P<id>\d+)$")
_DEVICE = re.compile(r"^Device #(?P<number>\d+)$")
_SEGMENT = re.compile(r"^(?:Group \d+, )?Segment \d+$")
_SEGMENT_VALUE = re.compile(r"^(?P<state>[A-Za-z ]+?) \((?P<place>[^)]*)\)\s*(?P<serial>\S*)$")
_COUNT = "Controllers found"
_OPTIMAL = "Optimal"
_TASKS = {
    "Rebuild": "rebuild",
    "Build/Verify": "initialise",
    "Clear": "initialise",
    "Reconfiguration": "reshape",
    "Verify": "check",
}
_CACHE = {"wb": "wb", "wt": "wt", "awb": "wbb"}


@dataclass
class _Section:
    """One part of the output: its title, and its labels."""

    kind: str
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    segments: list[tuple[str, str, str]] = field(default_factory=list)


def _check(text: str, what: str, command: str = "") -> None:
    """Raise ToolError unless the last line says that the command was completed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or lines[-1] != _DONE:
        said = " ".join(line for line in lines if not line.startswith(_COUNT))[:300] or "nothing"
        raise ToolError(f"{what}: arcconf said {said}" + (f"; command: {command}" if command else ""))


def parse_list(text: str) -> tuple[str, ...]:
    """The controllers' numbers that `LIST` names; none when it found none. Raises ToolError."""
    if re.search(rf"^{_COUNT}: 0\s*$", text, re.MULTILINE):
        return ()
    _check(text, "the controllers could not be listed")
    matches = (_LISTED.match(line.strip()) for line in text.splitlines())
    return tuple(match.group("index") for match in matches if match is not None)


def parse_config(text: str, index: str = "1") -> ToolFacts:
    """What `GETCONFIG N AL` prints of controller `index`. Raises ToolError when it was not completed."""
    _check(text, f"controller {index} could not be read")
    sections: list[_Section] = []
    notes: list[str] = []
    for raw in text.splitlines():
        line = read_line(raw)
        if line is None or _RULE.match(line.text) or line.text == _DONE or line.label == _COUNT:
            continue
        _take(sections, line, notes)
    controller = next((section for section in sections if section.kind == "Controller information"), _Section(""))
    versions = next((s.fields for s in sections if s.kind == "Controller Version Information"), {})
    drives = [section for section in sections if section.kind == "device" and _is_drive(section)]
    volumes = [section for section in sections if section.kind == "volume"]
    driver = versions.get("Driver", "")
    settings = {
        label if section is controller else f"{section.kind}: {label}": value
        for section in sections
        if section.kind not in ("volume", "device")
        for label, value in section.fields.items()
    }
    adapter = AdapterFacts(
        index=index,
        model=controller.fields.get("Controller Model", ""),
        serial=controller.fields.get("Controller Serial Number", ""),
        pci=_pci(controller.fields.get("PCI Address", "")),
        driver_version=driver,
        firmware={
            name: versions[label]
            for label, name in (("Firmware", "firmware"), ("BIOS", "bios"), ("Boot Flash", "boot_flash"))
            if label in versions
        },
        health=controller.fields.get("Controller Status", ""),
        settings=settings,
        drives=tuple(_drive(section) for section in drives),
        volumes=tuple(_volume(section, drives) for section in volumes),
    )
    return ToolFacts((adapter,), tuple(notes))


def _take(sections: list[_Section], line: Line, notes: list[str]) -> None:
    """One line: a title that begins a section, or a label of the last one."""
    volume, device = _VOLUME.match(line.text), _DEVICE.match(line.text)
    last = sections[-1] if sections else None
    if volume is not None:
        sections.append(_Section("volume", volume.group("id")))
    elif device is not None:
        sections.append(_Section("device", device.group("number")))
    elif line.labelled and last is not None:
        segment = _SEGMENT_VALUE.match(line.value) if _SEGMENT.match(line.label) else None
        if segment is not None:
            last.segments.append((segment.group("state"), segment.group("place"), segment.group("serial")))
        else:
            last.fields[line.label] = line.value
    elif line.text.startswith("Device is a") and last is not None:
        last.fields["Device"] = line.text
    elif line.text.endswith(" information") or line.text.endswith(" Information"):
        if "segment" not in line.text:
            sections.append(_Section(line.text))
    else:
        notes.append(line.text)


def _is_drive(section: _Section) -> bool:
    kind = section.fields.get("Device", "")
    return "Hard drive" in kind or "SSD" in kind or "Solid State" in kind


def _pci(text: str) -> str:
    """`0:a:0:0` as `0000:0a:00.0`; nothing when it is not printed so."""
    parts = text.split(":")
    if len(parts) != 4 or any(not re.fullmatch(r"[0-9a-fA-F]{1,4}", part) for part in parts):
        return ""
    domain, bus, device, function = (int(part, 16) for part in parts)
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def _position(fields: Mapping[str, str]) -> str:
    """`0 4`: channel and device, the two words that commands take."""
    match = re.match(r"(\d+),(\d+)", fields.get("Reported Channel,Device(T:L)", ""))
    return f"{match.group(1)} {match.group(2)}" if match else ""


def _drive(section: _Section) -> DriveFacts:
    fields = section.fields
    return DriveFacts(
        position=_position(fields),
        wwn=printed_wwn(fields.get("World-wide name", "")),
        serial=fields.get("Serial number", ""),
        vendor=fields.get("Vendor", ""),
        model=fields.get("Model", ""),
        revision=fields.get("Firmware", ""),
        size=printed_size(fields.get("Total Size", ""), base=1024),
        state=fields.get("State", ""),
        media="SSD" if fields.get("SSD") == "Yes" else "HDD",
    )


def _volume(section: _Section, drives: list[_Section]) -> VolumeFacts:
    fields = section.fields
    state = fields.get("Status of logical device", fields.get("Status of Logical Device", ""))
    places = {drive.fields.get("Serial number", ""): _position(drive.fields) for drive in drives}
    members = tuple(places.get(serial) or serial or place for _, place, serial in section.segments)
    sound = all(found == "Present" for found, _, _ in section.segments)
    rebuilding = any(found == "Rebuilding" for found, _, _ in section.segments)
    return VolumeFacts(
        id=section.name,
        name=fields.get("Logical device name", fields.get("Logical Device name", "")),
        level=fields.get("RAID level", ""),
        state=state,
        size=printed_size(fields.get("Size", ""), base=1024),
        strip=printed_size(fields.get("Stripe-unit size", fields.get("Strip Size", "")), base=1024),
        members=members,
        policies=_policies(fields),
        # how far it is stands in GETSTATUS only
        progress={"rebuild": 0.0} if rebuilding else {},
        device=fields.get("Disk Name", "").split(" ")[0],
        healthy=(state == _OPTIMAL and sound) if state else None,
    )


def _policies(fields: Mapping[str, str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    read, write = fields.get("Read-cache setting", ""), fields.get("Write-cache setting", "")
    if read in ("Enabled", "Disabled"):
        found["read_policy"] = "ra" if read == "Enabled" else "nora"
    if write.startswith(("Enabled", "On")):
        found["write_policy"] = "awb" if "always" in write.lower() else "wb"
    elif write.startswith(("Disabled", "Off")):
        found["write_policy"] = "wt"
    return found


def parse_tasks(text: str) -> dict[str, dict[str, float]]:
    """Percent by task by logical device, of `GETSTATUS N`. Raises ToolError when it was not completed."""
    _check(text, "what is under way could not be read")
    found: dict[str, dict[str, float]] = {}
    current: dict[str, str] = {}
    for raw in [*text.splitlines(), "Logical device Task:"]:
        line = read_line(raw)
        if line is None:
            continue
        if line.label.endswith("Task"):
            operation, volume = current.get("Current operation", "None"), current.get("Logical device", "")
            if volume and operation != "None":
                percent = current.get("Percentage complete", "")
                task = _TASKS.get(operation, operation)
                found.setdefault(volume, {})[task] = float(percent) if re.fullmatch(r"\d{1,3}", percent) else 0.0
            current = {}
        elif line.labelled:
            current[line.label] = line.value
    return found


def _ask(runner: Runner, *words: str, timeout: float = _LOOK_TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, words, timeout=timeout)


def _do(runner: Runner, what: str, *words: str, timeout: float = _CHANGE_TIMEOUT) -> None:
    ended = _ask(runner, *words, timeout=timeout)
    _check(ended.stdout, what, ended.line)


def _facts_of(runner: Runner, index: str) -> ToolFacts:
    """One controller, with the percentages of what is under way."""
    facts = parse_config(_ask(runner, "GETCONFIG", index, "AL").stdout, index)
    adapter = facts.adapters[0]
    if not adapter.volumes:
        return facts
    tasks = parse_tasks(_ask(runner, "GETSTATUS", index).stdout)
    volumes = tuple(
        replace(volume, progress={**volume.progress, **tasks[volume.id]}, healthy=False)
        if tasks.get(volume.id)
        else volume
        for volume in adapter.volumes
    )
    return ToolFacts((replace(adapter, volumes=volumes),), facts.notes)


def read_facts(runner: Runner) -> ToolFacts:
    """All controllers with their drives and volumes. Raises ToolError."""
    found = [_facts_of(runner, index) for index in parse_list(_ask(runner, "LIST").stdout)]
    return ToolFacts(
        tuple(adapter for facts in found for adapter in facts.adapters),
        tuple(note for facts in found for note in facts.notes),
    )


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Firmware, BIOS and boot flash. Raises ToolError."""
    ended = _ask(runner, "GETCONFIG", index, "AD")
    return parse_config(ended.stdout, index).adapters[0].firmware


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Write an image (`.ufi`; of several parts, all beside the first) into a controller. Raises ToolError."""
    what = f"the image {image.path} was not taken by controller {index}"
    _do(runner, what, "ROMUPDATE", index, image.path, "NOPROMPT", timeout=_FLASH_TIMEOUT)


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:  # noqa: ARG001 - the capability's arguments
    """Controllers start what was flashed at the next boot."""
    return "reboot"


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """All volumes of a controller. Raises ToolError."""
    return _facts_of(runner, index).adapters[0].volumes


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What CREATE is not known to take."""
    unknown = request.asks("policies", "spares", "initialisation")
    told = f"how arcconf sets {', '.join(unknown)} of a new volume is not verified; leave it out"
    return (told,) if unknown else ()


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume over members given as `channel device`. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    words = ["NAME", request.name] if request.name else []
    words += ["STRIPESIZE", str(request.strip // 1024)] if request.strip is not None else []
    places = [word for member in request.members for word in member.split(" ")]
    what = f"controller {index} made no volume"
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
