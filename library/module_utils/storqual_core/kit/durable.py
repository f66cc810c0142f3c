# SPDX-License-Identifier: Apache-2.0
"""Files that survive a power cut: whole or not there, never half."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path


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


def replace_file(path: Path, text: str, *, durable: bool = True) -> None:
    """Put `text` at `path` in one step; with `durable` it is on the disk before this returns."""
    replace_bytes(path, text.encode(), durable=durable)


def replace_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put `data` at `path` in one step; with `durable` it is on the disk before this returns.

    Plain system calls: a bench does this once a second while it measures.
    """
    part = f"{path.parent}/.{path.name}.{os.getpid()}.part"
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
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
    """Put the contents of `source` at `target` in one step; on the disk when this returns.

    A boot that finds half a kernel module has no driver.
    """
    part = target.parent / f".{target.name}.{os.getpid()}.part"
    try:
        with source.open("rb") as read, part.open("wb") as write:
            shutil.copyfileobj(read, write)
            write.flush()
            os.fsync(write.fileno())
        part.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise
    fsync_folder(target.parent)
