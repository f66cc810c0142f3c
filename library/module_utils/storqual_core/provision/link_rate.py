# SPDX-License-Identifier: Apache-2.0
"""The rate that a drive's SAS link is negotiated at: the highest that its phys allow (`maximum_linkrate`).

The phys are those that face the drive, on the adapter or on the last expander. A write has the link negotiated
afresh, so it is waited for. Drivers that cannot set it (without set_phy_speed of the transport class) show the
attribute read-only.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..host.block_stack import DriveTarget
from ..host.counters import read_phys
from ..kit.errors import ToolError
from ..kit.machine import Machine, write_attribute
from ..kit.settings import LINK_RATES
from .engine import Proof

NAME = "link_rate"
_LIMIT_S, _STEADY_S, _POLL_S = 20.0, 2.0, 0.1
"""How long a link may take to come back; how long a lower rate than allowed must last to be taken for its rate."""


class Links:
    """How the rate of a drive's link is read, refused, set and shown."""

    def __init__(self, sysfs: str = "/sys", machine: Machine | None = None) -> None:
        self._machine = machine or Machine(str(Path(sysfs).parent))

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The highest rate allowed now; a drive on no SAS link has none."""
        now = self._texts(target, "maximum_linkrate") if NAME in names else []
        return {NAME: ", ".join(now)} if now else {}

    def _texts(self, target: DriveTarget, attribute: str) -> list[str]:
        """What the phys of the link show, each value once."""
        phys = read_phys(self._machine, target.node)
        return sorted({text for text in (self._machine.text(f"{phy}/{attribute}") for phy in phys) if text})

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """No SAS link, phys that nobody can set or that cannot run at that rate, others on the same link."""
        rate = wanted.get(NAME)
        if rate is None:
            return []
        if NAME not in now:
            told = f"{target.node} is on no SAS link, {rate} is declared"
            return [f"{told}; a Fibre Channel port has its rate from its driver (lpfc: lpfc_link_speed)"]
        if now[NAME] == rate:
            return []
        if now[NAME] not in LINK_RATES:
            return [f"the phys of {target.node} have highest rates that could not be put back: {now[NAME]}"]
        phys = read_phys(self._machine, target.node)
        problems = []
        if not all(self._writable(f"{phy}/maximum_linkrate") for phy in phys):
            problems.append(
                f"the driver of {target.node} does not let the rate of its link be changed (maximum_linkrate is "
                f"read-only), {rate} is declared"
            )
        for attribute in ("minimum_linkrate", "minimum_linkrate_hw", "maximum_linkrate_hw"):
            for text in self._texts(target, attribute):
                above, below = _place(rate) > _place(text), _place(rate) < _place(text)
                if text in LINK_RATES and (below if attribute.startswith("minimum") else above):
                    problems.append(f"{rate} is declared, and {attribute} of the phys of {target.node} is {text}")
        sharing = [
            name
            for name in self._machine.names("/sys/block")
            if name != target.node and read_phys(self._machine, name) == phys
        ]
        if sharing:
            problems.append(f"the link of {target.node} also carries {', '.join(sharing)}, which would lose it too")
        return problems

    def _writable(self, path: str) -> bool:
        return bool(Path(self._machine.path(path)).stat().st_mode & stat.S_IWUSR)

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write, and wait for the link. Raises ToolError when it does not come back, or not below that rate."""
        rate = str(values[NAME])
        for phy in read_phys(self._machine, target.node):
            write_attribute(self._machine.path(f"{phy}/maximum_linkrate"), rate)
        return [f"{target.id}: {NAME} set to {rate}, the link came back at {self._came_back(target, rate)}"]

    def _came_back(self, target: DriveTarget, rate: str) -> str:
        """The rate that the link has when it has that rate, or a lower one for a while (a slower drive or cable)."""
        waited = steady = 0.0
        before = ""
        while True:
            seen = self._texts(target, "negotiated_linkrate")
            state = self._machine.text(f"/sys/block/{target.node}/device/state")
            told = ", ".join(seen)
            ready = len(seen) == 1 and told in LINK_RATES and state in ("", "running")
            if ready and told == rate:
                return told
            steady = steady + _POLL_S if ready and told == before and _place(told) < _place(rate) else 0.0
            if steady >= _STEADY_S:
                return told
            if waited >= _LIMIT_S:
                raise ToolError(
                    f"{target.id}: {waited:.0f} s after {rate} was set its link is at {told or 'no rate'}, the drive "
                    f"{state or 'gone'}"
                )
            before = told
            self._machine.wait(_POLL_S)
            waited += _POLL_S

    def prove(self, target: DriveTarget, value: object) -> Proof:
        """What was negotiated, beside the highest rate that is allowed."""
        seen = self._texts(target, "negotiated_linkrate")
        told = f"negotiated_linkrate is {', '.join(seen) or 'not shown'}"
        if not seen or not all(text in LINK_RATES for text in (*seen, str(value))):
            return None, told
        if any(_place(text) > _place(str(value)) for text in seen):
            return False, told
        return (True, told) if seen == [value] else (None, f"{told}: the drive or the cable is slower")


def _place(rate: str) -> int:
    return LINK_RATES.index(rate) if rate in LINK_RATES else -1
