# SPDX-License-Identifier: Apache-2.0
"""Build the bench program: the core as one zipapp, named by its digest, the same bytes for the same content.

What a bench says whose Python cannot run it, or no module of Ansible either, is known here.
"""

import hashlib
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

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


_TOO_OLD = re.compile(r"^SyntaxError: ", re.MULTILINE)
"""What Python 3.6 and 3.7 say of files that are whole."""
_NEWER_PYTHON = (
    "the bench's Python is older than 3.8, which modules and the bench program need: install a newer one beside it "
    "(RHEL 8: `dnf install python3.11`; SLES 15: `zypper install python311`) and name it in the inventory "
    "(`ansible_python_interpreter: /usr/bin/python3.11`)"
)


def old_python(output: str) -> str:
    """What to do about a bench whose Python is too old; empty where its `output` means another thing."""
    return _NEWER_PYTHON if _TOO_OLD.search(output) else ""


def failure_message(result: Mapping[str, Any]) -> str:
    """Why a task failed, in its own words; a module that could not begin has none."""
    output = "\n".join(str(result.get(name) or "") for name in ("module_stderr", "module_stdout"))
    return old_python(output) or str(result.get("msg") or result.get("reason") or "no message")
