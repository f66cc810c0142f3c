# SPDX-License-Identifier: Apache-2.0
"""fwupdmgr: firmware of NVMe and SATA drives (and what else fwupd knows); it flashes no RAID or SAS adapter.

`--json` output may have notes in front of it. Exit status: 0 done, 1 failed, 2 nothing to do, 3 not found (its
manual). A device is named by its DeviceId; the flags it carries are obstacles to an update.
"""

from __future__ import annotations

from typing import Any, Mapping

from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError
from ..kit.labelled_text import as_list, as_mapping, as_text, find_objects, plain_label, respelt
from .capabilities import AdapterFacts, FirmwareImage, ToolFacts

PROGRAMS = ("fwupdmgr",)

_TIMEOUT = 120.0
_FLASH_TIMEOUT = 1800.0
_NOTHING_TO_DO = 2

_OBSTACLES = {
    "unreachable": "it cannot be reached",
    "power-too-low": "its power is too low",
    "system-power-too-low": "the system's power is too low",
    "require-ac-power": "the system is not on mains power",
    **dict.fromkeys(("update-pending", "needs-reboot"), "another update of it is waiting for a boot"),
    "needs-shutdown": "another update of it is waiting for a power cycle",
    "update-in-progress": "another update of it is going on",
    "in-use": "it is in use",
    "display-required": "a screen must be attached",
    "lid-is-closed": "the lid is closed",
    "system-inhibit": "the system forbids updates now",
    "lower-priority": "another program updates it",
    "missing-license": "it needs a licence",
    **dict.fromkeys(("is-emulated", "emulated"), "it is emulated"),
    "locked": "it is locked",
    "firmware-locked": "its firmware is locked",
}
"""The flags and problems of fwupd that stand against an update, in words."""


_NAMES = {
    plain_label(name): name
    for name in (
        *("DeviceId", "Name", "Vendor", "Serial", "Plugin", "Flags", "Problems", "UpdateState"),
        *("Protocol", "Protocols", "VendorId", "VendorIds", "Version", "VersionBootloader", "VersionLowest"),
    )
}


def _objects(text: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    bodies, rest = find_objects(text)
    return bodies, tuple(line.strip() for line in rest.splitlines() if line.strip())


def parse_error(text: str) -> str:
    """The message of an `Error` object, with its code; empty when there is none."""
    for body in _objects(text)[0]:
        error = as_mapping(body.get("Error"))
        if error:
            message = as_text(error.get("Message")) or "no message"
            return f"{message} ({as_text(error.get('Domain')) or 'fwupd'} code {as_text(error.get('Code')) or '?'})"
    return ""


def parse_devices(text: str) -> ToolFacts:
    """What `get-devices --json` prints. Raises ToolError with what was said instead."""
    objects, notes = _objects(text)
    bodies = [body for body in objects if "Devices" in body]
    if not bodies:
        raise ToolError(f"fwupd listed no devices: {parse_error(text) or ' '.join(notes)[:200] or 'nothing'}")
    devices = [as_mapping(respelt(device, _NAMES)) for body in bodies for device in as_list(body["Devices"])]
    named = [device for device in devices if as_text(device.get("DeviceId"))]
    unnamed = [as_text(device.get("Name")) or "no name" for device in devices if device not in named]
    if unnamed and not named:
        raise ToolError(f"fwupd listed devices without a DeviceId: {', '.join(unnamed)[:200]}")
    return ToolFacts(
        tuple(map(_device, named)), (*notes, *(f"a device without a DeviceId: {name}" for name in unnamed))
    )


def _device(device: Mapping[str, Any]) -> AdapterFacts:
    version = as_text(device.get("Version"))
    flags = [*as_list(device.get("Flags")), *as_list(device.get("Problems"))]
    settings = {
        "Plugin": as_text(device.get("Plugin")),
        "Flags": " ".join(sorted({as_text(flag) for flag in flags if as_text(flag)})),
        "Protocol": _one_or_several(device, "Protocol"),
        "VendorId": _one_or_several(device, "VendorId"),
        "UpdateState": as_text(device.get("UpdateState")),
        "VersionBootloader": as_text(device.get("VersionBootloader")),
        "VersionLowest": as_text(device.get("VersionLowest")),
    }
    return AdapterFacts(
        index=as_text(device.get("DeviceId")),
        model=as_text(device.get("Name")),
        vendor=as_text(device.get("Vendor")),
        serial=as_text(device.get("Serial")),
        firmware={"firmware": version} if version else {},
        settings={name: value for name, value in settings.items() if value},
    )


def _one_or_several(device: Mapping[str, Any], name: str) -> str:
    """A text, which releases since 1.9 print in a list when there are several of it (`VendorIds`)."""
    several = (as_text(each) for each in as_list(device.get(f"{name}s")))
    return as_text(device.get(name)) or " ".join(each for each in several if each)


def obstacles(device: AdapterFacts) -> list[str]:
    """Why fwupd would not update a device now, in words; none when it may be."""
    flags = device.settings.get("Flags", "").split()
    reasons = [words for flag, words in _OBSTACLES.items() if flag in flags]
    return reasons if "updatable" in flags or "updatable-hidden" in flags else ["fwupd cannot update it", *reasons]


def _ask(runner: Runner, *words: str, timeout: float = _TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, [*words, "--json"], timeout=timeout)


def read_facts(runner: Runner) -> ToolFacts:
    """All devices that fwupd knows; `index` is the DeviceId. Raises ToolError."""
    ended = _ask(runner, "get-devices")
    return ToolFacts() if ended.rc == _NOTHING_TO_DO else parse_devices(ended.stdout)


def _device_of(runner: Runner, index: str) -> AdapterFacts:
    for device in read_facts(runner).adapters:
        if device.index == index:
            return device
    raise ToolError(f"fwupd knows no device {index}")


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The version of a device. Raises ToolError."""
    return _device_of(runner, index).firmware


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:  # noqa: ARG001
    """What holds an update of the device back now, in words. Raises ToolError."""
    return tuple(obstacles(_device_of(runner, index)))


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Install a cabinet file (`.cab`) on one device, an older or the same version too. Raises ToolError.

    What stands against it is asked right before: fwupd itself would wait for it, or skip the device with status 2.
    """
    against = obstacles(_device_of(runner, index))
    if against:
        raise ToolError(f"device {index} cannot be updated now: {'; '.join(against)}")
    words = ("--allow-older", "--allow-reinstall", "--assume-yes", "--no-reboot-check")
    ended = _ask(runner, "install", image.path, index, *words, timeout=_FLASH_TIMEOUT)
    problem = parse_error(ended.stdout)
    if ended.rc != 0 or problem:
        message = problem or ended.last_words()
        raise ToolError(f"fwupd did not install {image.path} (status {ended.rc}): {message}; command: {ended.line}")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """Nothing when the device runs the image's version already, else what its flags say."""
    device = _device_of(runner, index)
    if device.firmware.get(image.component) == image.version:
        return "none"
    flags = device.settings.get("Flags", "").split()
    return "power cycle" if "needs-shutdown" in flags else "reboot"
