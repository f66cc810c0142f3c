# SPDX-License-Identifier: Apache-2.0
"""Files that survive a power cut: whole or not there, never half."""

from __future__ import annotations

import json
import os
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
    """Put `text` at `path` in one step; with `durable` it is on the disk before this returns."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
        fsync_folder(path.parent)


def replace_json(path: Path, body: object, *, durable: bool = True) -> None:
    """Put `body` as one line of JSON at `path` in one step."""
    replace_file(path, json.dumps(body, separators=(",", ":")) + "\n", durable=durable)
