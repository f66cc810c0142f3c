# SPDX-License-Identifier: Apache-2.0
"""arcconf: Adaptec and Microchip SmartRAID controllers.

The last line decides, not the exit status: `Command completed successfully.` What is known: LIST, GETCONFIG and
GETSTATUS (recorded), CREATE, SETCACHE, ROMUPDATE (documented: other people's code runs them). DELETE is not verified
and is looked for in the tool's own help before it is used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Mapping

from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import Fields, plain_label, read_line
from .capabilities import FirmwareImage, ToolFacts, Value, VolumeFacts, VolumeRequest
from .shapes.arcconf_text import COUNT, check_completed, parse_config

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


def parse_list(text: str) -> tuple[str, ...]:
    """The controllers' numbers that `LIST` names; none when it found none.

    Raises ToolError, also when it names another number of them than it says.
    """
    counted = re.search(rf"^\s*{COUNT}\s*:\s*([0-9]{{1,9}})\s*$", text, re.MULTILINE | re.IGNORECASE)
    if counted and int(counted.group(1)) == 0:
        return ()
    check_completed(text, "the controllers could not be listed")
    matches = (_LISTED.match(line.strip()) for line in text.splitlines())
    found = tuple(match.group("index") for match in matches if match is not None)
    if not found or (counted and len(found) != int(counted.group(1))):
        said = counted.group(1) if counted else "no number of"
        raise ToolError(f"arcconf says that it found {said} controllers and lists {len(found)}")
    return found


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
    what = f"the image {image.path} was not accepted by controller {index}"
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
    wrong = request.strip_objection(1 << 10, 1 << 20)
    return (*((told,) if unknown else ()), *((wrong,) if wrong else ()))


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


_PERCENT = re.compile(r"(?<![0-9.])(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)(?![0-9.])\s*%?")
_TASKS = (
    ("rebuild", "rebuild"),
    ("build/verify", "initialise"),
    ("clear", "initialise"),
    ("initiali", "initialise"),
    ("verify", "check"),
    ("consistency", "check"),
    ("reconfig", "reshape"),
    ("expan", "reshape"),
    ("transform", "reshape"),
    ("migrat", "reshape"),
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
    found: dict[str, dict[str, float]] = {}
    for title, fields in tasks:
        operation = fields.get("Current operation").lower()
        volume = fields.get("Logical device", "Logical drive", "Logical device number")
        if operation in ("", "none") or not title.startswith("logical"):
            continue
        if not volume:
            raise ToolError(f"arcconf reports a task ({operation[:60]}) and not of which volume")
        percent = _PERCENT.match(fields.get("Percentage complete", "Percent complete"))
        task = next((name for word, name in _TASKS if operation.startswith(word)), operation)
        found.setdefault(volume.split(" ")[0], {})[task] = float(percent.group("percent")) if percent else 0.0
    return found
