# SPDX-License-Identifier: Apache-2.0
"""storcli and perccli: MegaRAID and PERC adapters up to the 95xx and PERC 11, and SAS HBAs of the same maker.

Commands end in `J` (JSON) and `nolog`, or the tool leaves a log in the current folder. Reading was checked with
recorded outputs; the changing commands are those of published manuals and of programs in use, each read back by
whoever calls. The successors for 96xx and PERC 12 have another grammar: see `storcli2`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Mapping, Sequence

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.json_text import as_int, as_list, as_mapping, as_text
from ..kit.labelled_text import printed_size, size_range
from .capabilities import (
    AdapterFacts,
    DriveFacts,
    FirmwareImage,
    Spelling,
    ToolFacts,
    Value,
    VolumeFacts,
    VolumeRequest,
)
from .shapes.storcli_answer import (
    adapter_of,
    blocks_size,
    carried_out,
    data_of,
    drives_behind,
    drives_of,
    drives_told,
    first,
    flat,
    is_overview,
    overview_of,
    percent_of,
    size_of,
)
from .shapes.storcli_parts import (
    more_settings,
    parse_backup,  # noqa: F401 - offered here with the other parsers of storcli
    parse_foreign,  # noqa: F401 - likewise
    path_of,
    places,
    tasks_of,
    under_way,
    volumes_apart,
    with_foreign,
)

PROGRAMS = (
    "storcli64",
    "storcli",
    "perccli64",
    "perccli",
)
SETTINGS: Mapping[str, Spelling] = {
    "rebuild_rate": Spelling("Rebuild Rate", "rebuildrate", "documented only"),
    "interrupt_coalescing_depth": Spelling("Interrupt Throttle Active Count", "", "recorded"),
    "interrupt_coalescing_timeout": Spelling("Interrupt Throttle Completion", "", "recorded"),
}
"""Canonical names, the words of the policies' table, and the word to set it by (none: only read)."""

FREE = ("UGood",)
_TOOL = "storcli"
_TIMEOUT = 180.0
_DOWNLOAD_TIMEOUT = 3600.0
_FIRMWARE = {
    "firmware": ("Firmware Version", "FW Version"),
    "package": ("Firmware Package Build", "FW Package Build"),
    "bios": ("Bios Version", "BIOS Version"),
    "nvdata": ("NVDATA Version",),
}
# `Ra` reads ahead when it finds a sequence; newer releases call always-write-back forced
_CACHE = re.compile(r"\A(NR|Ra|R)?(AWB|FWB|WB|WT)?([CD])?\Z")
_READ_POLICY = {"R": "ra", "NR": "nora"}
_WRITE_POLICY = {"FWB": "awb"}
_FAILED = ("Failed", "Offln", "UBad", "UBUnsp", "Msng")
_IO_POLICY = {"D": "direct", "C": "cached"}
_DISK_CACHE = {"disk's default": "default", "enabled": "enable", "disabled": "disable"}
_LEVELS = {"0": 1, "1": 2, "5": 3, "6": 4, "10": 4, "50": 6, "60": 8}
_SPANS = {"10": 2, "50": 2, "60": 2}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}\Z")
_DOWNLOADS = {"firmware": "", "package": "", "bios": "bios ", "efibios": "efibios "}
_WRITING = {
    # canonical name: the word of the command, and its values by the canonical ones
    "read_policy": ("rdcache", {"ra": "ra", "nora": "nora"}),
    "write_policy": ("wrcache", {"wb": "wb", "wt": "wt", "awb": "awb"}),
    "io_policy": ("iopolicy", {"direct": "direct", "cached": "cached"}),
    "disk_cache": ("pdcache", {"enable": "on", "disable": "off", "default": "default"}),
}


def _ask(runner: Runner, words: str, timeout: float = _TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, [*words.split(" "), "J", "nolog"], timeout=timeout)


def read_facts(runner: Runner) -> ToolFacts:
    """Every controller with its drives and volumes; none when there is none. Raises ToolError."""
    found = _whole(runner)
    notes = list(found.notes)
    adapters = []
    for adapter in found.adapters:
        more = more_settings(lambda words: _ask(runner, words).stdout, adapter.index, notes)
        adapters.append(replace(adapter, settings={**adapter.settings, **more}))
    return ToolFacts(tuple(adapters), tuple(notes))


