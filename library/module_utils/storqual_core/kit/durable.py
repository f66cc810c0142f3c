# SPDX-License-Identifier: Apache-2.0
"""Files that survive a power cut, reading a file that somebody named, and names that become part of a path."""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from .errors import BadInputError
from .machine import visible


def fsync_folder(folder: Path) -> None:
    """Make the names in `folder` durable; a rename alone is not."""
    handle = os.open(str(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make `folder` and its parents, readable by all: a follower may look in without being root."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)


def _made_new(path: str) -> int:
    """A new file with that name: what a killed program left there goes, and no link of somebody else is followed."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - see below
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def replace_file(path: Path, text: str, *, durable: bool = True) -> None:
    """Put `text` at `path` in one step; with `durable` it is on the disk before this returns."""
    replace_bytes(path, text.encode(), durable=durable)


def replace_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put `data` at `path` in one step; with `durable` it is on the disk before this returns.

    Plain system calls: a bench does this once a second while it measures.
    """
    part = f"{path.parent}/.{path.name}.{os.getpid()}.part"
    try:
        handle = _made_new(part)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(part, path)  # noqa: PTH105 - see above
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)  # noqa: PTH108 - see above
        raise
    if durable:
        fsync_folder(path.parent)


def replace_json(path: Path, body: object, *, durable: bool = True) -> None:
    """Put `body` as one line of JSON at `path` in one step."""
    replace_file(path, json.dumps(body, separators=(",", ":")) + "\n", durable=durable)


def copy_file(source: Path, target: Path) -> None:
    """Put the contents and the mode of `source` at `target` in one step; on the disk when this returns.

    A boot that finds half a kernel module has no driver.
    """
    part = target.parent / f".{target.name}.{os.getpid()}.part"
    try:
        with source.open("rb") as read, os.fdopen(_made_new(str(part)), "wb") as write:
            os.fchmod(write.fileno(), os.fstat(read.fileno()).st_mode & 0o7777)
            shutil.copyfileobj(read, write)
            write.flush()
            os.fsync(write.fileno())
        part.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise
    fsync_folder(target.parent)


_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
# between a look and the open the file may be exchanged for a pipe, at which an open would wait
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def kind_of(mode: int) -> str:
    """`a named pipe`: what a file of this mode is; empty for a regular one."""
    return next((name for test, name in _KINDS if test(mode)), "" if stat.S_ISREG(mode) else "no file")


def read_regular(path: Path, largest: int, remedy: str = "") -> bytes:
    """The bytes of a regular file (or of what a link leads to), `largest` at most; nothing is opened that may wait.

    Raises BadInputError with one line; `remedy` says what to do about a file that is too large.
    """
    try:
        # a look first: to open a device may do something
        _check(path, path.stat(), largest, remedy)
        with os.fdopen(os.open(path, OPEN_FLAGS), "rb") as file:
            _check(path, os.fstat(file.fileno()), largest, remedy)
            data = file.read(largest + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise BadInputError([f"{path}: cannot be read ({reason})"]) from None
    if len(data) > largest:
        # it grew, or has no size of its own, as in /proc
        raise BadInputError([_too_large(path, "more", largest, remedy)])
    return data


def _check(path: Path, status: os.stat_result, largest: int, remedy: str) -> None:
    kind = kind_of(status.st_mode)
    if kind:
        raise BadInputError([f"{path}: this is {kind}; expected a regular file"])
    if status.st_size > largest:
        raise BadInputError([_too_large(path, f"{status.st_size} bytes", largest, remedy)])


def _too_large(path: Path, size: str, largest: int, remedy: str) -> str:
    return f"{path}: this file has {size}; at most {largest} bytes are read{remedy and '; ' + remedy}"


CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
ALPHABET = "letters, digits, `_`, `-` and `.`"
MOST = 64
"""Characters of a name; a run's id, which holds the name of its suite, may have twice as many."""


def is_name(text: object, *, most: int = MOST) -> bool:
    """Whether a text is a name: it begins with a letter or digit and has no character that a path would read."""
    return isinstance(text, str) and 0 < len(text) <= most and CHARACTERS.issuperset(text) and text[0] not in "_-."


def checked_name(text: object, what: str, *, most: int = MOST) -> str:
    """`text`, which is a name. Raises BadInputError for anything else; `what` says whose name it would be."""
    if not is_name(text, most=most):
        raise BadInputError([f"{what} '{visible(str(text)[:80])}': expected a name of at most {most} {ALPHABET}"])
    return str(text)
