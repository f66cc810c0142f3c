# SPDX-License-Identifier: Apache-2.0
"""storcli2 and perccli2: 96xx adapters and PERC 12 (mpi3mr). Not the grammar of `storcli`.

Cache policies are set one at a time, there is no I/O policy, a volume is made with `r5` in place of `type=raid5` and
deleted with `delete`. A command that is not understood is answered in plain text although JSON was asked for, with
an exit status that may be 0. How it initialises volumes, downloads images and sets hot spares is not verified: these
are refused.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Mapping, Sequence

from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import as_list, as_mapping, as_text
from .capabilities import (
    AdapterFacts,
    BackgroundWork,
    DriveFacts,
    ToolFacts,
    Value,
    VolumeFacts,
    VolumeRequest,
    all_but_odd,
    read_or_why,
)
from .storcli import (
    adapters_of,
    background_of,
    carried_out,
    data_of,
    drives_behind,
    drives_told,
    first,
    overview_of,
    properties_of,
    refuse_controller,
    volume_of_row,
    volume_or_why,
    volumes_apart,
    with_foreign,
    with_properties,
)

PROGRAMS = ("storcli2", "perccli2")
FREE = ("UConf Good",)

_TOOL = "storcli2"
_TIMEOUT = 180.0
_FIRMWARE = {
    "firmware": ("Firmware Version",),
    "package": ("Package Version",),
    "bios": ("BIOS Version",),
    "nvdata": ("NVDATA Version",),
}
_READ_POLICY = {"R": "ra", "RA": "ra", "NR": "nora"}
_DISK_CACHE = {
    **dict.fromkeys(("dflt", "default"), "default"),
    **dict.fromkeys(("dsbl", "disabled"), "disable"),
    **dict.fromkeys(("enbl", "enabled"), "enable"),
}
_FAILED = ("Failed", "Offline", "Missing", "Unusbl")
_LEVELS = {"0": 1, "1": 2, "5": 3, "6": 4}
_WRITING = {"read_policy": ("rdcache", ("ra", "nora")), "write_policy": ("wrcache", ("wb", "wt", "awb"))}


def _ask(runner: Runner, words: str) -> Completed:
    return run_first(runner, PROGRAMS, [*words.split(" "), "J"], timeout=_TIMEOUT)


def read_facts(runner: Runner) -> ToolFacts:
    """Every controller with its drives and volumes; none when there is none. Raises ToolError."""
    adapters: list[AdapterFacts] = []
    for answer in data_of(_ask(runner, "show").stdout, _TOOL):
        indices = [each.index for each in overview_of(answer)]
        adapters += [read_or_why(partial(_whole, runner, index), AdapterFacts(index)) for index in indices]
    return ToolFacts(all_but_odd(adapters))


def _whole(runner: Runner, index: str) -> AdapterFacts:
    """One controller with its drives and volumes. Raises ToolError."""
    adapter = _controller(runner, index)
    known = {drive.position: drive for drive in adapter.drives}
    drives = parse_drives(_ask(runner, f"/c{index}/eall/sall show all").stdout)
    known.update({drive.position: drive for drive in drives})
    return replace(adapter, drives=tuple(known.values()), volumes=read_volumes(runner, index))


def parse_adapters(text: str) -> tuple[AdapterFacts, ...]:
    """The controller of `/cN show all` (or `/cN show`); none when there is no such controller.

    Raises ToolError.
    """
    return adapters_of(text, _TOOL, _FIRMWARE, _state, _listed)


def _controller(runner: Runner, index: str) -> AdapterFacts:
    adapters = parse_adapters(_ask(runner, f"/c{index} show all").stdout)
    if len(adapters) != 1:
        raise ToolError(f"{_TOOL} finds no controller {index}")
    return adapters[0]


def parse_drives(text: str) -> tuple[DriveFacts, ...]:
    """The drives of `/cN/eall/sall show all`. Raises ToolError."""
    return drives_told(text, _TOOL, _state)


def _state(row: Mapping[str, Any]) -> str:
    """`Conf Online`, `UConf Good`, `JBOD Good`: both words, since each alone says half of it."""
    if "State" not in row or "Status" not in row:
        raise ToolError(f"{_TOOL} lists a drive ({as_text(row.get('EID:Slt'))}) without its state or status")
    words = (as_text(row.get(name)).strip() for name in ("State", "Status"))
    return with_foreign(" ".join(word for word in words if word and word != "-"), row)


def _listed(row: Mapping[str, Any], data: Mapping[str, Any]) -> VolumeFacts:
    words = {key: as_text(value).strip() for key, value in row.items()}
    group, _, number = words.get("DG/VD", "").partition("/")
    read, _, write = words.get("CurrentCache", "").partition(",")
    policies = {"read_policy": _READ_POLICY.get(read, ""), "write_policy": write.lower()}
    drives = map(as_mapping, as_list(data.get("PD LIST")))
    placed = _placed([drive for drive in drives if as_text(drive.get("DG")).strip() == group])
    return volume_of_row(number, words, policies, placed, _FAILED)


def _placed(drives: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Place, state and status of drives. Raises ToolError for one without place or state."""
    places = []
    for drive in drives:
        place, state, status = (as_text(drive.get(name)).strip() for name in ("EID:Slt", "State", "Status"))
        if not place or not state:
            raise ToolError(f"{_TOOL} lists a drive of a volume without its place or its state")
        places.append((place, state, status))
    return places


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """The volumes of one controller, with strip and members. Raises ToolError."""
    return parse_volumes(_ask(runner, f"/c{index}/vall show all").stdout)


