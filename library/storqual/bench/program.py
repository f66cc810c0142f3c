# SPDX-License-Identifier: Apache-2.0
"""Build the bench program: the core as one zipapp, named by its digest, the same bytes for the same content."""

import hashlib
import os
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

import storqual_core

_MAIN = """\
# SPDX-License-Identifier: Apache-2.0
import sys

from storqual_core.turns.main import main

sys.exit(main())
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_DIGITS = 16


def program_bytes(core: Path | None = None) -> bytes:
    """The zipapp of the package in folder `core` (by default the core that is installed here).

    Names in order, one time stamp, one mode, no compression: the bytes depend on the sources alone, not on the zlib,
    the clock or the umask of whoever builds, and a slow bench has nothing to unpack.
    """
    folder = core or Path(storqual_core.__file__).parent
    data = BytesIO()
    data.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(data, "a", zipfile.ZIP_STORED) as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        shipped = (path for path in folder.rglob("*") if path.suffix in (".py", ".json"))
        for path in sorted(shipped, key=lambda path: path.relative_to(folder).as_posix()):
            _add(archive, f"storqual_core/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return data.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.external_attr = 0o644 << 16
    entry.create_system = 3
    archive.writestr(entry, content)


def build_program(folder: Path | None = None, *, core: Path | None = None) -> Path:
    """Put the program into `folder` (by default the user's cache) as `core-<sha>.pyz`, once; returns its path."""
    content = program_bytes(core)
    target = (folder or _cache()) / f"core-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.pyz"
    if target.is_file() and target.read_bytes() == content:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        part.write(content)
    Path(part.name).chmod(0o755)
    Path(part.name).replace(target)
    return target


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "storqual"
