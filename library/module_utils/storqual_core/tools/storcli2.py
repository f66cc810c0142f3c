# SPDX-License-Identifier: Apache-2.0
"""storcli2 and perccli2: 96xx adapters and PERC 12 (mpi3mr). Not the grammar of `storcli`.

Cache policies are set one at a time, there is no I/O policy, a volume is made with `r5` in place of `type=raid5` and
deleted with `delete`. A command that is not understood is answered in plain text although JSON was asked for, with
an exit status that may be 0. How it initialises volumes, downloads images and sets hot spares is not verified: these
are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.json_text import as_list, as_mapping, as_text
from .capabilities import AdapterFacts, ToolFacts, Value, VolumeFacts, VolumeRequest
from .storcli_answer import adapter_of, carried_out, data_of, drives_behind, drives_of, first, flat, size_of

PROGRAMS = (
    "storcli2",
    "perccli2",
)
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
_DISK_CACHE = {"dflt": "default", "dsbl": "disable", "enbl": "enable", "disabled": "disable", "enabled": "enable"}
_LEVELS = {"0": 1, "1": 2, "5": 3, "6": 4}
_WRITING = {"read_policy": ("rdcache", ("ra", "nora")), "write_policy": ("wrcache", ("wb", "wt", "awb"))}


def _ask(runner: Runner, words: str) -> Completed:
    return run_first(runner, PROGRAMS, [*words.split(" "), "J"], timeout=_TIMEOUT)


def read_facts(runner: Runner) -> ToolFacts:
    """Every controller with its drives and volumes; none when there is none. Raises ToolError."""
    adapters = []
    for answer in data_of(_ask(runner, "show").stdout, _TOOL):
        for row in as_list(answer.data.get("System Overview")):
            index = as_text(as_mapping(row).get("Ctrl"))
            adapter = _controller(runner, index)
            known = {drive.position: drive for drive in adapter.drives}
            for details in data_of(_ask(runner, f"/c{index}/eall/sall show all").stdout, _TOOL):
                known.update({drive.position: drive for drive in drives_of(details, _state)})
            adapters.append(replace(adapter, drives=tuple(known.values()), volumes=read_volumes(runner, index)))
    return ToolFacts(tuple(adapters))


def parse_adapters(text: str) -> tuple[AdapterFacts, ...]:
    """The controller of `/cN show all` (or `/cN show`); none when there is no such controller. Raises ToolError."""
    return tuple(
        replace(
            adapter_of(answer, _FIRMWARE),
            drives=drives_of(answer, _state),
            volumes=tuple(_listed(as_mapping(row), answer.data) for row in as_list(answer.data.get("VD LIST"))),
        )
        for answer in data_of(text, _TOOL)
    )


def _controller(runner: Runner, index: str) -> AdapterFacts:
    found = parse_adapters(_ask(runner, f"/c{index} show all").stdout)
    if len(found) != 1:
        raise ToolError(f"{_TOOL} finds no controller {index}")
    return found[0]


def _state(row: Mapping[str, Any]) -> str:
    """`Conf Online`, `UConf Good`, `JBOD Good`: both words, since each alone says half of it."""
    words = (as_text(row.get(name)).strip() for name in ("State", "Status"))
    return " ".join(word for word in words if word and word != "-")


def _listed(row: Mapping[str, Any], data: Mapping[str, Any]) -> VolumeFacts:
    words = {key: as_text(value).strip() for key, value in row.items()}
    group, _, number = words.get("DG/VD", "").partition("/")
    read, _, write = words.get("CurrentCache", "").partition(",")
    policies = {"read_policy": _READ_POLICY.get(read, ""), "write_policy": write.lower()}
    members = (
        as_text(drive.get("EID:Slt")).strip()
        for drive in map(as_mapping, as_list(data.get("PD LIST")))
        if as_text(drive.get("DG")).strip() == group
    )
    state = words.get("State", "")
    return VolumeFacts(
        id=number,
        name=words.get("Name", ""),
        level=words.get("TYPE", "").upper().replace("RAID", ""),
        state=state,
        members=tuple(members),
        policies={name: value for name, value in policies.items() if value},
        healthy={"": None, "Optl": True}.get(state, False),
        settings={name: value for name, value in words.items() if name not in ("DG/VD", "TYPE", "State", "Name")},
    )


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """The volumes of one controller, with strip and members. Raises ToolError."""
    return parse_volumes(_ask(runner, f"/c{index}/vall show all").stdout)


def parse_volumes(text: str) -> tuple[VolumeFacts, ...]:
    """The volumes of `/cN/vall show all` or `/cN/vN show all`. Raises ToolError, also for a number that is none."""
    found = []
    for answer in data_of(text, _TOOL):
        wrong = answer.complaints
        entries = as_list(answer.data.get("Virtual Drives"))
        if wrong and not entries:
            raise ToolError(f"{_TOOL} could not read: {'; '.join(wrong)}")
        found += [_detailed(as_mapping(entry)) for entry in entries]
    return tuple(found)


def _detailed(entry: Mapping[str, Any]) -> VolumeFacts:
    """One entry of `Virtual Drives`: its row, its drives, its properties."""
    info = entry.get("VD Info")
    volume = _listed(as_mapping(as_list(info)[0] if as_list(info) else info), {})
    words = flat(as_mapping(entry.get("VD Properties")), without=())
    blocks = first(words, "Number of Blocks")
    device = first(words, "OS Drive Name")
    disk_cache = _DISK_CACHE.get(first(words, "Disk Cache Policy", "Current Disk Cache Policy").lower(), "")
    return replace(
        volume,
        wwn=printed_wwn(first(words, "SCSI NAA Id")),
        size=int(blocks) * 512 if blocks.isdecimal() and blocks.isascii() else None,
        strip=size_of(first(words, "Strip Size")),
        members=tuple(as_text(as_mapping(drive).get("EID:Slt")).strip() for drive in as_list(entry.get("PDs"))),
        policies={**volume.policies, **({"disk_cache": disk_cache} if disk_cache else {})},
        device=f"/dev/{device.rpartition('/')[2]}" if device else "",
        settings={**volume.settings, **words},
    )


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What is not verified of this tool, or cannot be made of so many drives."""
    found = []
    if request.level not in _LEVELS:
        found.append(f"how {_TOOL} makes RAID {request.level} is not verified, only {', '.join(_LEVELS)}")
    elif len(request.members) < _LEVELS[request.level]:
        found.append(f"RAID {request.level} needs {_LEVELS[request.level]} members, {len(request.members)} are named")
    found += [f"{_TOOL} has no {name} to set" for name in sorted(set(request.policies) - set(_WRITING))]
    for name, given in (
        ("strip", request.strip),
        ("name", request.name),
        ("hot spares", request.spares),
        ("initialisation", request.initialisation if request.initialisation != "none" else ""),
    ):
        if given:
            found.append(f"how {_TOOL} is given a {name} is not verified: leave it out, or use the vendor's menu")
    return tuple(found)


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume. Raises ToolError."""
    refuse_for(objections(request))
    words = [f"/c{index}", "add", "vd", f"r{request.level}", f"drives={','.join(request.members)}"]
    words += [str(request.policies[name]) for name in ("write_policy", "read_policy") if name in request.policies]
    carried_out(_ask(runner, " ".join(words)), _TOOL, f"a volume on controller {index} could not be made")


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume with all that is on it. Raises ToolError."""
    ended = _ask(runner, f"/c{index}/v{volume.id} delete")
    carried_out(ended, _TOOL, f"volume {volume.id} of controller {index} could not be deleted", "end what uses it")


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
