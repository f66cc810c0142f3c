# SPDX-License-Identifier: Apache-2.0
"""Who uses which block device now: mounts of every namespace, swap, loops, exports, programs that hold it open.

An open file is known by more than the descriptors of a process: a thread may have a table of its own, a process whose
first thread has ended keeps its files in the others, io_uring keeps files that were registered with it, a mapping
outlives its descriptor, and a descriptor may wait in a socket for its receiver. The kernel lists the first four; of
the last it tells only how many there are.

Each finding is a part of a sentence (`is mounted on /data (ext4)`), kept under the kernel name of the device it is
about; what uses a whole stack is found by walking the stack, not here. Exports are devices that this machine serves
to others: NVMe and SCSI targets, SCST, USB gadgets. NFS serves mounted file systems only, and a mount is a finding.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Collection, Iterable, Iterator, Mapping

from ..kit.errors import ToolError
from ..kit.machine import Machine, Node, block_node, visible
from ..kit.quantities import is_whole
from .block_stack import loop_source, physical, resolve

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
    return sorted((name for name in machine.names("/proc") if is_whole(name)), key=int)


def read_open_files(machine: Machine, files: Collection[str] = ()) -> OpenFiles:
    """Every program that has a disk open for writing, by its block, sg, bsg or NVMe node, or one of these `files`.

    This process is left out. Programs that only read a block device do no harm, and there is always one (udev). A
    node of sg, bsg or NVMe takes any command of root, whatever it was opened for.
    """
    usage = OpenFiles()
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
            use = how.format(_program(machine, process))
            if use not in usage.writers[name]:
                usage.writers[name].append(use)

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
                    for name in _registered(machine, process, f"{place}/fdinfo/{descriptor}", usage):
                        add(process, behind(name), "is registered with io_uring by {}")
                elif link.startswith("socket:"):
                    _count_waiting(machine, process, f"{place}/fdinfo/{descriptor}", usage)
        for path in _mappings(machine, process):
            add(process, behind(path), "is mapped into the memory of {}")
    return usage


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


def _registered(machine: Machine, process: str, path: str, usage: OpenFiles) -> list[str]:
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
        usage.unnamed.append(f"{_program(machine, process)} has files registered with io_uring that are not listed")
    return listed


def _count_waiting(machine: Machine, process: str, path: str, usage: OpenFiles) -> None:
    """Descriptors that were sent through a socket and that nobody has taken yet are in no table."""
    for line in machine.lines(path):
        if line.startswith("scm_fds:") and line.split()[1:] not in ([], ["0"]):
            sentence = f"open files wait in a socket of {_program(machine, process)} for being taken"
            if sentence not in usage.unnamed:
                usage.unnamed.append(sentence)


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


_DELETED = " (deleted)"
_OCTAL = re.compile(r"\\([0-7]{3})")
_SYSTEM_MOUNTS = re.compile(r"/\Z|/boot(?:/.*)?\Z|/usr\Z")


@dataclass(frozen=True)
class Mount:
    """One mounted file system: device number, where, what, from what, and a process of the namespace it is in.

    `root` is the folder of the file system that is mounted: `/` but for a bind mount or a subvolume.
    """

    number: str
    point: str
    kind: str
    source: str
    process: str
    root: str = "/"


def _plain(text: str) -> str:
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
        mounts.append(Mount(words[2], _plain(words[4]), more[0], _plain(more[1]), process, _plain(words[3])))
    return mounts


def parse_swaps(lines: Iterable[str]) -> list[str]:
    """The paths in `/proc/swaps` (its first line is a heading)."""
    return [_plain(line.split()[0]) for line in list(lines)[1:] if line.split()]


def read_mounts(machine: Machine) -> list[Mount]:
    """All mounts of all mount namespaces; those of the first process carry no process.

    Raises ToolError when this process' own mount table cannot be read: then nothing is known.
    """
    table = machine.read("/proc/self/mountinfo")
    if not table:
        raise ToolError("the kernel's mount table (/proc/self/mountinfo) cannot be read")
    mounts = parse_mountinfo(table.decode("latin-1").split("\n"))
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
        names = {entry.file for entry in (node, machine.node(path) if path else None) if entry is not None}
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


def served_serials(machine: Machine) -> Mapping[str, str]:
    """The serial under which a target serves a whole disk, by the disk's kernel name: by that an initiator knows it.

    Of a SCSI target that of the LUN, of an NVMe target that of the subsystem.
    """
    serials = {}
    for place in _matching(machine, f"{_TARGET}/udev_path"):
        serial = machine.text(f"{place.rpartition('/')[0]}/wwn/vpd_unit_serial").rpartition(":")[2].strip()
        serials[machine.text(place).strip()] = serial
    for place in _matching(machine, "/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path"):
        serials[machine.text(place).strip()] = machine.text(f"{place.split('/namespaces/')[0]}/attr_serial").strip()
    served = ((resolve(machine, path).names, serial) for path, serial in serials.items() if path.startswith("/"))
    return {names[0]: serial for names, serial in served if len(names) == 1 and serial}


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
