# SPDX-License-Identifier: Apache-2.0
"""A panic whose dump goes through the adapter under test: a crash kernel writes it to a claimed drive behind it.

The dump lies beside the load's region, within the guard's window. It is the proof: read back after the boot that
follows, its kernel log must hold a line of this very trial and the panic behind it.

The crash kernel starts an archive that holds the drivers of that drive and nothing else that could reach a disk. Its
script knows the drive by its world wide id and its size as they were when the guard allowed it, and writes only to
the bytes it was given: no guard runs beside a crash kernel.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

from ..host.sysfs import read_drives
from ..host.watchdog import read_watchdogs
from ..kit.archives import compose, new_folder, new_program, unpack
from ..kit.errors import ToolError
from ..kit.kernel import load_crash_kernel
from ..kit.machine import boot_id, write_attribute
from ..tools import makedumpfile
from .drive_faults import Aim, Tell

MIB = 1 << 20
_WAIT_S, _DUMP_S = 60, 600


@dataclass(frozen=True)
class DumpPlace:
    """Where a dump may lie: the drive by its `wwid` attribute and its sectors; first byte and bytes, of whole MiB."""

    wwid: str
    sectors: int
    first: int
    size: int


def make_script(place: DumpPlace, modules: Sequence[tuple[str, str]]) -> str:
    """The first program of a crash kernel: load `modules` (path, options), write the dump, start the bench again."""
    # a value that a drop declares may hold what a shell takes for the end of a command
    loads = "\n".join(shlex.join(["insmod", path, *options.split()]) for path, options in modules)
    return f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/null >/dev/console 2>&1
/bin/busybox --install -s /bin
export PATH=/bin
echo "storqual: the crash kernel has started"
{loads}
found= left={_WAIT_S}
while [ -z "$found" ] && [ $left -gt 0 ]; do
    for disk in /sys/block/*; do
        wwid= sectors=
        for file in "$disk/device/wwid" "$disk/wwid"; do
            [ -e "$file" ] && read -r wwid < "$file"
        done
        read -r sectors < "$disk/size"
        [ "$wwid" = {shlex.quote(place.wwid)} ] && [ "$sectors" = {place.sectors} ] && found="$found ${{disk##*/}}"
    done
    left=$((left - 1))
    [ -n "$found" ] || sleep 1
done
set -- $found
if [ $# = 1 ] && [ -b "/dev/$1" ]; then
    echo "storqual: the dump goes to $1"
    timeout {_DUMP_S} makedumpfile -F -l -d 31 /proc/vmcore |
        head -c {place.size} | dd of="/dev/$1" bs=1M seek={place.first // MIB} conv=notrunc,fsync
else
    echo "storqual: $# drives answer to {place.wwid}, no dump is written"
fi
sync
echo "storqual: the crash kernel ends"
reboot -f
"""


def pack(files: Mapping[str, bytes]) -> bytes:
    """An archive of programs by absolute path, as a kernel unpacks it into its first file system."""
    folders: dict[str, None] = {}
    for path in files:
        parts = path.strip("/").split("/")[:-1]
        folders.update(dict.fromkeys("/".join(parts[: count + 1]) for count in range(len(parts))))
    return compose([*map(new_folder, folders), *(new_program(path.strip("/"), data) for path, data in files.items())])


_PROGRAMS = ("busybox", makedumpfile.PROGRAM)
_PLACES = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
_KEPT = ("console=", "earlycon", "nokaslr", "mitigations=", "tsc=", "iommu=", "intel_iommu=", "amd_iommu=", "pci=")
"""Words of the running kernel's command line without which its machine may not start at all."""
_ADDED = ("nr_cpus=1", "irqpoll", "reset_devices", "panic=10")
_PLAIN_WWID = re.compile(r"[A-Za-z0-9._-]+")
_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)$")
_TOLD_S = 1.5
"""Time for what was told last to leave the bench before its kernel panics."""
_PANIC = "Kernel panic - not syncing"


def panic_with_dump(aim: Aim, tell: Tell) -> None:
    """Load the crash kernel, then panic. Raises ToolError when it comes back from that."""
    machine = aim.machine
    if not machine.number("/sys/kernel/kexec_crash_size"):
        raise ToolError("no memory is reserved for a crash kernel: the kernel's command line has no crashkernel=")
    place = dump_place(aim)
    modules = _modules(aim)
    files = {"/init": make_script(place, [(path, options) for path, options, _ in modules]).encode()}
    files.update((path, data) for path, _, data in modules)
    files.update(_programs(aim))
    release = machine.text("/proc/sys/kernel/osrelease")
    words = [word for word in machine.text("/proc/cmdline").split() if word.startswith(_KEPT)]
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "files"
        archive.write_bytes(pack(files))
        load_crash_kernel(machine.path(f"/boot/vmlinuz-{release}"), str(archive), " ".join([*words, *_ADDED]))
    if machine.text("/sys/kernel/kexec_crash_loaded") != "1":
        raise ToolError("the kernel took a crash kernel and shows none")
    tell("armed", f"a crash kernel with {', '.join(Path(path).name for path, _, _ in modules)} is loaded")
    Path(machine.path("/dev/kmsg")).write_text(f"{_line(aim)} {boot_id()}\n", encoding="ascii")
    time.sleep(_TOLD_S)
    write_attribute(machine.path("/proc/sysrq-trigger"), "c")
    raise ToolError("the kernel was told to panic and did not")


