# SPDX-License-Identifier: Apache-2.0
"""The indented tree that ssacli (hpssacli, hpacucli before) prints, as controllers, drives, volumes, ports and cages.

A drive or a volume stands there in short (one line, its facts in brackets) or in full (a line, then labels below it);
`config detail` prints both. A line without a label that is not known begins a part of its own, so that the labels
below it are never taken for those of the part before.
"""

from __future__ import annotations

import re

from ...kit.errors import ToolError
from ...kit.labelled_text import Fields, Line, plain_label, read_line
from ..capabilities import ToolFacts
from .ssacli_parts import Controller, Part, adapter_of

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
_ENCLOSURE = re.compile(r"^(?:Enclosure SEP\b|SEP\b|Expander\b|.* at Port )", re.IGNORECASE)
# a drive that does not answer has a size of dashes
_SIZE = re.compile(r"^(?:\d+(?:\.\d+)?|[-?]+)\s*[KMGTP]i?B$", re.IGNORECASE)
_LISTED = re.compile(r"(?:physical|logical)drive\b", re.IGNORECASE)
_BEGINS = {"logicaldrive": "volume", "portname": "port", "sensorid": "sensor", "array": "array"}
_PLAIN = ("unassigned", "unassigned drives", "physical drives", "none attached", "hba drives")
_NONE = "no controllers detected"
# a paragraph for people, which may stand anywhere and ends with a blank line
_NOTICE = re.compile(r"(?:Warning|Caution|Notice|FIRMWARE UPGRADE REQUIRED)\s*:", re.IGNORECASE)
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


def parse_controllers(text: str) -> ToolFacts:
    """What `ctrl all show config detail` and its shorter forms print.

    Raises ToolError for the tool's own error, and for a text that names no controller and does not say that there is
    none.
    """
    controllers: list[Controller] = []
    lines, notes = _without_notices(text)
    errors: list[str] = []
    part: Part | None = None
    for line in lines:
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
        if _LISTED.match(each.name):
            raise ToolError(f"ssacli listed {each.name[:100]!r}, which is not understood")
        if owned:
            raise ToolError(
                f"ssacli printed {owned[0]!r} under {each.name[:80]!r}, which is no known drive or volume"
            )
        notes += [each.name, *(f"{each.name}: {label}: {value}" for label, value in each.fields.printed().items())]
    return ToolFacts(tuple(adapter_of(controller) for controller in controllers), tuple(notes))


def _without_notices(text: str) -> tuple[list[Line], list[str]]:
    """The lines of a text that are not empty, without those of the paragraphs for people; and these."""
    lines: list[Line] = []
    notices: list[str] = []
    notice: Line | None = None
    for line in map(read_line, text.splitlines()):
        if line is None or _header(line) is not None or _LISTED.match(line.text):
            notice = None
        elif _NOTICE.match(line.text):
            notice = line
        elif notice is not None and line.labelled and line.indent > notice.indent:
            notice = None
        if line is not None and notice is not None:
            notices.append(line.text)
        elif line is not None:
            lines.append(line)
    return lines, notices


def _header(line: Line) -> Controller | None:
    """The controller that a line begins."""
    match = (_HEADER.match(line.text) or _CHASSIS.match(line.text)) if line.indent == 0 else None
    if match is None:
        return None
    serial = _SERIAL.search(line.text)
    slot = _SERIAL.sub("", match.group("slot")).strip()
    return Controller(match.group("model"), slot, serial.group("serial") if serial else "")


def _take(controller: Controller, part: Part | None, line: Line) -> Part | None:
    """One line of a controller; the part that the next lines belong to."""
    begun = _begin(controller, part, line)
    if begun is not None:
        return begun
    if line.text.lower() in _PLAIN:
        controller.array = ""
        return None
    if not line.labelled:
        return _unknown(controller, part, line)
    while part is not None and part.kind == "unknown" and line.indent <= part.indent:
        part = part.outer
    if part is not None and line.indent > part.indent:
        if line.label in part.fields and plain_label(line.label) in _ONCE:
            raise ToolError(f"ssacli tells {line.label!r} of {part.name[:60]!r} twice: a heading was not understood")
        part.fields.add(line.label, line.value)
        return part
    if plain_label(line.label) in _OWNED:
        raise ToolError(f"ssacli printed {line.text[:80]!r}, which belongs to no drive and no volume")
    controller.settings.add(line.label, line.value)
    return None


def _unknown(controller: Controller, part: Part | None, line: Line) -> Part:
    """The part of a heading that is not known: what follows it further in is its own, what follows after is not."""
    if line.indent == controller.array_indent:
        # beside the array, so that what is listed below it is not the array's
        controller.array = ""
    found = controller.begin("unknown", line.text, line.indent)
    found.outer = part if part is not None and line.indent > part.indent else None
    return found


def _begin(controller: Controller, part: Part | None, line: Line) -> Part | None:
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
        controller.array, controller.array_indent = array.group("name"), line.indent
        found = controller.begin("array", controller.array, line.indent)
        found.short = _remarks(array.group("remarks") or "", array.group("state") or "")
        return found
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
    controller: Controller, part: Part | None, line: Line, position: str, summary: str | None, state: str | None
) -> Part:
    """A drive, in full or in short; one in short below a volume is a member of its mirror group, or its spare."""
    volume = part if part is not None and part.kind == "volume" and line.indent > part.indent else None
    drive = controller.named("drive", position, line.indent)
    drive.array = controller.array or drive.array
    if summary is None:
        return drive
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
    elif volume is not None:
        volume.members.append(position)
    return drive if volume is None else volume
