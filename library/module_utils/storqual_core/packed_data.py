# SPDX-License-Identifier: Apache-2.0
"""Packed data as kernels and modules are packed: what packed it is told by its first bytes.

Python's library has gzip, xz, lzma and bzip2; zstd and lz4 are left to their own programs.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import zlib
from dataclasses import dataclass
from typing import Callable, Sequence

from .errors import ToolError

__all__ = ["magic_of", "pack", "pack_like", "unpack"]

_LIMIT_S = 600


def _external(*words: str) -> Callable[[bytes], bytes]:
    """A filter that Python's library does not have."""

    def filtered(data: bytes) -> bytes:
        try:
            ended = subprocess.run(list(words), input=data, capture_output=True, timeout=_LIMIT_S, check=False)
        except FileNotFoundError as problem:
            raise ToolError(f"`{words[0]}` is not installed on this machine, the data is packed with it") from problem
        except subprocess.TimeoutExpired as problem:
            raise ToolError(f"`{words[0]}` did not end within {_LIMIT_S} s") from problem
        if not ended.stdout:
            raise ToolError(f"`{words[0]}` gave nothing: {ended.stderr.decode('utf-8', 'replace').strip()[:200]}")
        return ended.stdout

    return filtered


def _gunzip(data: bytes) -> bytes:
    # what follows the last archive is padding, which gzip.decompress would take for another member
    return zlib.decompressobj(wbits=31).decompress(data)


@dataclass(frozen=True)
class _Format:
    magic: bytes
    suffix: str
    unpack: Callable[[bytes], bytes]
    pack: Callable[[bytes], bytes]


_FORMATS: Sequence[_Format] = (
    _Format(b"\x1f\x8b", ".gz", _gunzip, lambda data: gzip.compress(data, 6, mtime=0)),
    _Format(
        b"\xfd7zXZ\x00",
        ".xz",
        lambda data: lzma.LZMADecompressor().decompress(data),
        # the kernel's own unpacker knows no other check than this one (Documentation/staging/xz.rst)
        lambda data: lzma.compress(data, check=lzma.CHECK_CRC32),
    ),
    _Format(
        b"\x5d\x00\x00",
        ".lzma",
        lambda data: lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data),
        lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    ),
    _Format(b"BZh", ".bz2", lambda data: bz2.BZ2Decompressor().decompress(data), bz2.compress),
    _Format(b"\x28\xb5\x2f\xfd", ".zst", _external("zstd", "-dcq"), _external("zstd", "-cq")),
    # the kernel takes the legacy format of lz4 alone
    _Format(b"\x02\x21\x4c\x18", ".lz4", _external("lz4", "-dcq"), _external("lz4", "-lcq")),
)


def _format_of(data: bytes) -> _Format:
    found = next((known for known in _FORMATS if data.startswith(known.magic)), None)
    if found is None:
        raise ToolError(f"data packed in an unknown way (it begins with {data[:6].hex()})")
    return found


def magic_of(data: bytes) -> bytes:
    """The first bytes that say how `data` is packed. Raises ToolError for an unknown format."""
    return _format_of(data).magic


def unpack(data: bytes) -> bytes:
    """`data` unpacked by what its first bytes say. Raises ToolError for an unknown format, or broken data."""
    function = _format_of(data).unpack
    try:
        return function(data)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as problem:
        raise ToolError(f"packed data is broken: {problem}") from problem


def pack(data: bytes, magic: bytes) -> bytes:
    """`data` packed in the way that begins with `magic`. Raises ToolError when its program is not installed."""
    return _format_of(magic).pack(data)


def pack_like(name: str, data: bytes) -> bytes:
    """`data` packed as the ending of a file's name says (`x.ko.xz`); as it is for another ending."""
    found = next((known for known in _FORMATS if name.endswith(known.suffix)), None)
    return found.pack(data) if found else data
