# SPDX-License-Identifier: Apache-2.0
"""The files of a disc image (ISO 9660, ECMA-119) by their long names: Rock Ridge's (IEEE P1282), else Joliet's.

It is read and not mounted, and a name in it becomes no path.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Iterator

from .errors import ToolError

_SECTOR = 2048
_FIRST = 16
_MOST_DESCRIPTORS = 32
_PRIMARY, _SUPPLEMENTARY, _END = 1, 2, 255
_JOLIET = (b"%/@", b"%/C", b"%/E")
_FOLDER, _MORE = 0x02, 0x80
_DEPTH = 16
_MOST_FILES = 20_000
_LARGEST_FOLDER = 1 << 24


@dataclass(frozen=True)
class DiscFile:
    """A file by its path in the image, and the bytes that it is there."""

    path: str
    begin: int
    size: int

    def read(self, image: str) -> bytes:
        """Its content. Raises ToolError."""
        with Path(image).open("rb") as stream:
            return _read(stream, self.begin, self.size, image)


def list_files(image: str) -> tuple[DiscFile, ...]:
    """Every file, in the order of the image. Raises ToolError for another file, and for one that is cut."""
    try:
        with Path(image).open("rb") as stream:
            return tuple(_files(stream, image))
    except OSError as problem:
        raise ToolError(f"{image} cannot be read: {problem.strerror}") from problem


def _read(stream: BinaryIO, begin: int, size: int, image: str) -> bytes:
    if begin + size > os.fstat(stream.fileno()).st_size:
        raise ToolError(f"{image} is cut: it should have bytes {begin} to {begin + size}")
    stream.seek(begin)
    return stream.read(size)


def _files(stream: BinaryIO, image: str) -> Iterator[DiscFile]:
    roots: dict[bool, bytes] = {}
    for number in range(_FIRST, _FIRST + _MOST_DESCRIPTORS):
        sector = _read(stream, number * _SECTOR, _SECTOR, image)
        if sector[1:6] != b"CD001":
            raise ToolError(f"{image} is no disc image (ISO 9660): sector {number} describes no volume")
        joliet = sector[0] == _SUPPLEMENTARY and sector[88:91] in _JOLIET
        if sector[0] == _PRIMARY or joliet:
            roots.setdefault(joliet, sector[156:190])
        if sector[0] == _END:
            break
    if False not in roots:
        raise ToolError(f"{image} is no disc image (ISO 9660): it has no primary volume")
    reader = _Folders(stream, image)
    files = list(reader.walk(roots[False], joliet=False))
    if reader.rock_ridge or True not in roots:
        yield from files
    else:
        yield from _Folders(stream, image).walk(roots[True], joliet=True)


class _Folders:
    """The records of folders; `rock_ridge`: one had a name of Rock Ridge's."""

    def __init__(self, stream: BinaryIO, image: str) -> None:
        self._stream, self._image = stream, image
        self.rock_ridge = False
        self._count = 0

    def walk(self, record: bytes, path: str = "", depth: int = 0, *, joliet: bool) -> Iterator[DiscFile]:
        begin, size = self._place(record)
        if size > _LARGEST_FOLDER or depth > _DEPTH:
            raise ToolError(f"{self._image}: folder /{path} is larger or deeper than any of a driver disk")
        content, place = _read(self._stream, begin, size, self._image), 0
        while place < len(content):
            length = content[place]
            if length == 0:
                # a record does not reach into another sector
                place += _SECTOR - place % _SECTOR
                continue
            each = content[place : place + length]
            place += length
            if len(each) != length or length < 34 or len(each) < 33 + each[32]:
                raise ToolError(f"{self._image}: a record of folder /{path} is cut")
            raw = each[33 : 33 + each[32]]
            if raw in (b"\0", b"\1"):
                continue
            self._count += 1
            if self._count > _MOST_FILES:
                raise ToolError(f"{self._image} has more files than any driver disk")
            name = self._name(raw, each, joliet=joliet).replace("/", "_")
            inside = f"{path}/{name}" if path else name
            if each[25] & _FOLDER:
                yield from self.walk(each, inside, depth + 1, joliet=joliet)
            elif each[25] & _MORE:
                raise ToolError(f"{self._image}: {inside} is in several parts, which no file of a driver disk is")
            else:
                yield DiscFile(inside, *self._place(each))

    @staticmethod
    def _place(record: bytes) -> tuple[int, int]:
        (sector,), (size,) = struct.unpack_from("<I", record, 2), struct.unpack_from("<I", record, 10)
        return sector * _SECTOR, size

    def _name(self, raw: bytes, record: bytes, *, joliet: bool) -> str:
        if joliet:
            return raw.decode("utf-16-be", "replace").partition(";")[0]
        at = 33 + len(raw) + (len(raw) + 1) % 2
        long = b"".join(self._long_names(record[at:]))
        self.rock_ridge = self.rock_ridge or bool(long)
        return (long or raw.partition(b";")[0]).decode("utf-8", "replace")

    def _long_names(self, area: bytes, depth: int = 0) -> Iterator[bytes]:
        """The parts of a name in the field for systems, which may go on elsewhere."""
        further = b""
        while len(area) >= 4 and 4 <= area[2] <= len(area):
            kind, body = area[:2], area[4 : area[2]]
            area = area[area[2] :]
            if kind == b"NM" and body:
                yield body[1:]
            elif kind == b"CE" and len(body) >= 20 and depth < _DEPTH:
                sector, offset, size = (struct.unpack_from("<I", body, each)[0] for each in (0, 8, 16))
                further = _read(self._stream, sector * _SECTOR + offset, min(size, _SECTOR), self._image)
        if further:
            yield from self._long_names(further, depth + 1)
