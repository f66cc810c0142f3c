# SPDX-License-Identifier: Apache-2.0
"""What arrays and adapters do beside the commands of the host, and what adapters' own logs say meanwhile.

A rebuild, a check or a patrol read takes time of the drives from whoever measures, and nothing in its figures shows
it. Adapters are asked by the tool of their driver, at the ends of a batch only: the question costs the adapter time
as well. Work that begins and ends between two looks is in the adapter's log at best.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any, Callable, Collection, Iterator, Mapping, Sequence

from ..host.block_stack import physical
from ..host.sysfs import pci_address
from ..kit.command import Runner, ToolAnswers, find_program
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..tools import TOOLS
from ..tools.capabilities import AdapterEvent, AdapterFacts, BackgroundWork, offers

_WATCHED: Mapping[str, str] = {"megaraid_sas": "storcli", "mpi3mr": "storcli2"}
"""By driver the tool that tells of its adapters' work and log in few commands."""

PROGRAMS: Mapping[str, Sequence[str]] = {
    "storcli": ("storcli64", "storcli", "perccli64", "perccli"),
    "storcli2": ("storcli2", "perccli2"),
}
"""The programs of these tools: where none is installed, nothing of the tool is compiled before each batch."""

_QUIET = ("debug", "progress", "information")
_MOST = 20
_PROGRESS = "{}: {} is under way ({:g} %)"


def drivers_of(machine: Machine, addresses: Collection[str]) -> dict[str, str]:
    """The driver of each PCI function that has one."""
    drivers = {address: machine.target(f"/sys/bus/pci/devices/{address}/driver") for address in addresses}
    return {address: driver for address, driver in drivers.items() if driver}


def work_of_arrays(machine: Machine, addresses: Collection[str]) -> Iterator[str]:
    """A sentence on each md array with something under way that has a drive behind one of these PCI functions.

    Raises ToolError, after those that were read, when one of these arrays was not.
    """
    text = machine.text("/proc/mdstat")
    if not text:
        return
    from ..tools import mdadm  # noqa: PLC0415 - compiled only where the kernel has arrays

    unread = []
    for array in mdadm.parse_arrays(text):
        name = array.device.rpartition("/")[2]
        places = {pci_address(machine.real(f"/sys/block/{disk}")) for disk in physical(machine, name)}
        if places & set(addresses):
            yield from (_PROGRESS.format(f"array {name}", *each) for each in array.progress.items())
        # of one that was not read, the drives may not be known either
        if array.unread and (not places - {"", None} or places & set(addresses)):
            unread.append(f"array {name}: {array.unread}")
    if unread:
        raise ToolError("; ".join(unread))


class AdapterWatch(ToolAnswers):
    """The arrays and adapters at some PCI functions, from the moment it is made.

    `work` is what was under way then, a sentence each, and `unread` what could not be told. Without `log` the
    adapters' logs are not read.
    """

    def __init__(self, machine: Machine, addresses: Collection[str], runner: Runner, *, log: bool = True) -> None:
        super().__init__()
        self._runner = runner
        self.work: list[str] = []
        self._last: dict[tuple[str, str], int] = {}
        self.ask("the work of md arrays", lambda: self.work.extend(work_of_arrays(machine, addresses)))
        drivers = drivers_of(machine, addresses)
        names = sorted({_WATCHED[driver] for driver in drivers.values() if driver in _WATCHED})
        installed = [name for name in names if any(find_program(machine, program) for program in PROGRAMS[name])]
        self._tools: dict[str, ModuleType] = {name: TOOLS[name]() for name in installed}
        for name, tool in self._tools.items():
            for adapter in self.ask(f"the work of adapters, {name}", partial(tool.read_background, runner)) or ():
                # one of which the tool tells no address may be any of them
                if not adapter.pci or adapter.pci in addresses:
                    self.work += [f"{_named(name, adapter)}: {task}" for task in adapter.work]
                    self.unread += [f"the work of {_named(name, adapter)}: {why}" for why in adapter.unread]
                    events = self._events(name, adapter.index) if log and "events" in offers(tool) else None
                    if events is not None:
                        self._last[name, adapter.index] = max((event.sequence or 0 for event in events), default=0)

    def _events(self, name: str, index: str) -> tuple[AdapterEvent, ...] | None:
        read = partial(self._tools[name].read_events, self._runner, index)
        events: tuple[AdapterEvent, ...] | None = self.ask(f"the log of adapter {index}, {name}", read)
        return events

    def findings(self, time: str) -> list[dict[str, Any]]:
        """What the adapters' logs have said since, from a warning on, as findings of a spool; `time` is now."""
        findings: list[dict[str, Any]] = []
        for (name, index), last in self._last.items():
            events = self._events(name, index) or ()
            later = [event for event in events if (event.sequence or 0) > last and event.severity not in _QUIET]
            head = f"{name}, adapter {index}"
            lines = [f"{head}, event {each.sequence} ({each.severity}, {each.time}): {each.text}" for each in later]
            if events and (events[0].sequence or 0) > last + 1 > 1:
                lines.append(f"{head}: the events before {events[0].sequence} were not read, there were too many")
            serious = any(event.severity != "warning" for event in later)
            if lines:
                findings.append(
                    {
                        "kind": "adapter_fault",
                        "severity": "error" if serious else "warning",
                        "line": lines[0],
                        "lines": lines[:_MOST],
                        "count": len(lines),
                        "time": time,
                    }
                )
        return findings


def _named(tool: str, adapter: BackgroundWork | AdapterFacts) -> str:
    return f"adapter {adapter.pci or adapter.index} ({tool})"


def work_of_adapters(
    machine: Machine,
    addresses: Collection[str],
    runner: Runner,
    tools_of: Callable[[str], Collection[str]],
    answers: ToolAnswers,
) -> Iterator[str]:
    """What adapters that are not watched have under way, by their whole facts.

    `tools_of` gives the tools that may know the adapters of a driver.
    """
    unwatched = {driver for driver in drivers_of(machine, addresses).values() if driver not in _WATCHED}
    for name in sorted({tool for driver in unwatched for tool in tools_of(driver)}):
        tool = TOOLS[name]()
        if "facts" not in offers(tool):
            continue
        facts = answers.ask(f"the work of adapters, {name}", partial(tool.read_facts, runner))
        for adapter in facts.adapters if facts is not None else ():
            if not adapter.pci or adapter.pci in addresses:
                where = f"{_named(name, adapter)}, volume"
                for volume in adapter.volumes:
                    for each in volume.progress.items():
                        yield _PROGRESS.format(f"{where} {volume.name or volume.id}", *each)