def _whole(runner: Runner) -> ToolFacts:
    """Every controller with its drives and volumes. Raises ToolError."""
    adapters = []
    notes = []
    for adapter in parse_adapters(_ask(runner, "/call show all").stdout):
        known = {drive.position: drive for drive in adapter.drives}
        for words in (f"/c{adapter.index}/eall/sall show all", f"/c{adapter.index}/sall show all"):
            try:
                told = parse_drives(_ask(runner, words).stdout)
            except ToolError as problem:
                # drives in enclosures and those without are asked for apart, and an adapter may know one way only
                notes.append(str(problem))
                continue
            known.update({drive.position: drive for drive in told})
        volumes = read_volumes(runner, adapter.index)
        adapters.append(replace(adapter, drives=tuple(known.values()), volumes=volumes))
    return ToolFacts(tuple(adapters), tuple(notes))


def parse_adapters(text: str) -> tuple[AdapterFacts, ...]:
    """The controllers of `/call show all` (or `show`), with the drives and volumes listed there.

    Of the overview of plain `show`: number, model and health of each. Raises ToolError.
    """
    found: list[AdapterFacts] = []
    for answer in data_of(text, _TOOL):
        if is_overview(answer):
            found += overview_of(answer)
            continue
        volumes = tuple(_listed(row, answer.data) for row in as_list(answer.data.get("VD LIST")))
        found.append(replace(adapter_of(answer, _FIRMWARE), drives=drives_of(answer, _state), volumes=volumes))
    return tuple(found)


def parse_drives(text: str) -> tuple[DriveFacts, ...]:
    """The drives of `/cN/eall/sall show all` or `/cN/sall show all`. Raises ToolError."""
    return drives_told(text, _TOOL, _state)


def _state(row: Mapping[str, Any]) -> str:
    if "State" not in row:
        raise ToolError(f"{_TOOL} lists a drive ({as_text(row.get('EID:Slt'))}) without its state")
    return with_foreign(as_text(row.get("State")).strip("- "), row)


