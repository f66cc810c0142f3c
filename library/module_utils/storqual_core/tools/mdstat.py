# SPDX-License-Identifier: Apache-2.0
"""/proc/mdstat: every md array in one text without a tool, running or not, with its members and what is under way.

The kernel's drivers/md/md.c prints it; sizes are KiB. How many members there should be and are stands in brackets
(`[3/2] [UU_]`), once as numbers and once as letters.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Sequence

from ..kit.errors import ToolError
from ..kit.quantities import parse_size
from .capabilities import DELAYED_TASK, VolumeFacts

_FILE = "/proc/mdstat"
_FIRST = re.compile(r"^Personalities\s*:", re.MULTILINE)
_LAST = re.compile(r"^unused devices\s*:", re.MULTILINE)
_ARRAY = re.compile(r"^(?P<name>md\S*) : (?P<rest>(?:(?:in)?active|broken)\b.*)$")
_MEMBER = re.compile(r"^(?P<name>[^\s\[\]]+)\[(?P<number>[0-9]{1,9})\](?P<flags>(?:\([A-Z]\))*)$")
_REMARK = re.compile(r"^\([a-z-]+\)$")
_BLOCKS = re.compile(r"^\s+(?P<kib>[0-9]{1,19}) blocks\b(?P<rest>.*)$")
_CHUNK = re.compile(r"\b(?P<size>[0-9]{1,15}k) (?:chunks?|rounding)\b", re.IGNORECASE)
_COUNTS = re.compile(r"\[(?P<wanted>[0-9]{1,9})/(?P<there>[0-9]{1,9})\]\s+\[(?P<letters>[A-Z_]+)\]")
# failed, spare, journal, only written, to take a member's place; a NAS's own kernel has others, for drives in error
_FLAGS = {"", "F", "S", "J", "W", "R"}
# the array of metadata that hardware made: it holds arrays, and is never started itself
_CONTAINER = re.compile(r"\bsuper external:(?![/-])")
_TASK = re.compile(
    r"\b(?P<task>resync|recovery|reshape|check|repair)\s*=\s*(?:(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)%|(?P<word>[A-Z]+))"
)
# the kernel calls whatever waits for another array a resync
_DELAYED = "DELAYED"
_TASKS = {"resync": "initialise", "recovery": "rebuild", "reshape": "reshape", "check": "check", "repair": "check"}


def parse_arrays(text: str) -> tuple[VolumeFacts, ...]:
    """The arrays of /proc/mdstat, none where there is none.

    Raises ToolError when it is no such text or not all of it, when a line is not understood, and when an array's
    counts do not agree.
    """
    if _FIRST.search(text) is None or _LAST.search(text) is None:
        raise ToolError(f"{_FILE} does not begin with personalities or does not end with unused devices")
    found: list[VolumeFacts] = []
    for line in text.splitlines():
        array = _ARRAY.match(line)
        if array is not None:
            found.append(_array(array.group("name"), array.group("rest").split()))
        elif line.startswith((" ", "\t")) and line.strip():
            if not found:
                raise ToolError(f"{_FILE} has a line that belongs to no array: {line.strip()[:100]!r}")
            found[-1] = _more(found[-1], line)
        elif line.strip() and not _FIRST.match(line) and not _LAST.match(line):
            raise ToolError(f"{_FILE} has a line that is not understood: {line.strip()[:100]!r}")
    return tuple(_checked(volume) for volume in found)


def _array(name: str, words: Sequence[str]) -> VolumeFacts:
    """The first line of an array: state, remarks in brackets, level (none when it is not running), devices."""
    state, *rest = words
    remarks = [word.strip("()") for word in rest if _REMARK.match(word)]
    rest = [word for word in rest if not _REMARK.match(word)]
    level = rest.pop(0) if rest and not _MEMBER.match(rest[0]) else ""
    members: dict[str, list[tuple[int, str]]] = {"": [], "S": [], "F": [], "J": []}
    odd: dict[str, str] = {}
    for word in rest:
        match = _MEMBER.match(word)
        if match is None:
            raise ToolError(f"{_FILE} lists the device {word[:60]!r} of {name}, which is not understood")
        flags = match.group("flags")
        # a journal is no member, and what is to take a member's place (R) is none yet
        spare = "(R)" in flags or ("(S)" in flags and state != "inactive")
        kind = "F" if "(F)" in flags else "J" if "(J)" in flags else "S" if spare else ""
        path = f"/dev/{match.group('name').replace('!', '/')}"
        members[kind].append((int(match.group("number")), path))
        if not set(re.split(r"[()]+", flags)) <= _FLAGS:
            odd[f"Device {path}"] = flags
    placed, spares, failed, journals = (
        tuple(path for _, path in sorted(members[kind])) for kind in ("", "S", "F", "J")
    )
    return VolumeFacts(
        f"/dev/{name}",
        level=level.replace("raid", ""),
        state=", ".join([state, *remarks]),
        members=placed,
        spares=spares,
        failed=failed,
        device=f"/dev/{name}",
        healthy=state == "active" and not failed and not odd,
        settings={**odd, **({"journal": " ".join(journals)} if journals else {})},
    )


def _more(volume: VolumeFacts, line: str) -> VolumeFacts:
    """A further line of an array: size and counts, a task, or something that is kept."""
    blocks, task, chunk = _BLOCKS.match(line), _TASK.search(line), _CHUNK.search(line)
    counts = _COUNTS.search(line)
    number = sum(name.startswith("line ") for name in volume.settings) + 1
    settings = {**volume.settings, f"line {number}": line.strip()}
    if counts is not None:
        settings["members"] = " ".join(counts.groups())
    volume = replace(volume, settings=settings, healthy=None if _CONTAINER.search(line) else volume.healthy)
    if blocks is not None:
        strip = parse_size(chunk.group("size")) if chunk else None
        volume = replace(volume, size=int(blocks.group("kib")) * 1024, strip=strip)
    if task is not None:
        name = DELAYED_TASK if task.group("word") == _DELAYED else _TASKS[task.group("task")]
        volume = replace(volume, progress={**volume.progress, name: float(task.group("percent") or 0.0)})
    return volume


def _checked(volume: VolumeFacts) -> VolumeFacts:
    """An array with its health. Raises ToolError when numbers and letters, or they and the devices, do not agree."""
    told = volume.settings.get("members", "").split()
    if not told:
        return volume
    wanted, there, letters = int(told[0]), int(told[1]), told[2]
    if len(letters) != wanted or wanted - letters.count("_") != there or len(volume.members) < there:
        raise ToolError(
            f"{_FILE} reports {volume.id} that {there} of {wanted} members are there ([{letters}]), and lists "
            f"{len(volume.members)}"
        )
    states = [volume.state] if wanted == there else [volume.state, "degraded"]
    # a member that failed may have been replaced already
    sound = volume.state.startswith("active") and letters == "U" * wanted
    return replace(volume, state=", ".join(states), healthy=sound)
