# SPDX-License-Identifier: Apache-2.0
"""newname: the drive's read-ahead is changed under load for a while, and put back."""

from __future__ import annotations

import time
from pathlib import Path

from ..kit.errors import ToolError
from ..kit.machine import write_attribute
from .drive_faults import Aim, Tell

_ATTRIBUTE = "/sys/block/{name}/queue/read_ahead_kb"


def act_newname(aim: Aim, tell: Tell) -> None:
    """Tell `read_back` and `put_back`, each only after the kernel answered with that value. Raises ToolError."""
    path = Path(aim.machine.path(_ATTRIBUTE.format(name=aim.drive.name)))
    before = path.read_text(encoding="ascii").strip()
    other = "0" if before != "0" else "128"
    try:
        write_attribute(str(path), other)
        if path.read_text(encoding="ascii").strip() == other:
            tell("read_back", f"read_ahead_kb was {before} and is {other}")
        time.sleep(aim.away_s)
    finally:
        write_attribute(str(path), before)
    after = path.read_text(encoding="ascii").strip()
    if after != before:
        raise ToolError(f"read_ahead_kb was {before} and is {after} now")
    tell("put_back", f"read_ahead_kb is {before} again")
