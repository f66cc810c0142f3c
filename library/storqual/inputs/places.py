# SPDX-License-Identifier: Apache-2.0
"""Places as an inventory names them: a path of a local bench, and a witness, which is told what is collected."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

TEMPLATES = "may hold no template but `{{ inventory_dir }}` at its start and `{{ inventory_hostname }}`"
"""What a path may hold, as a message tells it."""
_INVENTORY_DIR = re.compile(r"\{\{\s*inventory_dir((?:\s*\|\s*dirname)*)\s*\}\}/")
_INVENTORY_HOSTNAME = re.compile(r"\{\{\s*inventory_hostname\s*\}\}")
WITNESS_FORMS = "syslog://host[:port], ssh://[user@]host[:port]/path/of/file, rfc3161+https://host/path"
WITNESS_KINDS: Mapping[str, str] = {
    "syslog": "syslog",
    "ssh": "ssh",
    "rfc3161+http": "rfc3161",
    "rfc3161+https": "rfc3161",
}
"""What kind of witness a place is, by the scheme of its address."""


def witness_kind(place: str) -> str:
    """The kind of witness that `place` names: syslog, ssh, rfc3161; empty for none."""
    return WITNESS_KINDS.get(place.partition("://")[0], "")


def witness_problem(place: str) -> str:
    """Why `place` names no witness; empty when it does."""
    try:
        parts = urlsplit(place)
        _ = parts.port
    except ValueError as problem:
        return str(problem)
    known = parts.scheme in WITNESS_KINDS
    host = parts.hostname or ""
    # what ssh would take for an option is no name
    if not known or not host or host.startswith("-") or (parts.username or "").startswith("-"):
        return f"expected {WITNESS_FORMS}"
    if parts.scheme == "ssh" and len(parts.path) < 2:
        return "expected the path of a file after the host"
    return ""


_NO_FOLDERS = ("/dev", "/proc", "/sys")


def state_dir_problem(path: str, kind: str) -> str:
    """Why a bench cannot keep its lock, saved state and spool there; empty when it can.

    Relative paths of a local bench were completed before; another bench may have templates, which only Ansible fills.
    """
    if "{{" in path:
        return f"{path!r} {TEMPLATES}" if kind == "local" else ""
    plain = os.path.normpath(path)
    remedy = "name a folder of its own, such as /var/lib/storqual"
    if not plain.startswith("/"):
        return f"storqual_state_dir {path!r} is a relative path; {remedy}"
    if plain.strip("/") == "":
        return f"storqual_state_dir is the root of the file system; {remedy}"
    if any(plain == folder or plain.startswith(f"{folder}/") for folder in _NO_FOLDERS):
        return f"storqual_state_dir {path!r} is in a folder of devices or of the kernel; {remedy}"
    return ""


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
