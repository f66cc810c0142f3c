# SPDX-License-Identifier: Apache-2.0
"""Synthetic benches for unit tests: a `/sys`, `/proc` and `/dev` in a folder, with sparse files for disks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storqual_core.guard.claims import Claim
from storqual_core.kit.machine import Machine, Node

MIB = 1 << 20
SIZE = 20 * MIB
STATE = "/var/lib/storqual"


def vpd_page(number: int, payload: bytes) -> bytes:
    return bytes((0, number)) + len(payload).to_bytes(2, "big") + payload


def designator(kind: int, value: bytes, *, association: int = 0, code: int = 1) -> bytes:
    """One designator of VPD page 0x83."""
    return bytes((code, association << 4 | kind, 0, len(value))) + value


class FixtureMachine(Machine):
    """A machine whose device nodes are plain files, known as nodes by a table."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.nodes: dict[str, Node] = {}
        self.taken: dict[str, str] = {}
        self.loops: dict[str, Node] = {}
        self.file_device = Node("file", 254, 1)
        self.meanwhile: list[Callable[[], object]] = []

    def _follow(self, path: str) -> str:
        """Where a path of the machine leads; the links of `/proc/*/fd` are absolute."""
        for _ in range(8):
            link = self.link(path)
            if not link:
                break
            path = link if link.startswith("/") else os.path.normpath(os.path.join(os.path.dirname(path), link))  # noqa: PTH118, PTH120
        return path

    def node(self, path: str) -> Node | None:
        """As the table says; everything else lies on the fixture's root disk, wherever the fixture itself is."""
        place = self._follow(path)
        if place in self.nodes:
            return self.nodes[place]
        found = super().node(place)
        return (
            None if found is None else Node(found.kind, self.file_device.major, self.file_device.minor, found.inode)
        )

    def loop_source(self, path: str) -> Node | None:
        """As the table says; without an entry the kernel does not tell."""
        return self.loops.get(path)

    def clock(self) -> float:
        return 0.0

    def wait(self, seconds: float) -> None:
        """What happens meanwhile, and no time."""
        del seconds
        for happen in self.meanwhile:
            happen()

    def busy(self, path: str) -> str:
        return self.taken.get(path, "")

    def opened(self, descriptor: int) -> str:
        path = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a link of /proc, not of the tree
        return self.nodes[path.removeprefix(os.path.realpath(self.root))].number


