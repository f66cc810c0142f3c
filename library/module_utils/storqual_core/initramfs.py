# SPDX-License-Identifier: Apache-2.0
"""Which build of a driver an initramfs carries: the third place where a driver lies, and the one that boots.

An initramfs is a row of cpio archives (format newc); the first ones may be plain (processor microcode), the last one
is compressed. Kernel documentation: driver-api/early-userspace/buffer-format.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import subprocess
import zlib
from pathlib import Path
from typing import Callable, Iterator, Sequence

from .errors import ToolError
from .tools.kmod import Build

__all__ = ["builds_in", "entries", "module_build", "unpack"]

_HEADER = 110
_MAGICS = (b"070701", b"070702")
_TRAILER = "TRAILER!!!"
_LIMIT_S = 120
# a module in the image, plain or compressed by itself
_MODULE = re.compile(r"(?:^|/)([\w-]+)\.ko(?:\.(?:xz|zst|gz))?$")
_FIELD = re.compile(rb"(?:^|\0)(srcversion|version|vermagic)=([^\0]*)\0")


def _external(*words: str) -> Callable[[bytes], bytes]:
    """A filter that Python's library does not have."""

    def unpacked(data: bytes) -> bytes:
        try:
            ended = subprocess.run(list(words), input=data, capture_output=True, timeout=_LIMIT_S, check=False)
        except FileNotFoundError as problem:
            raise ToolError(
                f"`{words[0]}` is not installed on this machine, the initramfs is packed with it"
            ) from problem
        except subprocess.TimeoutExpired as problem:
            raise ToolError(f"`{words[0]}` did not end within {_LIMIT_S} s") from problem
        if not ended.stdout:
            raise ToolError(f"`{words[0]}` cannot unpack it: {ended.stderr.decode('utf-8', 'replace').strip()[:200]}")
        return ended.stdout

    return unpacked


def _gunzip(data: bytes) -> bytes:
    # what follows the last archive is padding, which gzip.decompress would take for another member
    return zlib.decompressobj(wbits=31).decompress(data)


_FORMATS: Sequence[tuple[bytes, Callable[[bytes], bytes]]] = (
    (b"\x1f\x8b", _gunzip),
    (b"\xfd7zXZ\x00", lambda data: lzma.LZMADecompressor().decompress(data)),
    (b"\x5d\x00\x00", lambda data: lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data)),
    (b"BZh", lambda data: bz2.BZ2Decompressor().decompress(data)),
    (b"\x28\xb5\x2f\xfd", _external("zstd", "-dcq")),
    (b"\x02\x21\x4c\x18", _external("lz4", "-dcq")),
)


def unpack(data: bytes) -> bytes:
    """`data` unpacked by what its first bytes say. Raises ToolError for an unknown format, or broken data."""
    for magic, function in _FORMATS:
        if data.startswith(magic):
            try:
                return function(data)
            except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError, gzip.BadGzipFile) as problem:
                raise ToolError(f"packed data is broken: {problem}") from problem
    raise ToolError(f"data packed in an unknown way (it begins with {data[:6].hex()})")


def entries(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in an initramfs. Raises ToolError when the image is broken."""
    place = 0
    while place < len(image):
        if image[place] == 0:
            place += 1
        elif image[place : place + 6] in _MAGICS:
            name, content, place = _entry(image, place)
            if name != _TRAILER:
                yield name, content
        else:
            yield from entries(unpack(image[place:]))
            return


def _entry(image: bytes, place: int) -> tuple[str, bytes, int]:
    """One file of a newc archive: name, content, and where the next one begins."""
    try:
        fields = [int(image[place + 6 + 8 * n : place + 14 + 8 * n], 16) for n in range(13)]
    except ValueError as problem:
        raise ToolError(f"the archive is broken at byte {place}") from problem
    size, name_size = fields[6], fields[11]
    name_end = place + _HEADER + name_size
    begin = name_end + -name_end % 4
    end = begin + size
    if end > len(image) or name_size == 0:
        raise ToolError(f"the archive ends inside a file that begins at byte {place}")
    name = image[place + _HEADER : name_end - 1].decode("utf-8", "replace")
    return name, image[begin:end], end + -end % 4


def module_build(content: bytes, filename: str = "") -> Build:
    """The build that a module file (plain or packed) names in itself. Raises ToolError for broken packed data."""
    plain = content if content.startswith(b"\x7fELF") or not content else unpack(content)
    found = {key.decode(): value.decode("utf-8", "replace") for key, value in _FIELD.findall(_doubled(plain))}
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
        match = _MODULE.search(filename)
        name = wanted.get(match.group(1).replace("-", "_")) if match else None
        if name is not None:
            found[name] = module_build(content, filename)
    return found
