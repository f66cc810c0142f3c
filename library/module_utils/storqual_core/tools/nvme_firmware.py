# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: firmware of NVMe drives: what a controller can do, its slots, download and commit.

The image goes to a slot that is not the running one, where there is another: the old image stays beside it. Fields
are numbered as in the NVM Express base specification 2.0 (Identify Controller, Firmware Slot Information log).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping

from ..capabilities import FirmwareImage
from ..command import Runner
from ..errors import ToolError
from ..json_text import as_int, as_mapping, as_text, the_object

__all__ = [
    "Controller",
    "Slots",
    "activate",
    "activation",
    "download",
    "firmware_objections",
    "parse_controller",
    "parse_slots",
    "read_versions",
]

_TIMEOUT = 120.0
_DOWNLOAD_TIMEOUT = 1800.0
_CAN_DOWNLOAD = 1 << 2
_ACTIVATE_AT_RESET, _ACTIVATE_NOW = 1, 3
# `3616727 (7.2)`: the eight bytes as a number, and as text
_SLOT = re.compile(r"^\d+ \((?P<text>.*)\)$")
_SLOTS = re.compile(r"^Firmware Rev Slot (?P<slot>[1-7])$")
_COMMITTED = re.compile(r"Success (?:committing|activating) firmware")


@dataclass(frozen=True)
class Controller:
    """What Identify Controller says: running revision, whether it takes images, slots, which are read-only."""

    revision: str
    downloads: bool
    slots: int
    first_read_only: bool
    without_reset: bool


@dataclass(frozen=True)
class Slots:
    """The firmware slots: the running one, the one that the next reset starts (0: the same), revisions by slot."""

    active: int
    following: int
    revisions: Mapping[int, str]


def parse_controller(text: str) -> Controller:
    """`nvme id-ctrl -o json`. Raises ToolError when it lacks what is needed."""
    body = the_object(text, "nvme", "fr")
    capabilities, slots = as_int(body.get("oacs")), as_int(body.get("frmw"))
    if capabilities is None or slots is None:
        raise ToolError("nvme printed no oacs and frmw of the controller")
    return Controller(
        revision=as_text(body.get("fr")).strip(),
        downloads=bool(capabilities & _CAN_DOWNLOAD),
        slots=slots >> 1 & 7,
        first_read_only=bool(slots & 1),
        without_reset=bool(slots & 1 << 4),
    )


def parse_slots(text: str) -> Slots:
    """`nvme fw-log -o json`, whose object stands below the device's name. Raises ToolError."""
    outer = the_object(text, "nvme")
    inner: Mapping[str, Any] = next((body for body in map(as_mapping, outer.values()) if body), outer)
    place = as_int(inner.get("Active Firmware Slot (afi)"))
    if place is None:
        raise ToolError("nvme printed no active firmware slot")
    revisions = {}
    for name, value in inner.items():
        slot = _SLOTS.match(name)
        if slot is not None:
            shown = _SLOT.match(as_text(value))
            revisions[int(slot.group("slot"))] = (shown.group("text") if shown else as_text(value)).strip()
    return Slots(
        active=place & 7, following=place >> 4 & 7, revisions={slot: text for slot, text in revisions.items() if text}
    )


def _ask(runner: Runner, command: str, index: str, what: str) -> str:
    ended = runner(["nvme", command, index, "--output-format=json"], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure(f"{what} of {index} could not be read")
    return ended.stdout


def _controller(runner: Runner, index: str) -> Controller:
    return parse_controller(_ask(runner, "id-ctrl", index, "the abilities"))


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The running revision, and `firmware.pending` where the next reset starts another slot. Raises ToolError."""
    found = {"firmware": _controller(runner, index).revision}
    slots = parse_slots(_ask(runner, "fw-log", index, "the firmware slots"))
    if slots.following and slots.following != slots.active:
        found["firmware.pending"] = slots.revisions.get(slots.following, f"slot {slots.following}")
    return found


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:
    """A controller without the commands, without a slot that may be written, or one that starts no image at once."""
    able = _controller(runner, index)
    found = []
    if not able.downloads:
        found.append(f"{index} takes no firmware: its Identify data do not offer Firmware Commit and Image Download")
    elif not _writable(able):
        found.append(f"{index} has no firmware slot that may be written")
    elif image.activation == "none" and not able.without_reset:
        found.append(f"{index} starts an image at a reset only; declare `activation: reset` for it")
    return tuple(found)


def download(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:
    """Transfer an image and commit it to a slot, to be started at once (activation `none`) or by the next reset.

    Raises ToolError.
    """
    slots = parse_slots(_ask(runner, "fw-log", index, "the firmware slots"))
    slot = _slot_for(index, _controller(runner, index), slots)
    ended = runner(["nvme", "fw-download", index, f"--fw={image.path}"], timeout=_DOWNLOAD_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure(f"{index} did not take {image.path}")
    action = _ACTIVATE_NOW if image.activation == "none" else _ACTIVATE_AT_RESET
    ended = runner(["nvme", "fw-commit", index, f"--slot={slot}", f"--action={action}"], timeout=_DOWNLOAD_TIMEOUT)
    if ended.rc != 0 or not _COMMITTED.search(ended.stdout):
        raise ended.failure(f"{index} did not commit {image.path} to slot {slot}")
    said = next(line.strip() for line in ended.stdout.splitlines() if _COMMITTED.search(line))
    return (f"{index}: image transferred and committed to slot {slot} ({said[:200]})",)


def _writable(able: Controller) -> list[int]:
    return [slot for slot in range(able.slots, 0, -1) if not (slot == 1 and able.first_read_only)]


def _slot_for(index: str, able: Controller, slots: Slots) -> int:
    """A slot that may be written: another than the running one, the highest first; the running one if it is alone."""
    writable = _writable(able)
    others = [slot for slot in writable if slot != slots.active]
    if not writable:
        raise ToolError(f"{index} has no firmware slot that may be written")
    return others[0] if others else writable[0]


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`none` when the commit started the image or the controller runs its version, else `reset`. Raises ToolError."""
    if image.activation == "none":
        return "none"
    return "none" if _controller(runner, index).revision == image.version else "reset"


def activate(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Reset the controller; its namespaces stay. Raises ToolError."""
    ended = runner(["nvme", "reset", index], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure(f"{index} could not be reset to start {image.version}")
