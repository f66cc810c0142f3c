# SPDX-License-Identifier: Apache-2.0
"""Who uses which block device now: mounts of every namespace, swap, loops, exports, programs (open_files.py).

Each finding is a part of a sentence (`is mounted on /data (ext4)`), kept under the kernel name of the device it is
about; what uses a whole stack is found by walking the stack, not here. Exports are devices that this machine serves
to others: NVMe and SCSI targets, SCST, USB gadgets. NFS serves mounted file systems only, and a mount is a finding.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Iterable, Iterator, Mapping

from ..kit.errors import ToolError
from ..kit.machine import Machine, Node, block_node, visible
from .block_stack import loop_source, physical, resolve
from .open_files import OpenFiles, processes, read_open_files

_DELETED = " (deleted)"
_OCTAL = re.compile(r"\\([0-7]{3})")
_SYSTEM_MOUNTS = re.compile(r"/\Z|/boot(?:/.*)?\Z|/usr\Z")


@dataclass(frozen=True)
class Mount:
    """One mounted file system: device number, where, what, from what, and a process of the namespace it is in."""

    number: str
    point: str
    kind: str
    source: str
    process: str


def _plain(text: str) -> str:
    """Mount tables write blanks and backslashes as octal numbers."""
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), text)


def parse_mountinfo(lines: Iterable[str], process: str = "") -> list[Mount]:
    """The mounts in `/proc/PID/mountinfo`. Raises ToolError for a line that is not understood: it may be a mount.

    Format: `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw` (proc(5)).
    """
    mounts = []
    for line in lines:
        if not line:
            continue
        head, dash, tail = line.partition(" - ")
        words, more = head.split(" "), tail.split(" ")
        if not dash or len(words) < 6 or len(more) < 2 or ":" not in words[2]:
            raise ToolError(f"a line of the kernel's mount table is not understood: {visible(line)}")
        mounts.append(Mount(words[2], _plain(words[4]), more[0], _plain(more[1]), process))
    return mounts


def parse_swaps(lines: Iterable[str]) -> list[str]:
    """The paths in `/proc/swaps` (its first line is a heading)."""
    return [_plain(line.split()[0]) for line in list(lines)[1:] if line.split()]


def read_mounts(machine: Machine) -> list[Mount]:
    """All mounts of all mount namespaces; those of the first process carry no process.

    Raises ToolError when this process' own mount table cannot be read: then nothing is known.
    """
    own = machine.read("/proc/self/mountinfo")
    if not own:
        raise ToolError("the kernel's mount table (/proc/self/mountinfo) cannot be read")
    mounts = parse_mountinfo(own.decode("latin-1").split("\n"))
    seen = {machine.link("/proc/self/ns/mnt")}
    for process in processes(machine):
        # a thread may have left the namespace of its process
        for place in (process, *(f"{process}/task/{task}" for task in machine.names(f"/proc/{process}/task"))):
            namespace = machine.link(f"/proc/{place}/ns/mnt")
            if namespace and namespace not in seen:
                seen.add(namespace)
                mounts.extend(parse_mountinfo(machine.lines(f"/proc/{place}/mountinfo"), process))
    return mounts


def device_of(machine: Machine, number: str, source: str) -> str:
    """The kernel name behind a mount; file systems over several devices have a number of no device, but a source."""
    name = machine.target(f"/sys/dev/block/{number}")
    if name:
        return name
    if source.startswith("/"):
        node = machine.node(source)
        if node is not None and node.kind == "block":
            return machine.name_of(node)
    return ""


def find_uses(
    machine: Machine, mounts: Iterable[Mount] | None = None, open_files: OpenFiles | None = None
) -> Mapping[str, list[str]]:
    """Every use of every block device of the machine; mounts and open files are read unless they are given.

    Raises ToolError when the mount table cannot be read.
    """
    uses: dict[str, list[str]] = defaultdict(list)
    for mount in read_mounts(machine) if mounts is None else mounts:
        name = device_of(machine, mount.number, mount.source)
        if name:
            where = f"is mounted on {visible(mount.point)} ({visible(mount.kind)})"
            # services have namespaces of their own, in which every mount of the machine appears again
            if mount.process and where not in uses[name]:
                program = visible(machine.text(f"/proc/{mount.process}/comm")) or "unknown"
                where += f" in the mount namespace of process {mount.process} ({program})"
            if where not in uses[name]:
                uses[name].append(where)
    for path in parse_swaps(machine.lines("/proc/swaps")):
        node = machine.node(path)
        if node is not None and node.kind == "block":
            uses[machine.name_of(node)].append("is active swap space")
    _add_shared(machine, uses)
    for name, programs in (open_files or read_open_files(machine)).writers.items():
        uses[name].extend(programs)
    return uses


def file_uses(machine: Machine, paths: Mapping[str, str]) -> Mapping[str, list[str]]:
    """Every use of regular files: as loop device, mount, swap or export, or open for writing in another program.

    `paths` are where they lie, by what names each (`Node.file`); a path alone would miss what was opened by another.
    Raises ToolError when the mount table cannot be read.
    """
    uses: dict[str, list[str]] = {name: [] for name in paths}
    by_path = {path: name for name, path in paths.items()}

    def add(path: str, use: str, node: Node | None = None) -> None:
        names = {found.file for found in (node, machine.node(path) if path else None) if found is not None}
        names.add(by_path.get(path[: -len(_DELETED)] if path.endswith(_DELETED) else path, ""))
        for name in names & set(uses):
            if use not in uses[name]:
                uses[name].append(use)

    for loop in machine.names("/sys/block"):
        path = machine.text(f"/sys/block/{loop}/loop/backing_file") if loop.startswith("loop") else ""
        if path:
            add(path, f"backs loop device {loop}", machine.loop_source(block_node(loop)))
    numbers = {name.partition("/")[0] for name in paths}
    for mount in read_mounts(machine):
        # a file that is mounted shows its own file system; btrfs has numbers of its own for what it holds. Mounts of
        # other file systems are left alone: looking at one whose server is gone never ends
        if mount.number in numbers or mount.kind == "btrfs":
            place = f"/proc/{mount.process}/root{mount.point}" if mount.process else mount.point
            add("", f"is mounted on {visible(mount.point)}", machine.node(place))
    for path in parse_swaps(machine.lines("/proc/swaps")):
        add(path, "is active swap space")
    for title, path, _ in _paths(machine):
        add(path, f"is served to other machines by {title}")
    for name, programs in read_open_files(machine, paths).writers.items():
        uses.get(name, []).extend(programs)
    return uses


def _add_shared(machine: Machine, uses: Mapping[str, list[str]]) -> None:
    """File systems over several devices, loop devices, and devices served to other machines."""
    for uuid in machine.names("/sys/fs/btrfs"):
        for name in machine.names(f"/sys/fs/btrfs/{uuid}/devices"):
            uses[name].append(f"is part of the mounted btrfs {visible(uuid)}")
    for uuid in machine.names("/sys/fs/bcachefs"):
        for entry in machine.names(f"/sys/fs/bcachefs/{uuid}"):
            name = machine.target(f"/sys/fs/bcachefs/{uuid}/{entry}/block")
            if name:
                uses[name].append(f"is part of the mounted bcachefs {visible(uuid)}")
    for loop in machine.names("/sys/block"):
        source = loop_source(machine, loop) if loop.startswith("loop") else None
        if source is not None and source.kind == "block":
            uses[machine.name_of(source)].append(f"backs loop device {loop}")
    for export in read_exports(machine):
        for name in export.names:
            uses[name].append(f"is served to other machines by {export.title}")


def system_disks(machine: Machine, state_dir: str, mounts: Iterable[Mount] | None = None) -> Mapping[str, str]:
    """The disks that the machine itself lives on, by kernel name, with what they carry: `carries /, /boot and swap`.

    Those are the disks behind `/`, `/boot`, `/usr`, active swap and the spool in `state_dir`.
    """
    carried: dict[str, list[str]] = defaultdict(list)
    table = list(read_mounts(machine) if mounts is None else mounts)

    def carries(name: str, what: str) -> None:
        for disk in physical(machine, name) if name else ():
            if what not in carried[disk]:
                carried[disk].append(what)

    for mount in table:
        if not mount.process and _SYSTEM_MOUNTS.match(mount.point):
            carries(device_of(machine, mount.number, mount.source), visible(mount.point))
    for path in parse_swaps(machine.lines("/proc/swaps")):
        node = machine.node(path)
        if node is not None and node.kind in ("block", "file"):
            carries(machine.name_of(node), "swap")
    spool = _nearest(machine, state_dir)
    if spool:
        source = next((mount.source for mount in table if mount.number == spool), "")
        carries(device_of(machine, spool, source), "storqual's spool")
    return {disk: "carries " + _listed(what) for disk, what in carried.items()}


def _nearest(machine: Machine, folder: str) -> str:
    """The device number of the file system that a folder is on, or would be on when it is made."""
    place = folder.rstrip("/")
    while True:
        node = machine.node(place or "/")
        if node is not None:
            return node.number
        if not place:
            return ""
        place = place.rpartition("/")[0]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


_TARGET = "/sys/kernel/config/target/core/*/*"
# the file that names the device; beside it the file `enable`, where the server has one
_NAMED = (
    ("an NVMe target", "/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("an NVMe target", "/sys/kernel/config/nvmet/subsystems/*/passthru/device_path"),
    ("a SCSI target", f"{_TARGET}/udev_path"),
    ("a SCSI target", "/sys/kernel/scst_tgt/handlers/*/*/filename"),
    ("a USB gadget", "/sys/kernel/config/usb_gadget/*/functions/*/*/file"),
    ("a USB gadget", "/sys/class/udc/*/device/*/*/file"),
)
# udev_path is a note of the tool that set a SCSI target up; what the kernel itself opened stands in `info`
_OPENED = re.compile(r"(?: File| UDEV PATH): (.+?)  (?:Size|readonly): ")


@dataclass(frozen=True)
class Export:
    """What a server of block devices was given, and the block devices behind it, none where they cannot be told."""

    title: str
    path: str
    names: tuple[str, ...]


def read_exports(machine: Machine) -> list[Export]:
    """Every device that is set up for being served, switched on or not, each once."""
    return list(
        dict.fromkeys(Export(title, path, resolve(machine, path).names) for title, path, _ in _paths(machine))
    )


def lost_exports(machine: Machine) -> list[str]:
    """What is served now and leads to nothing any more, in words: it may be any device."""
    return [
        f"{title} serves {visible(path)}, which leads to nothing now"
        for title, path, on in _paths(machine)
        if on and machine.node(path) is None
    ]


def _paths(machine: Machine) -> Iterator[tuple[str, str, bool]]:
    """Title, path, and whether it is switched on, of all that is set up."""
    for title, pattern in _NAMED:
        for place in _matching(machine, pattern):
            path = machine.text(place).strip()
            if path.startswith("/"):
                yield title, path, machine.text(place.rpartition("/")[0] + "/enable") == "1"
    for place in _matching(machine, f"{_TARGET}/info"):
        for path in _OPENED.findall(machine.text(place)):
            yield "a SCSI target", path, True


def _matching(machine: Machine, pattern: str) -> list[str]:
    """Existing paths for a pattern in which `*` stands for one whole name."""
    places = [""]
    for word in pattern.strip("/").split("/"):
        if word == "*":
            places = [f"{place}/{name}" for place in places for name in machine.names(place)]
        else:
            places = [f"{place}/{word}" for place in places]
    return [place for place in places if machine.exists(place)]
