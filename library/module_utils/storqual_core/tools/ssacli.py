# SPDX-License-Identifier: Apache-2.0
"""ssacli (hpssacli, hpacucli before): HPE Smart Array controllers. It prints an indented tree and no JSON.

What is known: the tree (recorded), `create type=ld` and `delete` (documented: other people's code runs them), the
return codes of a Smart Component (documented: HP Smart Update Manager guide). Words of `create` that only a manual
names are looked for in the tool's own help first. How policies are modified is not verified, so it is not offered.
"""

from __future__ import annotations

from typing import Mapping

from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError, refuse_for
from .capabilities import AdapterFacts, FirmwareImage, ToolFacts, VolumeFacts, VolumeRequest
from .shapes.ssacli_tree import parse_controllers

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
