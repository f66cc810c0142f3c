# SPDX-License-Identifier: Apache-2.0
"""Which build of a driver an initramfs carries: the third place where a driver lies, and the one that boots.

An initramfs is a row of cpio archives (format newc); the first ones may be plain (processor microcode), the last one
is compressed. Kernel documentation: driver-api/early-userspace/buffer-format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

from .cpio_archive import MAGICS, Member, read_archive
from .errors import ToolError
from .packed_data import magic_of, unpack
from .tools.kmod import Build

__all__ = ["Part", "builds_in", "entries", "module_build", "module_name", "plain_module", "read_parts"]

# a module in the image, plain or compressed by itself
_MODULE = re.compile(r"(?:^|/)([\w-]+)\.ko(?:\.(?:xz|zst|gz))?$")
_FIELD = re.compile(rb"(?:^|\0)(srcversion|version|vermagic)=([^\0]*)\0")


@dataclass(frozen=True)
class Part:
    """One piece of an initramfs: its archives, packed together (`packing` is how it begins) or plain (empty)."""

    packing: bytes
    archives: tuple[tuple[Member, ...], ...]


def read_parts(image: bytes) -> list[Part]:
    """The pieces of an initramfs in order. Raises ToolError when it is broken, or packed in an unknown way."""
    parts: list[Part] = []
    place = 0
    while place < len(image):
        if image[place] == 0:
            place += 1
        elif image[place : place + 6] in MAGICS:
            members, place = read_archive(image, place)
            parts.append(Part(b"", (tuple(members),)))
        else:
            # what follows packed data is padding
            packed = image[place:]
            inner = read_parts(unpack(packed))
            parts.append(Part(magic_of(packed), tuple(archive for part in inner for archive in part.archives)))
            break
    return parts


def entries(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in an initramfs. Raises ToolError when the image is broken."""
    for part in read_parts(image):
        for archive in part.archives:
            for member in archive:
                yield member.name, member.content


def module_name(filename: str) -> str:
    """The module in a file of this name, as the kernel names it; empty when it is no module."""
    match = _MODULE.search(filename)
    return match.group(1).replace("-", "_") if match else ""


def plain_module(content: bytes) -> bytes:
    """A module file unpacked. Raises ToolError for broken packed data."""
    return content if content.startswith(b"\x7fELF") or not content else unpack(content)


def module_build(content: bytes, filename: str = "") -> Build:
    """The build that a module file (plain or packed) names in itself. Raises ToolError for broken packed data."""
    found = {
        key.decode(): value.decode("utf-8", "replace")
        for key, value in _FIELD.findall(_doubled(plain_module(content)))
    }
    return Build(found.get("srcversion", ""), found.get("version", ""), found.get("vermagic", ""), filename)


def _doubled(data: bytes) -> bytes:
    """Every NUL twice: one ends a field and the same one begins the next, and a match uses up both."""
    return data.replace(b"\0", b"\0\0")


def builds_in(path: str, names: Sequence[str]) -> dict[str, Build | None]:
    """The builds of `names` in the initramfs at `path`, None for one that it does not carry. Raises ToolError."""
    try:
        image = Path(path).read_bytes()
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem
    wanted = {name.replace("-", "_"): name for name in names}
    found: dict[str, Build | None] = dict.fromkeys(names)
    for filename, content in entries(image):
        name = wanted.get(module_name(filename))
        if name is not None:
            found[name] = module_build(content, filename)
    return found
