# SPDX-License-Identifier: Apache-2.0
"""newname (Acme SR adapters): facts. Exit status 0 also when no adapter is there."""

from __future__ import annotations

import re
from dataclasses import replace

from ..kit.command import Runner, run_first
from ..kit.errors import ToolError
from .capabilities import AdapterFacts, DriveFacts, ToolFacts

PROGRAMS = ("newname64", "newname")
"""The commands this tool stands for; the first that is installed is run."""

_ADAPTER = re.compile(r"^Adapter ([0-9]+): (.+) \(serial (\S+)\) at ([0-9a-f:.]+)$")
_VALUE = re.compile(r"^  ([A-Z][A-Za-z ]+): (.+)$")
_DRIVE = re.compile(r"^  Drive ([0-9]+:[0-9]+): (\S+) (\S+) serial (\S+) size ([0-9]{1,19})$")


def parse_show(text: str) -> ToolFacts:
    """`newname show all`. Raises ToolError when it is not the output of this command."""
    if not text.startswith("newname "):
        first = text.strip().partition("\n")[0][:200] or "nothing"
        raise ToolError(f"newname did not print its name first, but: {first}")
    adapters: list[AdapterFacts] = []
    notes: list[str] = []
    for line in text.splitlines()[1:]:
        adapter, drive, value = _ADAPTER.match(line), _DRIVE.match(line), _VALUE.match(line)
        if adapter:
            index, model, serial, pci = adapter.groups()
            adapters.append(AdapterFacts(index=index, model=model, serial=serial, pci=pci))
        elif drive and adapters:
            position, vendor, model, serial, size = drive.groups()
            found = DriveFacts(position, serial=serial, vendor=vendor, model=model, size=int(size))
            adapters[-1] = replace(adapters[-1], drives=(*adapters[-1].drives, found))
        elif value and adapters:
            settings = {**adapters[-1].settings, value.group(1): value.group(2)}
            adapters[-1] = replace(adapters[-1], settings=settings)
        elif line.strip():
            notes.append(line.strip())
    with_versions = (replace(each, firmware={"firmware": each.settings.get("Firmware", "")}) for each in adapters)
    return ToolFacts(tuple(with_versions), tuple(notes))


def read_facts(runner: Runner) -> ToolFacts:
    """All Acme adapters of the machine. Raises ToolError."""
    return parse_show(run_first(runner, PROGRAMS, ["show", "all"]).expect().stdout)
