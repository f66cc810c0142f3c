# SPDX-License-Identifier: Apache-2.0
"""sas3ircu and sas2ircu: integrated RAID of Broadcom SAS2 and SAS3 controllers.

Only `Utility Completed Successfully.` means success. What is known: LIST, DISPLAY, STATUS (recorded), CREATE and
DELETEVOLUME (documented only: their answers were never seen, so their words are looked for in the tool's help first).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Mapping

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner
from ..kit.errors import MissingToolError, ToolError, refuse_for
from ..kit.labelled_text import read_line
from .capabilities import AdapterFacts, DriveFacts, EnclosureFacts, ToolFacts, VolumeFacts, VolumeRequest

PROGRAMS = ("sas3ircu", "sas2ircu")

_TIMEOUT = 180.0
_DONE = "Utility Completed Successfully."
_NONE = ("MPTLib2 Error 1", "No adapters found")
_NO_VOLUMES = "there are no IR volumes on the controller!"
_LISTED = re.compile(
    r"^\s*(?P<index>\d+)\s+\S+\s+[0-9A-Fa-f]+h\s+[0-9A-Fa-f]+h\s+"
    r"(?P<domain>[0-9A-Fa-f]+)h:(?P<bus>[0-9A-Fa-f]+)h:(?P<device>[0-9A-Fa-f]+)h:(?P<function>[0-9A-Fa-f]+)h\s"
)
_RULE = re.compile(r"^-{8,}$")
_BANNER = re.compile(r"^(?:LSI|Avago|Broadcom|Copyright|Version )|^SAS[23]IRCU: |^Read configuration has been")
_MEGABYTES = re.compile(r"^(?P<size>\d+)(?:/(?P<sectors>\d+))?$")
_CODE = re.compile(r"\((?P<code>[A-Z]{2,4})\)")
_PERCENT = re.compile(r"(?P<percent>\d+(?:\.\d+)?)\s*%")
_OPERATIONS = {"Synchronize": "initialise", "Rebuild": "rebuild", "Verify": "check", "OCE": "reshape"}


def parse_list(text: str) -> dict[str, str]:
    """PCI addresses by the controller's number; none when there is no controller. Raises ToolError."""
    if any(words in text for words in _NONE):
        return {}
    _check(text, "the controllers could not be listed")
    found = {}
    for line in text.splitlines():
        match = _LISTED.match(line)
        if match is not None:
            domain, bus, device, function = (
                int(match.group(part), 16) for part in ("domain", "bus", "device", "function")
            )
            found[match.group("index")] = f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
    return found


def parse_display(text: str, index: str = "sas3ircu 0") -> ToolFacts:
    """What `N DISPLAY` prints of a controller. Raises ToolError when it was not completed."""
    _check(text, f"controller {index} could not be read")
    section = ""
    settings: dict[str, str] = {}
    volumes: list[dict[str, str]] = []
    devices: list[dict[str, str]] = []
    enclosures: list[dict[str, str]] = []
    notes: list[str] = []
    for raw in text.splitlines():
        line = read_line(raw)
        if line is None or _RULE.match(line.text) or _BANNER.match(line.text):
            continue
        if line.text.lower().endswith(" information"):
            section = line.text.split(" ")[0]
        elif section == "Controller" and line.labelled:
            settings[line.label] = line.value
        elif line.text.startswith("IR volume ") or line.text.startswith("IR Volume "):
            volumes.append({"number": line.text.rsplit(" ", 1)[-1]})
        elif line.text.startswith("Device is a"):
            devices.append({"Device": line.text})
        elif line.label == "Enclosure#":
            enclosures.append({line.label: line.value})
        elif line.labelled and section == "IR" and volumes:
            volumes[-1][line.label] = line.value
        elif line.labelled and section == "Physical" and devices:
            devices[-1][line.label] = line.value
        elif line.labelled and section == "Enclosure" and enclosures:
            enclosures[-1][line.label] = line.value
        elif not line.text.startswith("Initiator at ID"):
            notes.append(line.text)
    drives = tuple(_drive(device) for device in devices if "Enclosure services" not in device["Device"])
    adapter = AdapterFacts(
        index=index,
        model=settings.get("Controller type", ""),
        pci=_pci(settings),
        firmware={
            name: settings[label]
            for label, name in (("Firmware version", "firmware"), ("BIOS version", "bios"))
            if label in settings
        },
        settings=settings,
        drives=drives,
        volumes=tuple(_volume(fields) for fields in volumes),
        enclosures=tuple(
            EnclosureFacts(position=each["Enclosure#"], slots=_number(each.get("Numslots", "")))
            for each in enclosures
        ),
    )
    return ToolFacts((adapter,), tuple(notes))