def _placed(drives: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Place and state of drives; the state is the status here."""
    return [(as_text(drive.get("EID:Slt")).strip(), state, state) for drive in drives for state in [_state(drive)]]


def _listed(row: object, data: Mapping[str, Any]) -> VolumeFacts:
    """One row of a list of volumes; its members are the drives of its group, where those are listed too."""
    words = {key: as_text(value).strip() for key, value in as_mapping(row).items()}
    # the volumes of IR firmware are of no group, and their drives name none
    group, _, number = words.get("DG/VD", words.get("VD", "")).rpartition("/")
    drives = [as_mapping(drive) for drive in as_list(data.get("PD LIST"))]
    placed = _placed([drive for drive in drives if as_text(drive.get("DG")).strip() == group != ""])
    cache = _CACHE.match(words.get("Cache", ""))
    read, write, through = cache.groups() if cache else (None, None, None)
    policies = {
        "read_policy": _READ_POLICY.get(read or "", ""),
        "write_policy": _WRITE_POLICY.get(write or "", (write or "").lower()),
        "io_policy": _IO_POLICY.get(through or "", ""),
    }
    members, spares, failed = places(placed, _FAILED)
    state, printed = words.get("State", ""), words.get("Size", "")
    return VolumeFacts(
        id=number,
        name=words.get("Name", ""),
        level=words.get("TYPE", "").upper().replace("RAID", ""),
        state=state,
        size=printed_size(printed, base=1024),
        size_range=size_range(printed, base=1024, off=3),
        members=members,
        spares=spares,
        failed=failed,
        policies={name: value for name, value in policies.items() if value},
        progress=under_way("", placed),
        healthy={"": None, "Optl": True}.get(state, False),
        settings={name: value for name, value in words.items() if name not in ("DG/VD", "TYPE", "State", "Name")},
    )


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """The volumes of one controller, with strip, members and what is under way. Raises ToolError."""
    volumes = parse_volumes(_ask(runner, f"/c{index}/vall show all").stdout)
    return tuple(
        replace(volume, progress={} if _idle(volume) else {**volume.progress, **progress(runner, index, volume)})
        for volume in volumes
    )


def _idle(volume: VolumeFacts) -> bool:
    return volume.settings.get("Active Operations", "") == "None" and not volume.progress


def parse_volumes(text: str) -> tuple[VolumeFacts, ...]:
    """The volumes of `/cN/vall show all` or, with less of each, of `/cN/vall show`; none where there is none.

    Raises ToolError, also for an answer that tells nothing of volumes.
    """
    found: list[VolumeFacts] = []
    for answer in data_of(text, _TOOL):
        rows = [*as_list(answer.data.get("Virtual Drives")), *as_list(answer.data.get("VD LIST"))]
        listed = [_listed(row, answer.data) for row in rows]
        full = [_detailed(entry) for entry in volumes_apart(answer.data)]
        if not listed and not full:
            raise ToolError(f"the answer of controller {answer.controller or '?'} says nothing about volumes")
        if not all(volume.id for volume in (*listed, *full)):
            raise ToolError(f"the answer of controller {answer.controller or '?'} lists a volume without its number")
        found += full or listed
    return tuple(found)


def _detailed(entry: Mapping[str, Any]) -> VolumeFacts:
    volume = _listed(entry.get("VD Info"), {})
    placed = _placed([as_mapping(drive) for drive in as_list(entry.get("PDs"))])
    members, spares, failed = places(placed, _FAILED)
    words = flat(as_mapping(entry.get("VD Properties")), without=())
    if not words:
        raise ToolError(f"volume {volume.id} is listed without its properties")
    blocks, unit = as_int(first(words, "Number of Blocks")), size_of(first(words, "Block Size"))
    printed = volume.settings.get("Size", "")
    device = first(words, "OS Drive Name")
    disk_cache = _DISK_CACHE.get(first(words, "Disk Cache Policy", "Drive Write Cache Policy").lower(), "")
    return replace(
        volume,
        wwn=printed_wwn(first(words, "SCSI NAA Id")),
        size=volume.size if blocks is None else blocks_size(blocks, unit, printed),
        size_range=volume.size_range if blocks is None else None,
        strip=size_of(first(words, "Strip Size")),
        members=members,
        spares=spares,
        failed=failed,
        policies={**volume.policies, **({"disk_cache": disk_cache} if disk_cache else {})},
        progress=under_way(first(words, "Active Operations"), placed),
        device=f"/dev/{device.rpartition('/')[2]}" if device else "",
        settings={**volume.settings, **words},
    )


def progress(runner: Runner, index: str, volume: VolumeFacts) -> Mapping[str, float]:
    """Percent by task of what a controller does with a volume, and with the drives in it. Raises ToolError."""
    return tasks_of(lambda words: _ask(runner, words).stdout, index, volume)


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What these controllers have nothing for, or cannot make of so many drives."""
    found = []
    if request.level not in _LEVELS:
        found.append(f"they make no RAID {request.level}, only {', '.join(_LEVELS)}")
    elif len(request.members) < _LEVELS[request.level]:
        found.append(f"RAID {request.level} needs {_LEVELS[request.level]} members, {len(request.members)} are named")
    elif request.level in _SPANS and len(request.members) % 2:
        found.append(f"RAID {request.level} needs an even number of members, {len(request.members)} are named")
    wrong = request.strip_objection(8 << 10, 1 << 20)
    found += [wrong] if wrong else []
    if "bitmap" in request.policies:
        found.append("the controller keeps its own journal: there is no bitmap to choose")
    if request.name and not _NAME.match(request.name):
        found.append("names have up to 15 letters, digits, dots, dashes and underscores")
    return tuple(found)


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume, then give it its spares; the order of the words matters to the tool. Raises ToolError."""
    refuse_for(objections(request))
    words = [f"/c{index}", "add", "vd", f"type=raid{request.level}", "size=all"]
    words += [f"name={request.name}"] if request.name else []
    words.append(f"drives={','.join(request.members)}")
    if request.level in _SPANS:
        per_span = 2 if request.level == "10" else len(request.members) // _SPANS[request.level]
        words.append(f"PDperArray={per_span}")
    for name in ("write_policy", "read_policy", "io_policy"):
        words += [_WRITING[name][1][str(request.policies[name])]] if name in request.policies else []
    words += [f"strip={request.strip // 1024}"] if request.strip is not None else []
    carried_out(_ask(runner, " ".join(words)), _TOOL, f"a volume on controller {index} could not be made")
    for position in request.spares:
        words = [f"/c{index}{path_of(position)}", "add", "hotsparedrive"]
        carried_out(_ask(runner, " ".join(words)), _TOOL, f"drive {position} could not be made a hot spare")


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume with all that is on it. Raises ToolError."""
    ended = _ask(runner, f"/c{index}/v{volume.id} del force")
    carried_out(ended, _TOOL, f"volume {volume.id} of controller {index} could not be deleted", "stop what uses it")


def set_policy(runner: Runner, index: str, volume: VolumeFacts, name: str, value: Value) -> None:
    """Set a cache policy, the name, or the controller's rebuild rate. Raises ToolError."""
    if name == "rebuild_rate":
        write_setting(runner, index, name, value)
        return
    if name == "name":
        words = f"name={value}"
    elif name in _WRITING and str(value) in _WRITING[name][1]:
        words = f"{_WRITING[name][0]}={_WRITING[name][1][str(value)]}"
    else:
        raise ToolError(f"{_TOOL} knows no {name} of {value!r}")
    ended = _ask(runner, f"/c{index}/v{volume.id} set {words}")
    carried_out(ended, _TOOL, f"{name} of volume {volume.id} could not be set to {value}")


def initialise(runner: Runner, index: str, volume: VolumeFacts, kind: str) -> None:
    """Start writing zeros: to both ends (`fast`) or to all of the volume (`full`). Raises ToolError."""
    if kind not in ("fast", "full"):
        raise ToolError(f"{_TOOL} initialises fast or full, not {kind}")
    words = f"/c{index}/v{volume.id} start init {'full ' if kind == 'full' else ''}force"
    carried_out(_ask(runner, words), _TOOL, f"the initialisation of volume {volume.id} could not be started")


def _controller(runner: Runner, index: str) -> AdapterFacts:
    adapters = parse_adapters(_ask(runner, f"/c{index} show all").stdout)
    if len(adapters) != 1:
        raise ToolError(f"{_TOOL} finds no controller {index}")
    return adapters[0]


def read_settings(runner: Runner, index: str) -> Mapping[str, Value]:
    """The controller's properties that have a canonical name: shares in percent, counts, microseconds."""
    settings = _controller(runner, index).settings
    found: dict[str, Value] = {}
    for name, spelling in SETTINGS.items():
        number = percent_of(first(settings, spelling.read))
        if number is not None:
            found[name] = int(number)
    return found


def write_setting(runner: Runner, index: str, name: str, value: Value) -> None:
    """Set a property of the controller. Raises ToolError for one whose way of writing is not known."""
    spelling = SETTINGS.get(name)
    if spelling is None or not spelling.write:
        raise ToolError(f"how {_TOOL} sets {name} is not verified, so it is not tried; set it with the vendor's menu")
    ended = _ask(runner, f"/c{index} set {spelling.write}={value}")
    carried_out(ended, _TOOL, f"{name} of controller {index} could not be set to {value}")


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Versions by component; an image that waits for a restart is `firmware.pending`."""
    adapter = _controller(runner, index)
    pending = first(adapter.settings, "Pending Images in Flash / Image name")
    waits = {"firmware.pending": pending} if pending and pending.lower() != "no pending images" else {}
    return {**adapter.firmware, **waits}


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Put an image into the controller's flash. Raises ToolError; the caller reads the versions back."""
    if image.component not in _DOWNLOADS:
        raise ToolError(f"{_TOOL} downloads {', '.join(_DOWNLOADS)}, not {image.component}")
    words = [f"/c{index}", "download", *_DOWNLOADS[image.component].split(), f"file={image.path}"]
    ended = run_first(runner, PROGRAMS, [*words, "J", "nolog"], timeout=_DOWNLOAD_TIMEOUT)
    carried_out(ended, _TOOL, f"{image.component} of controller {index} could not be downloaded")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`reboot` while the image waits in flash, `none` when the controller runs it."""
    versions = read_versions(runner, index)
    return "none" if versions.get(image.component) == image.version else "reboot"


def resolve(runner: Runner, node: str) -> tuple[str, ...]:
    """The drives behind a volume's block device, by WWN or serial; empty when no controller has such a volume."""
    return drives_behind(_whole(runner), node)
