# SPDX-License-Identifier: Apache-2.0
"""Archives of the format newc, which an initramfs is made of (kernel: driver-api/early-userspace/buffer-format)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterable

from .errors import ToolError

__all__ = ["MAGICS", "Member", "compose", "new_file", "new_folder", "read_archive"]

MAGICS = (b"070701", b"070702")
_HEADER = 110
_TRAILER = "TRAILER!!!"
_FIELDS = 13
_MODE, _LINKS, _SIZE, _NAME_SIZE, _CHECK = 1, 4, 6, 11, 12
_BLOCK = 512


@dataclass(frozen=True)
class Member:
    """One file as it stands in an archive; `fields` are the header's numbers, sizes and check sum among them."""

    name: str
    content: bytes
    fields: tuple[int, ...]

    def holding(self, content: bytes) -> Member:
        """The same file with other content."""
        return replace(self, content=content)


def _new(name: str, content: bytes, mode: int, links: int) -> Member:
    fields = [0] * _FIELDS
    fields[_MODE], fields[_LINKS] = mode, links
    return Member(name, content, tuple(fields))


def new_file(name: str, content: bytes) -> Member:
    """A plain file of root's that all may read."""
    return _new(name, content, 0o100644, 1)


def new_folder(name: str) -> Member:
    """A folder of root's that all may enter; the kernel takes one that is there already."""
    return _new(name, b"", 0o040755, 2)


def read_archive(image: bytes, place: int) -> tuple[list[Member], int]:
    """The files of the archive that begins at byte `place`, without its trailer, and the byte after it.

    Raises ToolError when it is broken.
    """
    members: list[Member] = []
    while image[place : place + 6] in MAGICS:
        member, place = _read_member(image, place)
        if member.name == _TRAILER:
            break
        members.append(member)
    return members, place


def _read_member(image: bytes, place: int) -> tuple[Member, int]:
    try:
        fields = tuple(int(image[place + 6 + 8 * n : place + 14 + 8 * n], 16) for n in range(_FIELDS))
    except ValueError as problem:
        raise ToolError(f"the archive is broken at byte {place}") from problem
    name_end = place + _HEADER + fields[_NAME_SIZE]
    begin = name_end + -name_end % 4
    end = begin + fields[_SIZE]
    if end > len(image) or fields[_NAME_SIZE] == 0:
        raise ToolError(f"the archive ends inside a file that begins at byte {place}")
    name = image[place + _HEADER : name_end - 1].decode("utf-8", "surrogateescape")
    return Member(name, image[begin:end], fields), end + -end % 4


def compose(members: Iterable[Member]) -> bytes:
    """An archive of these files, padded to a block, so that another one may follow."""
    parts: list[bytes] = []
    length = 0
    for member in (*members, _new(_TRAILER, b"", 0, 1)):
        name = member.name.encode("utf-8", "surrogateescape") + b"\0"
        fields = list(member.fields)
        # without a check sum, which only the format 070702 has
        fields[_SIZE], fields[_NAME_SIZE], fields[_CHECK] = len(member.content), len(name), 0
        head = MAGICS[0] + b"".join(b"%08X" % field for field in fields) + name
        for data in (head, member.content):
            parts += [data, bytes(-len(data) % 4)]
            length += len(data) + -len(data) % 4
    parts.append(bytes(-length % _BLOCK))
    return b"".join(parts)
