# SPDX-License-Identifier: Apache-2.0
"""What arcconf's GETSTATUS tells: the tasks under way on volumes, in the words of every build."""

from __future__ import annotations

import re

from ...kit.errors import ToolError
from ...kit.labelled_text import Fields, plain_label, read_line
from .arcconf_text import check_completed

_PERCENT = re.compile(r"(?P<percent>\d+(?:\.\d+)?)\s*%?")
_TASKS = (
    ("rebuild", "rebuild"),
    ("build/verify", "initialise"),
    ("clear", "initialise"),
    ("initiali", "initialise"),
    ("verify", "check"),
    ("consistency", "check"),
    ("reconfig", "reshape"),
    ("expan", "reshape"),
    ("transform", "reshape"),
    ("migrat", "reshape"),
)


def parse_tasks(text: str) -> dict[str, dict[str, float]]:
    """Percent by task by logical device, of `GETSTATUS N`.

    Raises ToolError when it was not completed, is the answer to another command, or tells a task of no volume.
    """
    check_completed(text, "what is under way could not be read")
    tasks: list[tuple[str, Fields]] = []
    for raw in text.splitlines():
        line = read_line(raw)
        if line is None:
            continue
        if plain_label(line.label or line.text).endswith("task") and not line.value:
            tasks.append((line.text.lower(), Fields()))
        elif plain_label(line.label) == "currentoperation" and not tasks and line.value.lower() != "none":
            raise ToolError("what is under way could not be read: an operation stands under no task")
        elif line.labelled and tasks:
            tasks[-1][1].add(line.label, line.value)
        elif plain_label(line.text) in (
            "controllerinformation",
            "logicaldeviceinformation",
            "physicaldeviceinformation",
        ):
            raise ToolError("what is under way could not be read: this is no answer to GETSTATUS")
    found: dict[str, dict[str, float]] = {}
    for title, fields in tasks:
        operation = fields.get("Current operation").lower()
        volume = fields.get("Logical device", "Logical drive", "Logical device number")
        if operation in ("", "none") or not title.startswith("logical"):
            continue
        if not volume:
            raise ToolError(f"arcconf tells of a task ({operation[:60]}) and not of which volume")
        percent = _PERCENT.match(fields.get("Percentage complete", "Percent complete"))
        task = next((name for word, name in _TASKS if operation.startswith(word)), operation)
        found.setdefault(volume.split(" ")[0], {})[task] = float(percent.group("percent")) if percent else 0.0
    return found
