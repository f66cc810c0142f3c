# SPDX-License-Identifier: Apache-2.0
"""systool (sysfsutils): the devices of a class of the kernel, each with every attribute that its driver has.

Run with 2.1.1, which counts nothing, and prints of a name what is behind its colon (`0-1` of `rport-2:0-1`): the name
is the end of the path. Names and secrets of CHAP are not kept.
"""

from __future__ import annotations

import re
from typing import Dict, Optional

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK, first_line

# what stands where nothing begins goes on with the value before it; pages and mail change how far a line is in
_BEGINS = re.compile(
    r'^(?=[ \t]*Class = |[ \t]+(?:Class Device|[A-Za-z_][\w.:-]*)(?: path)? *=(?:\s+["<]|\s+[0-9a-f]{2}\b|$))',
    re.MULTILINE,
)
_CLASS = re.compile(r'Class = "(?P<name>[^"\n]+)"')
_DEVICE = re.compile(r'Class Device = "(?P<name>[^"\n]+)"')
_PATH = re.compile(r'Class Device path =\s+"(?P<path>/[^"\n]+)"')
_VALUE = r'(?:\s+"(?P<text>.*)"| <store method only>|(?:\s+[0-9a-f]{2})*)'
_ATTRIBUTE = re.compile(rf"(?P<name>[\w.:-]+(?: path)?) *={_VALUE}", re.DOTALL)
_SECRET = re.compile(r"(?:device/)?(?:username|passw).*|.*secret")
Attributes = Dict[str, Optional[str]]
"""By name; None where nothing was printed, for what can only be written, and for what is secret or bytes."""


def parse_class(text: str) -> tuple[str, dict[str, Attributes]]:
    """The name of the class, and its devices by their names in sysfs, from `systool -c CLASS` with and without `-v`.

    Attributes of the device that one belongs to (`Device`) are named `device/vendor`, as in sysfs. Raises ToolError
    for what is none of it, for a value that does not end, and for what comes twice.
    """
    lines = "\n".join(map(str.rstrip, text.lstrip(BYTE_ORDER_MARK).splitlines()))
    before, *entries = map(str.strip, _BEGINS.split(lines))
    of = _CLASS.fullmatch(entries[0]) if entries and not before else None
    if of is None:
        raise ToolError(f"systool names no class first, but: {first_line(text)}")
    names: list[str] = []
    devices: list[Attributes] = []
    for entry in entries[1:]:
        device, path, attribute = (each.fullmatch(entry) for each in (_DEVICE, _PATH, _ATTRIBUTE))
        key = attribute["name"] if attribute else ""
        if devices and "Device" in devices[-1] and key != "Device path":
            key = f"device/{key}"
        if device:
            names.append(device["name"])
            devices.append({})
        elif path and names and path["path"].endswith((f"/{names[-1]}", f":{names[-1]}")):
            names[-1] = path["path"].rpartition("/")[2]
        elif attribute and devices and key not in devices[-1]:
            hidden = attribute["text"] is None or _SECRET.match(key)
            devices[-1][key] = None if hidden else attribute["text"].strip()
        else:
            raise ToolError(f"systool printed what is no part of a device: {first_line(entry.partition('=')[0])}")
    if len(set(names)) < len(names):
        raise ToolError(f"systool lists one device twice: {', '.join(names)[:200]}")
    return of["name"], dict(zip(names, devices))


def read_class(runner: Runner, name: str) -> dict[str, Attributes]:
    """The devices of a class that the kernel has. Raises ToolError."""
    of, devices = parse_class(runner(["systool", "-c", name, "-v"], timeout=60.0).expect().stdout)
    if of != name:
        raise ToolError(f"systool was asked for the class {name}, and tells of {of}")
    return devices