@dataclass
class BenchTree:
    """Builds the tree piece by piece; every method adds one thing and returns the tree."""

    root: Path
    machine: FixtureMachine = field(init=False)
    _minor: int = 0
    _process: int = 100
    _spaces: int = 0

    def __post_init__(self) -> None:
        self.machine = FixtureMachine(self.root)
        self.write("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
        self.write("/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
        for process in ("self", "1"):
            self.write(f"/proc/{process}/mountinfo", "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n")
            self._link(f"/proc/{process}/ns/mnt", "mnt:[1]")
        (self.root / STATE.lstrip("/")).mkdir(parents=True)
        (self.root / "sys/class/block").mkdir(parents=True)
        (self.root / "sys/block").mkdir(parents=True)
        (self.root / "dev").mkdir()
        self.disk("vda", "/sys/devices/pci0000:00/0000:00:01.0/virtio0", number="254:0", size=MIB)
        self.write("/sys/block/vda/serial", "root-disk")
        self.partition("vda", 1, device="254:1")

    def write(self, path: str, content: str | bytes) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode("latin-1") if isinstance(content, str) else content)

    def _link(self, path: str, target: str) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def link(self, path: str, target: str) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.root / target.lstrip("/"), place.parent))

    def node(self, name: str, kind: str, number: str, sysfs: str, size: int = 0) -> None:
        """A device node with its entry under `/sys/dev`; a disk's is a sparse file of its size."""
        path = f"/dev/{name}"
        self.write(path, b"")
        os.truncate(self.root / path.lstrip("/"), size)
        major, minor = number.split(":")
        self.machine.nodes[path] = Node(kind, int(major), int(minor))
        self.link(f"/sys/dev/{kind}/{number}", sysfs)

    def disk(self, name: str, device: str, *, number: str = "", size: int = SIZE, real: bool = True) -> str:
        if not number:
            self._minor += 16
            number = f"8:{self._minor}"
        place = f"{device}/block/{name}" if real else f"/sys/devices/virtual/block/{name}"
        self.write(f"{place}/dev", number + "\n")
        self.write(f"{place}/size", f"{size // 512}\n")
        self.write(f"{place}/ro", "0\n")
        self.write(f"{place}/stat", " ".join(["0"] * 17) + "\n")
        for folder in ("slaves", "holders"):
            (self.root / place.lstrip("/") / folder).mkdir(exist_ok=True)
        if real:
            self.link(f"{place}/device", device)
        self.link(f"/sys/block/{name}", place)
        self.link(f"/sys/class/block/{name}", place)
        self.node(name, "block", number, place, size)
        return place

    def adapter(
        self, pci: str = "0000:00:05.0", *, driver: str = "sym53c8xx", pci_class: str = "0x010000", **attributes: str
    ) -> BenchTree:
        place = f"/sys/devices/pci0000:00/{pci}"
        texts = {"vendor": "0x1000", "device": "0x0012", "subsystem_vendor": "0x1000", "subsystem_device": "0x1000"}
        texts.update(attributes, **{"class": pci_class, "irq": "11", "numa_node": "-1"})
        for name, text in texts.items():
            self.write(f"{place}/{name}", text + "\n")
        self.link(f"/sys/bus/pci/devices/{pci}", place)
        self.write(f"/sys/module/{driver}/srcversion", "ABCDEF0123456789\n")
        self.write(f"/sys/module/{driver}/version", "2.2.3\n")
        if not (self.root / f"sys/bus/pci/drivers/{driver}").exists():
            self.link(f"/sys/bus/pci/drivers/{driver}/module", f"/sys/module/{driver}")
        self.link(f"{place}/driver", f"/sys/bus/pci/drivers/{driver}")
        return self

    def debug_host(self, name: str = "adapter0") -> BenchTree:
        """A host of scsi_debug, which rests on no PCI function."""
        place = f"/sys/devices/pseudo_0/{name}"
        (self.root / place.lstrip("/")).mkdir(parents=True)
        self.link(f"/sys/bus/pseudo/devices/{name}", place)
        self.write("/sys/module/scsi_debug/version", "0191\n")
        self.link("/sys/bus/pseudo/drivers/scsi_debug/module", "/sys/module/scsi_debug")
        self.link(f"{place}/driver", "/sys/bus/pseudo/drivers/scsi_debug")
        return self

    def scsi(
        self,
        name: str,
        *,
        pci: str = "0000:00:05.0",
        above: str = "",
        hctl: str = "",
        device_name: str = "",
        wwn: str = "0x5000c50000000001",
        serial: str = "SER1",
        vendor: str = "SEAGATE",
        model: str = "ST336607LW",
        size: int = SIZE,
        device: str = "",
    ) -> BenchTree:
        """A SCSI disk with its sg and bsg nodes; `above` is what it hangs on in place of a PCI function.

        `device_name` is the WWN of the target device, which all LUNs of one device tell; `device` is the whole place.
        """
        hctl = hctl or f"2:0:{self._minor // 16}:0"
        above = above or f"pci0000:00/{pci}"
        device = device or f"/sys/devices/{above}/host{hctl.split(':')[0]}/target{hctl.rsplit(':', 1)[0]}/{hctl}"
        texts = {
            "vendor": f"{vendor:8}",
            "model": f"{model:16}",
            "rev": "0007",
            "scsi_level": "6",
            "state": "running",
        }
        for attribute, text in texts.items():
            self.write(f"{device}/{attribute}", text + "\n")
        if wwn:
            names = designator(3, bytes.fromhex(wwn[2:]))
            names += designator(3, bytes.fromhex(device_name[2:]), association=2) if device_name else b""
            self.write(f"{device}/vpd_pg83", vpd_page(0x83, names))
            self.write(f"{device}/wwid", f"naa.{wwn[2:]}\n")
        if serial:
            self.write(f"{device}/vpd_pg80", vpd_page(0x80, serial.encode("latin-1")))
        self.disk(name, device, size=size)
        minor = self._minor // 16 - 1
        for folder, node, major in (("scsi_generic", f"sg{minor}", 21), ("bsg", hctl, 240)):
            place = f"{device}/{folder}/{node}"
            (self.root / place.lstrip("/")).mkdir(parents=True)
            self.node(node if folder == "scsi_generic" else f"bsg/{node}", "char", f"{major}:{minor}", place)
        return self

    def nvme(
        self, name: str = "nvme0n1", *, pci: str = "0000:00:09.0", wwid: str = "eui.0011223344556677"
    ) -> BenchTree:
        """An NVMe namespace with its generic node, and its controller where that is not there yet."""
        controller, minor = name.rpartition("n")[0], self._spaces
        self._spaces += 1
        device = f"/sys/devices/pci0000:00/{pci}/nvme/{controller}"
        for attribute, text in {"serial": "NVME1", "model": "QEMU NVMe Ctrl", "firmware_rev": "7.2"}.items():
            self.write(f"{device}/{attribute}", f"{text:20}\n")
        place = self.disk(name, device, number=f"259:{minor}")
        # a namespace lies beside its controller's attributes, not in a folder named block
        shutil.move(self.root / place.lstrip("/"), self.root / device.lstrip("/") / name)
        (self.root / device.lstrip("/") / "block").rmdir()
        moved = f"{device}/{name}"
        for link in (
            f"/sys/block/{name}",
            f"/sys/class/block/{name}",
            f"/sys/dev/block/259:{minor}",
            f"{moved}/device",
        ):
            (self.root / link.lstrip("/")).unlink()
            self.link(link, device if link.endswith("/device") else moved)
        self.write(f"{moved}/wwid", wwid + "\n")
        generic = "ng" + name.removeprefix("nvme")
        (self.root / device.lstrip("/") / generic).mkdir()
        self.node(generic, "char", f"241:{minor}", f"{device}/{generic}")
        if f"/dev/{controller}" not in self.machine.nodes:
            self.node(controller, "char", f"242:{minor}", device)
        return self

    def partition(self, disk: str, number: int, *, size: int = MIB, device: str = "", start: int = 0) -> BenchTree:
        name = f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"
        parent = self.machine.real(f"/sys/class/block/{disk}")
        major, minor = self.machine.text(f"{parent}/dev").split(":")
        place = f"{parent}/{name}"
        device = device or f"{major}:{int(minor) + number}"
        self.write(f"{place}/partition", f"{number}\n")
        self.write(f"{place}/dev", device + "\n")
        self.write(f"{place}/size", f"{size // 512}\n")
        self.write(f"{place}/start", f"{start // 512}\n")
        (self.root / place.lstrip("/") / "holders").mkdir()
        self.link(f"/sys/class/block/{name}", place)
        self.node(name, "block", device, place)
        return self

    def stacked(
        self, name: str, on: Sequence[str], *, title: str = "", uuid: str = "", level: str = "raid1"
    ) -> BenchTree:
        """A device-mapper device or md array made of others."""
        self._minor += 16
        place = self.disk(name, "", number=f"252:{self._minor}", real=False)
        if name.startswith("dm-"):
            self.write(f"{place}/dm/name", (title or name) + "\n")
            self.write(f"{place}/dm/uuid", uuid + "\n")
        elif name.startswith("md"):
            self.write(f"{place}/md/level", level + "\n")
        for lower in on:
            self.link(f"{place}/slaves/{lower}", self.machine.real(f"/sys/class/block/{lower}"))
            self.link(f"{self.machine.real(f'/sys/class/block/{lower}')}/holders/{name}", place)
        return self

    def loop(self, name: str, backing: str) -> BenchTree:
        """A loop device that reads a file or a device."""
        self._minor += 16
        place = self.disk(name, "", number=f"7:{self._minor}", real=False)
        self.write(f"{place}/loop/backing_file", backing + "\n")
        return self

    def mount(
        self, number: str, point: str, kind: str = "ext4", source: str = "/dev/x", *, namespace: str = ""
    ) -> BenchTree:
        """A mounted file system, in the machine's own mount namespace or in another process' one."""
        line = f"40 1 {number} / {point} rw,relatime shared:1 - {kind} {source} rw\n"
        processes = [namespace] if namespace else ["self", "1"]
        for process in processes:
            path = self.root / f"proc/{process}/mountinfo"
            if not path.exists():
                self.write(f"/proc/{process}/mountinfo", "")
                self._link(f"/proc/{process}/ns/mnt", f"mnt:[{process}]")
                self.write(f"/proc/{process}/comm", "containerd\n")
            path.write_text(path.read_text() + line)
        return self

    def swap(self, path: str) -> BenchTree:
        place = self.root / "proc/swaps"
        place.write_text(place.read_text() + f"{path} partition 1024 0 -2\n")
        return self

    def opened(
        self, path: str, *, flags: str = "0100002", comm: str = "qemu-system-x86", task: str = "", more: str = ""
    ) -> BenchTree:
        """A program that has a node open, or its thread `task`; `more` are lines of the descriptor's fdinfo."""
        self._process += 1
        place = f"/proc/{self._process}" + (f"/task/{task}" if task else "")
        self._link(f"{place}/fd/7", path)
        self.write(f"{place}/fdinfo/7", f"pos:\t0\nflags:\t{flags}\n{more}")
        self.write(f"/proc/{self._process}/comm", comm + "\n")
        return self

    def mapped(self, path: str, *, kinds: str = "rw-s", task: str = "", comm: str = "mapper") -> BenchTree:
        """A program that has a node mapped; with `task` one whose first thread has ended."""
        self._process += 1
        place = f"/proc/{self._process}"
        line = f"7f49-7f4a {kinds} 00000000 00:06 94                         {path}\n"
        self.write(f"{place}/task/{task}/maps" if task else f"{place}/maps", line)
        if not task:
            self._link(f"{place}/map_files/7f49-7f4a", path)
        self.write(f"{place}/comm", comm + "\n")
        return self

    def fill(self, name: str, offset: int, data: bytes) -> BenchTree:
        """Put data on a disk; a negative offset counts from its end."""
        with (self.root / "dev" / name).open("r+b") as stream:
            stream.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
            stream.write(data)
        return self


def claim(**changes: object) -> Claim:
    """The claim on the drive that `BenchTree.scsi` makes by default."""
    fields = {
        "id": "0x5000c50000000001",
        "wwn": "0x5000c50000000001",
        "serial": "SER1",
        "vendor": "SEAGATE",
        "model": "ST336607LW",
        "size": SIZE,
    }
    fields.update(changes)  # type: ignore[arg-type]
    if "wwn" in changes and "id" not in changes:
        fields["id"] = changes["wwn"] or fields["serial"]
    return Claim(**fields)  # type: ignore[arg-type]
