# SPDX-License-Identifier: Apache-2.0
"""Reading a file that somebody named: it is regular and of a sane size, or one line says what it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import BadInputError

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


def _check(path: Path, found: os.stat_result, largest: int, remedy: str) -> None:
    kind = kind_of(found.st_mode)
    if kind:
        raise BadInputError([f"{path}: this is {kind}; expected a regular file"])
    if found.st_size > largest:
        raise BadInputError([_too_large(path, f"{found.st_size} bytes", largest, remedy)])


def _too_large(path: Path, size: str, largest: int, remedy: str) -> str:
    return f"{path}: this file has {size}; at most {largest} bytes are read{remedy and '; ' + remedy}"
