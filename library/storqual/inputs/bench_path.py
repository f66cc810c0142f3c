# SPDX-License-Identifier: Apache-2.0
"""Paths of a local bench as its inventory writes them."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

TEMPLATES = "no template but `{{ inventory_dir }}` in front and `{{ inventory_hostname }}`"
"""What a path may hold, as a message tells it."""
_INVENTORY_DIR = re.compile(r"\{\{\s*inventory_dir((?:\s*\|\s*dirname)*)\s*\}\}/")
_INVENTORY_HOSTNAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")


def bench_path(path: str, host: str, folder: Path) -> str:
    """An absolute path of this machine, with the meaning that Ansible gives these templates.

    `{{ inventory_dir | dirname }}/` in front starts at `folder`, where relative paths start too; `{{
    inventory_hostname }}` is `host`. Other text is not expanded.
    """
    path = _INVENTORY_HOSTNAME.sub(lambda _: host, path)
    prefix = _INVENTORY_DIR.match(path)
    if prefix is not None:
        for _ in range(prefix.group(1).count("|")):
            folder = folder.parent
        path = path[prefix.end() :]
    # not `resolve`: the guard itself decides what a symbolic link means
    return os.path.normpath(folder / Path(path).expanduser())
