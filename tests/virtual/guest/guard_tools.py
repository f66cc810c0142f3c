# SPDX-License-Identifier: Apache-2.0
"""Hands for the guard's live test, inside a bench: make a state on real block devices, undo it whatever happens."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from storqual_core.host.sysfs import SysfsDrive, read_drives
from storqual_core.kit.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storqual_core.guard.claims import Claim

MIB = 1 << 20
MOUNT = "/mnt/storqual-guard"
FIO_OFFSET = 16384
# nothing of the bench may react to what a state does: udev is stopped while they run
LVM = ["--config", "activation{udev_sync=0 udev_rules=0} devices{obtain_device_list_from_udev=0}"]
CLONE_NEWNS = 0x00020000


def run(*argv: str, check: bool = True, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool in the C locale."""
    ended = subprocess.run(
        argv,
        input=text if text is not None else "",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "LC_ALL": "C", "DM_DISABLE_UDEV": "1"},
    )
    if check and ended.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with {ended.returncode}: {(ended.stderr or ended.stdout)[-400:]}")
    return ended


def put(path: str, text: str) -> None:
    """Write a line to a file of sysfs or configfs."""
    Path(path).write_text(text + "\n")


def poke(node: str, *pieces: tuple[int, bytes]) -> None:
    """Write bytes to places of a device; a negative place counts from its end. One open: each close is an event."""
    descriptor = os.open(node, os.O_RDWR)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        for offset, data in pieces:
            os.pwrite(descriptor, data, offset if offset >= 0 else end + offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def empty(node: str) -> None:
    """Zero the first and the last 9 MiB of a device."""
    poke(node, *((place * MIB, bytes(MIB)) for place in (*range(9), *range(-9, 0))))


def peek(node: str) -> bytes:
    """The 4 KiB at which bare fio writes, read past every cache; nothing where the device cannot be read."""
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return b""
    try:
        buffer = mmap.mmap(-1, 4096)
        os.preadv(descriptor, [buffer], FIO_OFFSET)
        return bytes(buffer)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


class CannotMakeError(Exception):
    """This kernel or image has no means to make a state: the state is left out, told with this reason."""


def loaded(module: str, *options: str) -> None:
    """Load a module of the kernel. Raises CannotMakeError where this kernel was built without it."""
    ended = run("modprobe", module, *options, check=False)
    if ended.returncode and f"Module {module} not found" in ended.stderr:
        raise CannotMakeError(f"the kernel {os.uname().release} has no module {module}")
    if ended.returncode:
        raise RuntimeError(f"modprobe {module} ended with {ended.returncode}: {ended.stderr[-400:]}")


def wait_for(there: Callable[[], bool], what: str, limit_s: float = 20) -> None:
    """Wait until something is there. Raises RuntimeError."""
    until = time.monotonic() + limit_s
    while not there():
        if time.monotonic() > until:
            raise RuntimeError(f"{what} did not come within {limit_s:g} s")
        time.sleep(0.1)


def stilled(process: int) -> bool:
    """Whether all threads of a program are stopped, so that no write of it is under way."""
    places = Path(f"/proc/{process}/task").glob("*/stat")
    return all(place.read_text().rpartition(")")[2].split()[0] in "TZ" for place in places)


def sent_by(process: int) -> int:
    """Sectors that a program has sent to drives itself, as the kernel accounts them to it."""
    lines = Path(f"/proc/{process}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("write_bytes:"))) // 512


def sectors() -> dict[str, int]:
    """Sectors written so far, of every disk."""
    return {
        name: int(Path(f"/sys/block/{name}/stat").read_text().split()[6])
        for name in os.listdir("/sys/block")  # noqa: PTH208 - names only
        if not name.startswith(("loop", "ram", "sr", "fd"))
    }


def unsettled(*argv: str) -> tuple[str, ...]:
    """The command of a tool that would wait for udev: its queue stands still while a state suspends a device."""
    folder = Path("/root/trial/no_udev")
    folder.mkdir(exist_ok=True)
    stand_in = folder / "udevadm"
    stand_in.write_text("#!/bin/sh\n", encoding="ascii")
    stand_in.chmod(0o755)
    return ("env", f"PATH={folder}:{os.environ['PATH']}", *argv)


@dataclass
class Bench:
    """Three claimed drives of one adapter and an NVMe drive, as claims and as the kernel has them now.

    `writers` are programs that write on their own as part of a state: process number and kernel name of the drive.
    """

    claims: Mapping[str, Claim]
    drives: Mapping[str, SysfsDrive]
    undo: list[Callable[[], object]] = field(default_factory=list)
    writers: dict[int, str] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def node(self, letter: str = "a") -> str:
        """The node of a drive by its letter in the test (`a`, `b`, `c`, `n`, `s`)."""
        return self.drives[letter].node

    def name(self, letter: str = "a") -> str:
        return self.drives[letter].name

    def claim(self, letter: str = "a", **changes: object) -> Claim:
        """Its claim, or a wrong one."""
        return replace(self.claims[letter], **changes)  # type: ignore[arg-type]

    def later(self, *argv: str) -> None:
        """Run this when the state is over, last one first; it may fail."""
        self.undo.append(lambda: run(*argv, check=False))

    def poke(self, offset: int, data: bytes, letter: str = "a") -> None:
        """Write bytes to a drive that is cleaned afterwards."""
        self.touched.add(letter)
        poke(self.node(letter), (offset, data))

    def made(self, *argv: str, letter: str = "a") -> None:
        """Run a tool that puts something on a drive; the drive is cleaned afterwards."""
        self.touched.add(letter)
        run(*argv)

    def mount(self, node: str, *options: str, at: str = MOUNT) -> None:
        Path(at).mkdir(parents=True, exist_ok=True)
        run("mount", *options, node, at)
        self.later("umount", at)
        run("sync")

    def sectors(self) -> dict[str, int]:
        """Sectors written so far, of every disk, less those that the state's own writers sent."""
        for process in self.writers:
            os.kill(process, signal.SIGSTOP)
        try:
            for process in self.writers:
                wait_for(lambda process=process: stilled(process), "the end of a write")  # type: ignore[misc]
            written = sectors()
            for process, name in self.writers.items():
                written[name] -= sent_by(process)
        finally:
            for process in self.writers:
                os.kill(process, signal.SIGCONT)
        return written

    def clean(self) -> None:
        """Undo everything, then zero both ends of each drive that was touched."""
        while self.undo:
            self.undo.pop()()
        for letter in sorted(self.touched):
            empty(self.node(letter))
        self.touched.clear()


def bench_of(claims: Sequence[Claim], nvme: Sequence[Claim]) -> Bench:
    """The first three claims of an adapter, the first NVMe claim, and as `s` its sibling, which nobody claims."""
    chosen = dict(zip("abc", claims, strict=False))
    if nvme:
        chosen["n"] = nvme[0]
    here = read_drives(Machine())
    found = {}
    for letter, claim in chosen.items():
        key = claim.wwn or claim.serial
        found[letter] = next(drive for drive in here if key in (drive.identity.wwn, drive.identity.serial))
    for drive in here if nvme else ():
        if drive.adapter == found["n"].adapter and drive != found["n"]:
            found["s"] = drive
    return Bench(chosen, found)


def debug_drive() -> SysfsDrive:
    return next(drive for drive in read_drives(Machine()) if drive.identity.model == "scsi_debug")


def debug_claim(bench: Bench) -> list[Claim]:
    """A claim on it that is right in all it says."""
    said = debug_drive().identity
    texts = {name: getattr(said, name) for name in ("wwn", "serial", "vendor", "model", "size")}
    return [bench.claim(id=said.wwn or said.serial, **texts)]


def in_another_namespace(argv: Sequence[str], bench: Bench) -> None:
    """Mount in a mount namespace of its own, kept by a child that sleeps until the state is over."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS):
            os._exit(1)
        run("mount", "--make-rprivate", "/")
        run(*argv)
        os.write(tell, b"x")
        time.sleep(600)
        os._exit(0)
    os.close(tell)
    if os.read(ready, 1) != b"x":
        raise RuntimeError("the child could not mount in a namespace of its own")
    os.close(ready)
    bench.undo.append(lambda: (os.kill(child, 9), os.waitpid(child, 0)))


def kept_open(node: str, flags: int, bench: Bench) -> None:
    """Another program has the node open until the state is over."""
    code = f"import os,sys,time; os.open({node!r}, {flags}); print('open', flush=True); time.sleep(600)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    if holder.stdout.readline().strip() != b"open":
        raise RuntimeError(f"{node} could not be opened by another program")
    bench.undo.append(lambda: (holder.kill(), holder.wait()))


def private_node(bench: Bench) -> str:
    """Another node of drive a, for being removed while it is in use."""
    node = "/run/sqprivate"
    os.mknod(node, 0o60600, os.stat(bench.node()).st_rdev)  # noqa: PTH116 - as os.mknod
    bench.undo.append(lambda: Path(node).unlink(missing_ok=True))
    return node


def partition_table(size: int) -> bytes:
    """An MBR with one Linux partition from 1 MiB on."""
    entry = b"\x00\x00\x02\x00\x83\x00\x00\x00" + (2048).to_bytes(4, "little") + (65536).to_bytes(4, "little")
    return (bytes(440) + b"\x11\x22\x33\x44\x00\x00" + entry + bytes(48) + b"\x55\xaa")[:size]


def with_partition(bench: Bench, letter: str = "a") -> str:
    """A drive with one partition that the kernel knows; its node."""
    bench.poke(0, partition_table(512), letter)
    bench.later("blockdev", "--rereadpt", bench.node(letter))
    # the table is gone when the kernel reads it again
    bench.undo.append(lambda: poke(bench.node(letter), (0, bytes(512))))
    run("blockdev", "--rereadpt", bench.node(letter))
    name = bench.name(letter)
    return f"/dev/{name}p1" if name[-1].isdigit() else f"/dev/{name}1"


def gpt(bench: Bench) -> None:
    """A GUID partition table without its protective MBR: header and one entry, with both checksums."""
    import binascii  # noqa: PLC0415
    import struct  # noqa: PLC0415
    import uuid  # noqa: PLC0415

    last = bench.claims["a"].size // 512 - 1
    linux = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4").bytes_le
    entry = linux + uuid.uuid4().bytes_le + struct.pack("<QQQ", 2048, last - 34, 0) + bytes(72)
    entries = entry.ljust(128 * 128, b"\0")
    head = struct.pack(
        "<8sIIIIQQQQ16sQIII",
        b"EFI PART", 0x10000, 92, 0, 0, 1, last, 34, last - 34, uuid.uuid4().bytes_le, 2, 128, 128,
        binascii.crc32(entries),
    )  # fmt: skip
    head = head[:16] + struct.pack("<I", binascii.crc32(head)) + head[20:]
    bench.poke(512, head.ljust(512, b"\0") + entries)


def zfs(bench: Bench) -> None:
    """Uberblocks in both front labels, as a pool member has them."""
    uberblock = (0x00BAB10C).to_bytes(8, "little") + (5000).to_bytes(8, "little")
    for label in (0, 256 << 10):
        bench.poke(label + (128 << 10), uberblock.ljust(1024, b"\0") * 8)


def mapped(bench: Bench, title: str, table: str, uuid: str = "") -> str:
    """A device-mapper device; its node."""
    run("dmsetup", "create", "--noudevsync", "--noudevrules", *(["--uuid", uuid] if uuid else []), title, text=table)
    bench.later("dmsetup", "remove", "--noudevsync", "--noudevrules", "--retry", title)
    return f"/dev/mapper/{title}"


def linear(bench: Bench, letter: str = "a", length: int = 131072) -> str:
    """The table of a linear device over the start of a drive."""
    return f"0 {length} linear {bench.node(letter)} 0"


def volume_group(bench: Bench, *, active: bool) -> str:
    """A volume group with one logical volume on drive a; the volume's node."""
    bench.touched.add("a")
    run("pvcreate", *LVM, "-ff", "-y", bench.node())
    run("vgcreate", *LVM, "sqguard", bench.node())
    run("lvcreate", *LVM, "-y", "-Wn", "-Zn", "-L", "64M", "-n", "data", "sqguard")
    if active:
        bench.later("vgchange", *LVM, "-an", "sqguard")
    else:
        run("vgchange", *LVM, "-an", "sqguard")
    return "/dev/mapper/sqguard-data"


def array(bench: Bench, *, stopped: bool, metadata: str = "1.2") -> str:
    """A mirror over drives a and b; its node."""
    bench.touched |= {"a", "b"}
    node = "/dev/md77"
    run("mdadm", "--create", node, "--run", "--force", "--level=1", "--raid-devices=2", "--assume-clean",
        f"--metadata={metadata}", "--homehost=any", bench.node("a"), bench.node("b"))  # fmt: skip
    if stopped:
        run("mdadm", "--stop", node)
    else:
        bench.later("mdadm", "--stop", node)
    return node
