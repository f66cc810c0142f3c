# SPDX-License-Identifier: Apache-2.0
"""Packed data as kernels and modules are packed: what packed it is told by its first bytes.

Python's library has gzip, xz, lzma and bzip2; zstd and lz4 are left to their own programs. Nothing is unpacked to
files: firmware images go to their tools as they are, packages to dpkg, and a name in an archive never becomes a path.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import subprocess
import tempfile
import threading
import zlib
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Callable, Iterable, Sequence

from .errors import ToolError

_LIMIT_S = 600
_PART = 1 << 20
MOST = 1 << 30
"""Bytes that packed data may unpack to; an initramfs with every driver has a third of it."""


def _external(*words: str) -> Callable[[bytes], bytes]:
    def filtered(data: bytes) -> bytes:
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            stdin.write(data)
            stdin.seek(0)
            try:
                program = subprocess.Popen(list(words), stdin=stdin, stdout=subprocess.PIPE, stderr=stderr)
            except FileNotFoundError as problem:
                message = f"`{words[0]}` is not installed on this machine, and the data is packed with it"
                raise ToolError(message) from problem
            watch = threading.Timer(_LIMIT_S, program.kill)
            watch.start()
            try:
                assert program.stdout is not None  # noqa: S101 - it is a pipe
                # in parts: asked for at once they would be allocated at once, and a bench may have less
                output = b"".join(islice(iter(partial(program.stdout.read, _PART), b""), MOST // _PART + 1))
                failed = len(output) <= MOST and program.wait() != 0
                if not watch.is_alive():
                    raise ToolError(f"`{words[0]}` did not end within {_LIMIT_S} s")
            finally:
                watch.cancel()
                program.kill()
                program.communicate()
            stderr.seek(0)
            # it also fails at padding, after it has given all
            if not output or (failed and not data.endswith(bytes(4))):
                why = stderr.read().decode("utf-8", "replace").strip()[:200]
                raise ToolError(f"`{words[0]}` did not give all: {why}")
        return output

    return filtered


def _stream(begin: Callable[[], Any]) -> Callable[[bytes], bytes]:
    def unpacked(data: bytes) -> bytes:
        stream = begin()
        content: bytes = stream.decompress(data, MOST + 1)
        # what follows its end is padding
        if not stream.eof and len(content) <= MOST:
            raise EOFError("it is cut")
        return content

    return unpacked


@dataclass(frozen=True)
class _Format:
    magic: bytes
    suffix: str
    unpack: Callable[[bytes], bytes]
    pack: Callable[[bytes], bytes]


_FORMATS: Sequence[_Format] = (
    _Format(
        b"\x1f\x8b", ".gz", _stream(partial(zlib.decompressobj, 31)), partial(gzip.compress, compresslevel=6, mtime=0)
    ),
    # the kernel's own unpacker knows no other check than this one (Documentation/staging/xz.rst)
    _Format(b"\xfd7zXZ\x00", ".xz", _stream(lzma.LZMADecompressor), partial(lzma.compress, check=lzma.CHECK_CRC32)),
    _Format(
        b"\x5d\x00\x00",
        ".lzma",
        _stream(partial(lzma.LZMADecompressor, lzma.FORMAT_ALONE)),
        partial(lzma.compress, format=lzma.FORMAT_ALONE),
    ),
    _Format(b"BZh", ".bz2", _stream(bz2.BZ2Decompressor), bz2.compress),
    _Format(b"\x28\xb5\x2f\xfd", ".zst", _external("zstd", "-dcq"), _external("zstd", "-cq")),
    # the kernel takes the legacy format of lz4 alone
    _Format(b"\x02\x21\x4c\x18", ".lz4", _external("lz4", "-dcq"), _external("lz4", "-lcq")),
)


def _format_of(data: bytes) -> _Format:
    packing = next((known for known in _FORMATS if data.startswith(known.magic)), None)
    if packing is None:
        raise ToolError(f"data packed in an unknown way (it begins with {data[:6].hex()})")
    return packing


def magic_of(data: bytes) -> bytes:
    """The first bytes that say how `data` is packed. Raises ToolError for an unknown format."""
    return _format_of(data).magic


def unpack(data: bytes) -> bytes:
    """`data` unpacked by what its first bytes say.

    Raises ToolError for an unknown format, broken data, and data that is larger than anything that boots.
    """
    function = _format_of(data).unpack
    try:
        content = function(data)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as problem:
        raise ToolError(f"packed data is broken: {problem}") from problem
    if len(content) > MOST:
        raise ToolError(f"packed data of {len(data)} bytes unpacks to more than {MOST >> 20} MiB, expected less")
    return content


def pack(data: bytes, magic: bytes) -> bytes:
    """`data` packed in the way that begins with `magic`. Raises ToolError when its program is not installed."""
    return _format_of(magic).pack(data)


def pack_like(name: str, data: bytes) -> bytes:
    """`data` packed as the ending of a file's name says (`x.ko.xz`); as it is for another ending."""
    packing = next((known for known in _FORMATS if name.endswith(known.suffix)), None)
    return packing.pack(data) if packing else data


MAGICS = (b"070701", b"070702")
_HEADER = 110
_TRAILER = "TRAILER!!!"
_FIELDS = 13
_DIGITS = re.compile(b"[0-9a-fA-F]{104}")
_MODE, _LINKS, _SIZE, _NAME_SIZE, _CHECK = 1, 4, 6, 11, 12
_BLOCK = 512


@dataclass(frozen=True)
class Member:
    """One file as it stands in an archive; `fields` are the header's numbers, sizes and check sum among them."""

    name: str
    content: bytes
    fields: tuple[int, ...]

    def holding(self, content: bytes) -> Member:
        return replace(self, content=content)


def _new(name: str, content: bytes, mode: int, links: int) -> Member:
    fields = [0] * _FIELDS
    fields[_MODE], fields[_LINKS] = mode, links
    return Member(name, content, tuple(fields))


def new_file(name: str, content: bytes) -> Member:
    return _new(name, content, 0o100644, 1)


def new_program(name: str, content: bytes) -> Member:
    return _new(name, content, 0o100755, 1)


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
            return members, place
        members.append(member)
    raise ToolError(f"the archive is cut: it has no end at byte {place}")


def _read_member(image: bytes, place: int) -> tuple[Member, int]:
    header = image[place + 6 : place + _HEADER]
    # `int` alone would take signs and blanks, and a size below zero leads back to where the file began
    if not _DIGITS.fullmatch(header):
        raise ToolError(f"the archive is broken at byte {place}")
    fields = tuple(int(header[8 * n : 8 * n + 8], 16) for n in range(_FIELDS))
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
