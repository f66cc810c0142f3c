# SPDX-License-Identifier: Apache-2.0
"""Files that survive a power cut: whole or not there, never half."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["fsync_folder", "make_folder", "replace_file", "replace_json"]


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
    """Put `text` at `path` in one step; with `durable` it is on the disk before this returns.

    Plain system calls: a bench does this once a second while it measures.
    """
    part = f"{path.parent}/.{path.name}.{os.getpid()}.part"
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            data = text.encode()
            while data:
                data = data[os.write(handle, data) :]
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
