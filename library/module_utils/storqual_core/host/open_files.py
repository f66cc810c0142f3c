# SPDX-License-Identifier: Apache-2.0
"""Programs that can write to a block device now, wherever the kernel keeps what they opened.

An open file is known by more than the descriptors of a process: a thread may have a table of its own, a process whose
first thread has ended keeps its files in the others, io_uring keeps files that were registered with it, a mapping
outlives its descriptor, and a descriptor may wait in a socket for its receiver. The kernel lists the first four; of
the last it tells only how many there are.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Collection, Iterator, Mapping

from ..kit.machine import Machine, visible
from ..kit.quantities import is_whole
from .block_stack import resolve

_RING = "anon_inode:[io_uring]"
_REGISTERED = re.compile(r" *\d+: (.+)\Z")
_MAPPING = re.compile(rb"([0-9a-f]+-[0-9a-f]+) ..[-x]s [0-9a-f]+ \S+ [1-9]\d* +(/[^\n]*)")


@dataclass
class OpenFiles:
    """Who has which device open for writing, and who has files open that the kernel does not name.

    `writers` is by kernel name, or by what names a file (`fio (process 612)`); `unnamed` are sentences without their
    end, each about a program whose open files may be any device.
    """

    writers: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unnamed: list[str] = field(default_factory=list)


def processes(machine: Machine) -> list[str]:
    """The process numbers of the machine, in order."""
    return sorted((name for name in machine.names("/proc") if is_whole(name)), key=int)


def read_open_files(machine: Machine, files: Collection[str] = ()) -> OpenFiles:
    """Every program that has a disk open for writing, by its block, sg, bsg or NVMe node, or one of these `files`.

    This process is left out. Programs that only read a block device do no harm, and there is always one (udev). A
    node of sg, bsg or NVMe takes any command of root, whatever it was opened for.
    """
    found = OpenFiles()
    known: dict[tuple[str, str], tuple[str, ...]] = {}

    def behind(path: str) -> tuple[str, ...]:
        """The block devices that an open file writes to, or the file that it is."""
        node = machine.node(path)
        if node is not None and node.file in files:
            return (node.file,)
        if node is None or node.kind not in ("block", "char"):
            return ()
        key = (node.kind, node.number)
        if key not in known:
            known[key] = resolve(machine, path).names
        return known[key]

    def add(process: str, names: tuple[str, ...], how: str) -> None:
        for name in names:
            told = how.format(_program(machine, process))
            if told not in found.writers[name]:
                found.writers[name].append(told)

    for process in processes(machine):
        if process == str(os.getpid()):
            continue
        for place in _tables(machine, process):
            for descriptor in machine.names(f"{place}/fd"):
                path = f"{place}/fd/{descriptor}"
                link = machine.link(path)
                if link.startswith("/"):
                    names = behind(path)
                    if names and _writes(machine, place, descriptor):
                        add(process, names, "is open for writing in {}")
                    elif names and _takes_commands(machine, path):
                        add(process, names, "is open for commands in {}")
                elif link == _RING:
                    for name in _registered(machine, process, f"{place}/fdinfo/{descriptor}", found):
                        add(process, behind(name), "is registered with io_uring by {}")
                elif link.startswith("socket:"):
                    _count_waiting(machine, process, f"{place}/fdinfo/{descriptor}", found)
        for path in _mappings(machine, process):
            add(process, behind(path), "is mapped into the memory of {}")
    return found


def _program(machine: Machine, process: str) -> str:
    return f"{visible(machine.text(f'/proc/{process}/comm')) or 'a program'} (process {process})"


def _tables(machine: Machine, process: str) -> Iterator[str]:
    """The folders of `/proc` that show all tables of open files of a process, those of its threads included."""
    yield f"/proc/{process}"
    for task in machine.names(f"/proc/{process}/task"):
        if task != process and not machine.share_open_files(process, task):
            yield f"/proc/{process}/task/{task}"


def _writes(machine: Machine, place: str, descriptor: str) -> bool:
    """Whether an open file was opened for writing; what is open and cannot be told counts as writing."""
    for line in machine.lines(f"{place}/fdinfo/{descriptor}"):
        if line.startswith("flags:"):
            return bool(int(line.split()[1], 8) & (os.O_WRONLY | os.O_RDWR))
    # closed meanwhile: the device manager opens and closes devices all the time
    return bool(machine.link(f"{place}/fd/{descriptor}"))


def _takes_commands(machine: Machine, path: str) -> bool:
    """Whether an open file, if it is still open, is a character node: what is read there are answers to commands."""
    node = machine.node(path)
    return node is not None and node.kind == "char"


def _registered(machine: Machine, process: str, path: str, found: OpenFiles) -> list[str]:
    """The paths of the files registered with a ring; which of them are open for writing is not told."""
    lines = machine.lines(path)
    start = next((place for place, line in enumerate(lines) if line.startswith("UserFiles:")), None)
    listed = []
    for line in lines[start + 1 :] if start is not None else ():
        entry = _REGISTERED.match(line)
        if entry is None:
            break
        # older kernels print the last word of the path only
        name = entry.group(1)
        listed.append(name if name.startswith("/") else f"/dev/{name}")
    # the list is left out while the ring works; kernels that have the line NAPI leave the whole text out then
    count = lines[start].partition(":")[2].strip() if start is not None else ""
    whole = bool(listed) or count == "0" or any(line.startswith("NAPI:") for line in lines)
    if not whole and machine.link(path.replace("/fdinfo/", "/fd/")):
        found.unnamed.append(f"{_program(machine, process)} has files registered with io_uring that are not listed")
    return listed


def _count_waiting(machine: Machine, process: str, path: str, found: OpenFiles) -> None:
    """Descriptors that were sent through a socket and that nobody has taken yet are in no table."""
    for line in machine.lines(path):
        if line.startswith("scm_fds:") and line.split()[1:] not in ([], ["0"]):
            told = f"open files wait in a socket of {_program(machine, process)} for being taken"
            if told not in found.unnamed:
                found.unnamed.append(told)


def _mappings(machine: Machine, process: str) -> Iterator[str]:
    """The files that a process has mapped shared; of a process whose first thread has ended those of the others."""
    for place in (f"/proc/{process}", *(f"/proc/{process}/task/{task}" for task in _tasks(machine, process))):
        table = machine.read(f"{place}/maps")
        if table:
            for mapping in _MAPPING.finditer(table):
                path = f"/proc/{process}/map_files/{mapping.group(1).decode()}"
                # of a process whose first thread has ended the kernel shows the path only
                yield path if machine.link(path) else mapping.group(2).decode("latin-1")
            return


def _tasks(machine: Machine, process: str) -> list[str]:
    return [task for task in machine.names(f"/proc/{process}/task") if task != process]


def ways(machine: Machine) -> Mapping[str, bool]:
    """Which of the kernel's ways to tell of a writer this machine has, by name."""
    return {
        "open files of each thread": machine.exists("/proc/self/task"),
        "shared mappings": machine.exists("/proc/self/map_files"),
        **machine.kernel_ways(),
    }