def parse_volumes(text: str) -> tuple[VolumeFacts, ...]:
    """The volumes of `/cN/vall show all` or `/cN/vN show all` or, with less of each, of `/cN/vall show`.

    Raises ToolError, also for a number that is none and for an answer that tells nothing of volumes.
    """
    all_volumes: list[VolumeFacts] = []
    for answer in data_of(text, _TOOL):
        refuse_controller(answer, _TOOL, "volumes")
        wrong = answer.complaints
        entries = [
            as_mapping(row) for name in ("Virtual Drives", "VD LIST") for row in as_list(answer.data.get(name))
        ] or volumes_apart(answer.data)
        if wrong and not entries:
            raise ToolError(f"{_TOOL} could not read: {'; '.join(wrong)}")
        if not entries:
            raise ToolError(f"the answer of controller {answer.controller or '?'} says nothing about volumes")
        volumes = [
            volume_or_why(_row(entry), partial(_detailed, entry))
            if "VD Info" in entry
            else volume_or_why(entry, partial(_listed, entry, answer.data))
            for entry in entries
        ]
        if not all(volume.id for volume in volumes):
            raise ToolError(f"the answer of controller {answer.controller or '?'} lists a volume without its number")
        all_volumes += volumes
    return all_but_odd(all_volumes)


def _row(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    info = entry.get("VD Info")
    return as_mapping(as_list(info)[0] if as_list(info) else info)


def _detailed(entry: Mapping[str, Any]) -> VolumeFacts:
    """One entry of `Virtual Drives`: its row, its drives, its properties."""
    volume = _listed(_row(entry), {})
    words = properties_of(volume, entry)
    placed = _placed([as_mapping(drive) for drive in as_list(entry.get("PDs"))])
    policy = first(words, "Drive Write Cache Policy", "Disk Cache Policy", "Current Disk Cache Policy")
    disk_cache = _DISK_CACHE.get(policy.lower(), "")
    # how far an expansion is, is not among the properties
    doing = "Expansion" if first(words, "Morphing").lower() == "yes" else ""
    return with_properties(volume, words, placed, _FAILED, disk_cache, doing)


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What is not verified of this tool, or cannot be made of so many drives."""
    flaws = []
    if request.level not in _LEVELS:
        flaws.append(f"how {_TOOL} makes RAID {request.level} is not verified, only {', '.join(_LEVELS)}")
    elif len(request.members) < _LEVELS[request.level]:
        flaws.append(f"RAID {request.level} needs {_LEVELS[request.level]} members, {len(request.members)} are named")
    flaws += [f"{_TOOL} has no {name} to set" for name in sorted(set(request.policies) - set(_WRITING))]
    unknown = ", ".join(request.asks("strip", "name", "spares", "initialisation"))
    refusal = f"how {_TOOL} is given {unknown} is not verified: leave it out, or use the vendor's menu"
    flaws += [refusal] if unknown else []
    return tuple(flaws)


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume. Raises ToolError."""
    refuse_for(objections(request))
    words = [f"/c{index}", "add", "vd", f"r{request.level}", f"drives={','.join(request.members)}"]
    words += [str(request.policies[name]) for name in ("write_policy", "read_policy") if name in request.policies]
    carried_out(_ask(runner, " ".join(words)), _TOOL, f"a volume on controller {index} could not be made")


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume with all that is on it. Raises ToolError."""
    ended = _ask(runner, f"/c{index}/v{volume.id} delete")
    carried_out(ended, _TOOL, f"volume {volume.id} of controller {index} could not be deleted", "stop what uses it")


def set_policy(runner: Runner, index: str, volume: VolumeFacts, name: str, value: Value) -> None:
    """Set one cache policy; two in one command are a syntax error. Raises ToolError."""
    word, values = _WRITING.get(name, ("", ()))
    if str(value) not in values:
        raise ToolError(f"{_TOOL} knows no {name} of {value!r}")
    ended = _ask(runner, f"/c{index}/v{volume.id} set {word}={value}")
    carried_out(ended, _TOOL, f"{name} of volume {volume.id} could not be set to {value}")


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Versions by component; package and firmware are two things here."""
    return _controller(runner, index).firmware


def resolve(runner: Runner, node: str) -> tuple[str, ...]:
    """The drives behind a volume's block device, by WWN or serial; empty when no controller has such a volume."""
    return drives_behind(read_facts(runner), node)


def read_background(runner: Runner) -> tuple[BackgroundWork, ...]:
    """What the controllers do beside the commands of the host. Raises ToolError.

    The answer on the patrol read was never recorded: one in other words than storcli's is told as not read.
    """
    return background_of(lambda words: _ask(runner, words).stdout, parse_adapters, parse_volumes, _TOOL)
