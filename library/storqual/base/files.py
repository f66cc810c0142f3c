# SPDX-License-Identifier: Apache-2.0
"""How a file that somebody else wrote is opened and decoded: no waiting, no links, nothing without a bound."""

import hashlib
import io
import os
import stat
import zlib
from pathlib import Path
from typing import Any

import orjson

from storqual_core.kit.durable import OPEN_FLAGS, kind_of
from storqual_core.kit.errors import StorqualError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PART = 1 << 16
_DEEPEST = 64
"""Levels of JSON: a plan has eight."""
SECOND_NAME = "is a hard link: it has another name, through which it can be changed"


def state_home() -> Path:
    """Where this user's programs keep what must outlive a boot, by the XDG base directory specification."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return Path(home) if home.startswith("/") else Path.home() / ".local" / "state"


class OddFileError(StorqualError):
    """What lies there is no plain file, is larger than such a file can be, or cannot be read."""


class NoJsonError(StorqualError, ValueError):
    """Bytes that are no JSON, or hold what no file of a run holds: infinity, a thousand levels."""


def oddity_of(status: os.stat_result) -> str:
    """Why that is no plain file with one name; empty when it is one."""
    kind = kind_of(status.st_mode)
    if kind:
        return f"is {kind}"
    # a file that was removed while it is open has no name at all
    return SECOND_NAME if status.st_nlink > 1 else ""


def size_problem(size: int, most: int) -> str:
    """Why a file of that size is not read; empty when it is."""
    return f"has {size} bytes, expected at most {most}" if size > most else ""


def open_below(folder: Path | str, name: str, most: int) -> int:
    """The handle of a plain file of at most `most` bytes at `name` below a folder; no link on the way is followed.

    Raises FileNotFoundError where there is nothing, OddFileError for anything else. The folder itself may be a link.
    """
    *parts, last = name.split("/")
    if last in ("", ".", "..") or not {"", ".", ".."}.isdisjoint(parts) or "\0" in name:
        raise OddFileError(f"{folder}: {name[:200]!r} is no name of a file in it")
    try:
        handle = os.open(folder, _FOLDER)
        try:
            for part in parts:
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            # to open a device can already do something
            problem = oddity_of(os.stat(last, dir_fd=handle, follow_symlinks=False))
            if problem:
                raise OddFileError(f"{folder}/{name}: {problem}, expected a plain file")
            return _opened(last, f"{folder}/{name}", most, handle)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except NotADirectoryError:
        raise OddFileError(f"{folder}/{name}: a folder of its path is a link or no folder") from None
    except OSError as problem:
        raise OddFileError(f"{folder}/{name}: cannot be read ({problem.strerror})") from None


class OpenFolder:
    """A folder below another one that is held open while many of its files are read: opening it costs as much.

    Raises OSError where there is none. It is for files that were looked at before: what is no plain file is opened
    and closed again.
    """

    def __init__(self, folder: Path | str, name: str) -> None:
        self._handle = -1
        outer = os.open(folder, _FOLDER)
        try:
            self._handle = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)

    def read(self, name: str, most: int) -> bytes:
        """A file in it. Raises OSError, OddFileError."""
        handle = os.open(name, OPEN_FLAGS | os.O_NOFOLLOW, dir_fd=self._handle)
        try:
            status = os.fstat(handle)
            problem = oddity_of(status) or size_problem(status.st_size, most)
            if problem:
                raise OddFileError(f"{name}: {problem}")
            data = os.read(handle, status.st_size + 1)
            if len(data) != status.st_size:
                raise OddFileError(f"{name}: is being written")
            return data
        finally:
            os.close(handle)

    def __del__(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)


def _opened(name: str, shown: str, most: int, folder: int) -> int:
    handle = os.open(name, OPEN_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        return handle
    os.close(handle)
    raise OddFileError(f"{shown}: {oddity_of(status) or size_problem(status.st_size, most)}")


def read_all(handle: int, most: int) -> bytes:
    """Everything of an open file, which is closed; of one that grows meanwhile no more than `most` and a part."""
    try:
        data = part = os.read(handle, _PART)
        if len(part) < _PART:
            # a file gives less than was asked for at its end only
            return data
        parts, size = [data], _PART
        while len(part) == _PART and size <= most:
            part = os.read(handle, _PART)
            parts.append(part)
            size += len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def digest_of(handle: int, most: int, shown: str) -> str:
    """The SHA-256 of an open file, which is closed. Raises OddFileError when it goes on behind `most` bytes."""
    digest, left = hashlib.sha256(), most
    with os.fdopen(handle, "rb", buffering=0) as file:
        while part := file.read(min(1 << 20, left + 1)):
            left -= len(part)
            if left < 0:
                raise OddFileError(f"{shown}: has more than {most} bytes")
            digest.update(part)
    return digest.hexdigest()


def parse_json(data: bytes, most_values: int) -> Any:  # noqa: ANN401 - whatever the bytes hold
    """What JSON in UTF-8 holds. Raises NoJsonError for anything else, NaN and infinity, and more than fits in memory.

    A value takes up to 240 bytes of memory and may take three of a file, so their number is bounded as well.
    """
    if data.count(b",") > most_values:
        raise NoJsonError(f"it has more than {most_values} values")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise NoJsonError(str(problem)) from None
    except MemoryError:
        raise NoJsonError("it needs more memory than there is") from None
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise NoJsonError(f"it is nested more than {_DEEPEST} levels deep")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return value


def unpacked(data: bytes, most: int) -> bytes:
    """What gzip packed as one member, as the product does; at most `most` bytes.

    Raises EOFError for anything else, zlib.error as zlib.
    """
    whole = zlib.decompressobj(wbits=31)
    text = whole.decompress(data, most + 1)
    if len(text) > most:
        raise EOFError(f"it unpacks to more than {most} bytes")
    if not whole.eof or whole.unused_data:
        raise EOFError("this is not one complete compressed file")
    return text


class Unpacking(io.RawIOBase):
    """What one packed member unpacks to, read in pieces. Raises as `unpacked`, once the end is reached too late."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__()
        self._whole = zlib.decompressobj(wbits=31)
        self._data = data
        self._most = self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - as the class of the library has it
        part = self._whole.decompress(self._data, len(buffer))
        self._data = self._whole.unconsumed_tail
        self._left -= len(part)
        if self._left < 0:
            raise EOFError(f"it unpacks to more than {self._most} bytes")
        if not part and (not self._whole.eof or self._whole.unused_data):
            raise EOFError("this is not one complete compressed file")
        buffer[: len(part)] = part
        return len(part)


def project_root() -> Path:
    """The folder that holds ansible.cfg, playbooks/, roles/, suites/ and templates/."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    if (checkout / "ansible.cfg").is_file() and (checkout / "playbooks").is_dir():
        return checkout
    return package / "_data"


def suites_folder() -> Path:
    return project_root() / "suites"


def templates_folder() -> Path:
    return project_root() / "templates"


def example_run() -> Path:
    """A finished run for practice, as a compressed archive (`python -m tests.golden make` makes it)."""
    return templates_folder() / "example-run.tar.xz"