def find_dump(aim: Aim, tell: Tell) -> None:
    """Read the dump back, and tell what it names. Raises ToolError when there is none of this trial's panic."""
    place = dump_place(aim)
    descriptor = os.open(aim.machine.path(aim.drive.node), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # on disk: a dump may be large
            dump = Path(folder) / "dump"
            size = makedumpfile.unflatten(lambda at, length: _read(descriptor, place, at, length), dump)
            log = makedumpfile.read_kernel_log(aim.runner, dump)
    finally:
        os.close(descriptor)
    named, panic = find_panic(log, _line(aim))
    tell("dumped", f"a dump of {size} bytes on drive {aim.drive.id}: {named}: {panic}")


def find_panic(log: str, line: str) -> tuple[str, str]:
    """The line of this trial in a kernel log and the panic behind it. Raises ToolError."""
    lines = iter(log.splitlines())
    named = next((text for text in lines if line in text), "")
    panic = next((text for text in lines if _PANIC in text), "")
    if not named or not panic:
        raise ToolError(f"the dump that lies there names {'no panic' if named else 'another boot'}")
    return named[named.index(line) :].strip(), panic[panic.index(_PANIC) :].strip()


def dump_place(aim: Aim) -> DumpPlace:
    """Where the dump may lie. Raises ToolError when the drive cannot be known for certain, or has no room."""
    machine, drive = aim.machine, aim.drive
    wwids = {disk.name: _wwid(aim, disk.name) for disk in read_drives(machine)}
    wwid = wwids.get(drive.name, "")
    if not _PLAIN_WWID.fullmatch(wwid) or list(wwids.values()).count(wwid) != 1:
        raise ToolError(f"a crash kernel cannot know drive {drive.id} for certain by its wwid {wwid!r}")
    begin, length = aim.spare
    first = -(-begin // MIB) * MIB
    size = (begin + length - first) // MIB * MIB
    if size <= 0:
        raise ToolError(
            f"drive {drive.id} has {length} bytes beside the load that may be written, too few for a dump"
        )
    return DumpPlace(wwid, machine.number(f"/sys/block/{drive.name}/size") or 0, first, size)


def _wwid(aim: Aim, name: str) -> str:
    places = (f"/sys/block/{name}/wwid", f"/sys/block/{name}/device/wwid")
    return next((wwid for wwid in (aim.machine.text(place).strip() for place in places) if wwid), "")


def _line(aim: Aim) -> str:
    return f"storqual: trial {aim.tag} panics on boot"


def _read(descriptor: int, place: DumpPlace, at: int, length: int) -> bytes:
    if at + length > place.size:
        raise ToolError(f"the dump is not whole: it goes on behind its {place.size} bytes")
    return os.pread(descriptor, length, place.first + at)


def _modules(aim: Aim) -> list[tuple[str, str, bytes]]:
    """What the drive is reached through, as (path, options, content), each behind what it needs itself.

    First the drivers of watchdogs: they stop what the kernel that panicked had armed, before it ends the dump.
    """
    machine = aim.machine
    modules: dict[str, str] = {}
    watchdogs: dict[str, str] = {}
    for watchdog in read_watchdogs(machine):
        name = machine.target(f"/sys/class/watchdog/{watchdog['name']}/device/driver/module")
        watchdogs.update(_needed(aim, name) if name else {})
    for place in (f"/sys/bus/pci/devices/{aim.drive.adapter}", f"/sys/block/{aim.drive.name}"):
        parts = machine.real(place).split("/")
        for count in range(3, len(parts) + 1):
            name = machine.target(f"{'/'.join(parts[:count])}/driver/module")
            modules.update(_needed(aim, name) if name else {})
    if not modules:
        raise ToolError(f"no module drives drive {aim.drive.id}: a crash kernel would not reach it")
    every = {**watchdogs, **modules}
    return [(path[: path.rindex(".ko") + 3], options, _content(aim, path)) for path, options in every.items()]


def _needed(aim: Aim, module: str) -> dict[str, str]:
    done = aim.runner(["modprobe", "--show-depends", module]).expect()
    lines = [line.split(None, 2) for line in done.stdout.splitlines()]
    return {words[1]: "".join(words[2:]).strip() for words in lines if words[:1] == ["insmod"]}


def _content(aim: Aim, path: str) -> bytes:
    data = Path(aim.machine.path(path)).read_bytes()
    return data if path.endswith(".ko") else unpack(data)


def _programs(aim: Aim) -> dict[str, bytes]:
    """The programs of the script and the libraries that they need; programs lie in /bin there."""
    files: dict[str, bytes] = {}
    for name in _PROGRAMS:
        path = next((f"{place}/{name}" for place in _PLACES if aim.machine.exists(f"{place}/{name}")), "")
        if not path:
            raise ToolError(f"{name} is not installed")
        files[f"/bin/{name}"] = Path(aim.machine.path(path)).read_bytes()
        for line in aim.runner(["ldd", path]).expect().stdout.splitlines():
            library = _LIBRARY.search(line.strip())
            if library:
                files[library.group(1)] = Path(aim.machine.path(library.group(1))).read_bytes()
    return files