def parse_status(text: str) -> dict[str, dict[str, float]]:
    """Percent by task by volume id, of `N STATUS`; a controller without volumes has none. Raises ToolError."""
    if _NO_VOLUMES in text:
        return {}
    _check(text, "what is under way could not be read")
    found: dict[str, dict[str, float]] = {}
    current: dict[str, str] = {}
    for raw in [*text.splitlines(), "IR Volume end"]:
        line = read_line(raw)
        if line is None:
            continue
        if re.match(r"IR [Vv]olume \w+$", line.text):
            operation = current.get("Current operation", "None")
            if operation != "None" and "Volume ID" in current:
                percent = _PERCENT.search(current.get("Percentage complete", ""))
                task = _OPERATIONS.get(operation, operation)
                found[current["Volume ID"]] = {task: float(percent.group("percent")) if percent else 0.0}
            current = {}
        elif line.labelled:
            current[line.label] = line.value
    return found


def _check(text: str, what: str, command: str = "") -> None:
    if _DONE not in text:
        lines = [
            line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("LSI", "Version"))
        ]
        said = " ".join(lines[-2:])[:300] or "nothing"
        raise ToolError(f"{what}: it did not say `{_DONE}` but {said}" + (f"; command: {command}" if command else ""))


def _pci(settings: Mapping[str, str]) -> str:
    """The display prints decimal numbers."""
    parts = [_number(settings.get(name, "")) for name in ("Segment", "Bus", "Device", "Function")]
    if any(part is None for part in parts):
        return ""
    domain, bus, device, function = (part or 0 for part in parts)
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _code(text: str) -> str:
    """`Ready (RDY)` without the words that a release may change."""
    match = _CODE.search(text)
    return match.group("code") if match else text


def _drive(fields: Mapping[str, str]) -> DriveFacts:
    size = _MEGABYTES.match(fields.get("Size (in MB)/(in sectors)", ""))
    sectors = size.group("sectors") if size else None
    return DriveFacts(
        position=f"{fields.get('Enclosure #', '')}:{fields.get('Slot #', '')}",
        wwn=printed_wwn(fields.get("GUID", "")),
        serial=fields.get("Unit Serial No(VPD)", fields.get("Serial No", "")),
        vendor=fields.get("Manufacturer", ""),
        model=fields.get("Model Number", ""),
        revision=fields.get("Firmware Revision", ""),
        size=int(sectors) * 512 if sectors else None,
        state=_code(fields.get("State", "")),
        media=fields.get("Drive Type", ""),
    )


def _volume(fields: Mapping[str, str]) -> VolumeFacts:
    state = _code(fields.get("Status of volume", ""))
    size = _MEGABYTES.match(fields.get("Size (in MB)", ""))
    members = [value for label, value in fields.items() if re.match(r"PHY\[\d+\] Enclosure#/Slot#$", label)]
    return VolumeFacts(
        id=fields.get("Volume ID", fields["number"]),
        name=fields.get("Volume Name", ""),
        wwn=printed_wwn(fields.get("Volume wwid", "")),
        level=fields.get("RAID level", "").replace("RAID", "").strip(),
        state=state,
        size=int(size.group("size")) << 20 if size else None,
        strip=None,
        members=tuple(members),
        healthy=state == "OKY" if state else None,
    )


def _ask(runner: Runner, index: str, *words: str) -> Completed:
    """Ask the program that `index` begins with: each of the two counts its own controllers from 0."""
    return runner([*index.split(" "), *words], timeout=_TIMEOUT)


def _facts_of(runner: Runner, index: str) -> ToolFacts:
    """One controller, with the percentages of what is under way."""
    facts = parse_display(_ask(runner, index, "DISPLAY").stdout, index)
    adapter = facts.adapters[0]
    if not adapter.volumes:
        return facts
    tasks = parse_status(_ask(runner, index, "STATUS").stdout)
    volumes = tuple(
        replace(volume, progress=tasks[volume.id], healthy=False) if volume.id in tasks else volume
        for volume in adapter.volumes
    )
    return ToolFacts((replace(adapter, volumes=volumes),), facts.notes)


def read_facts(runner: Runner) -> ToolFacts:
    """All controllers of both programs, where they are installed; `index` is `sas3ircu 0`. Raises ToolError."""
    found = [_facts_of(runner, f"{program} {number}") for program, numbers in _listed(runner) for number in numbers]
    return ToolFacts(
        tuple(adapter for facts in found for adapter in facts.adapters),
        tuple(note for facts in found for note in facts.notes),
    )


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
    told = f"integrated RAID cannot be told {', '.join(unknown)} of a new volume; leave it out of the drop"
    return (told,) if unknown else ()


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    name = [request.name] if request.name else []
    level = f"RAID{request.level}"
    _do(
        runner,
        f"controller {index} made no volume",
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
