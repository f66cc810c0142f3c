# SPDX-License-Identifier: Apache-2.0
"""The kernel's queue of each drive: queue depth, I/O scheduler, queued requests and their kin, in sysfs."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..host.block_stack import DriveTarget
from ..kit.errors import ToolError
from ..kit.machine import read_attribute, selected_word, write_attribute


class Queues:
    """How the attributes are read and written."""

    def __init__(self, sysfs: str = "/sys") -> None:
        self._sysfs = sysfs

    def _path(self, node: str, name: str) -> Path:
        block = Path(self._sysfs) / "block" / node
        return block / "device" / "queue_depth" if name == "queue_depth" else block / "queue" / name

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The values the kernel has now; a name the drive's driver does not have is left out. Raises ToolError."""
        values = ((name, self._value(target.node, name)) for name in names)
        return {name: value for name, value in values if value is not None}

    def _value(self, node: str, name: str) -> int | str | None:
        text = read_attribute(self._path(node, name))
        if text is None or (name == "queue_depth" and not text.isdigit()):
            return None
        if name == "scheduler":
            return selected_word(text)
        try:
            return int(text)
        except ValueError:
            raise ToolError(f"{self._path(node, name)} holds {text[:40]!r} where a number was expected") from None

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """Attributes that are not there or cannot be written, a depth that is more than the adapter takes."""
        problems = [
            f"the driver of {target.node} has no {name}, {value} is declared"
            for name, value in wanted.items()
            if name not in now
        ]
        problems += [
            f"{name} is {now[name]}, and the driver of {target.node} does not let it be changed (the attribute is "
            f"read-only), {value} is declared"
            for name, value in wanted.items()
            if now.get(name, value) != value and self._read_only(target.node, name)
        ]
        depth, limit = wanted.get("queue_depth"), self._can_queue(target.node)
        if depth is not None and limit is not None and int(depth) > limit:
            problems.append(f"queue depth {depth} is declared, its adapter takes {limit} commands in all")
        return problems

    def _read_only(self, node: str, name: str) -> bool:
        """Whether the driver has no way to change the attribute: then not even root may write it."""
        return not self._path(node, name).stat().st_mode & stat.S_IWUSR

    def _can_queue(self, node: str) -> int | None:
        """What the adapter takes in all: the highest queue depth the kernel accepts for one of its drives."""
        device = (Path(self._sysfs) / "block" / node / "device").resolve()
        for folder in device.parents:
            if folder.name.startswith("host"):
                text = read_attribute(folder / "scsi_host" / folder.name / "can_queue")
                return int(text) if text and text.isdigit() else None
        return None

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write the attributes; what was done. Raises ToolError at the first refusal."""
        for name, value in values.items():
            write_attribute(self._path(target.node, name), value)
        return [f"{target.id}: {name} set to {value}" for name, value in values.items()]
