# SPDX-License-Identifier: Apache-2.0
"""A bench of the RPM kind for driver packages, made of files: kernels with modules, depmod, weak-modules, dracut.

What the scripts of a driver package do is as vendors' packages do it: the module is linked into every kernel that
exports its symbols, each kernel's index and initramfs is made anew, when it comes and when it goes.
"""

import gzip
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual_core.kit.archives import read_archive, unpack
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError
from storqual_core.provision.initramfs import builds_in, module_build, module_name
from tests.support.cpio_archive import archive
from tests.support.fake_rpm import RpmBench
from tests.support.module_file import module_bytes, symvers_text

MACHINE = os.uname().machine
OLDER = f"5.14.0-427.13.1.el9_4.{MACHINE}"
RUNS = f"5.14.0-427.20.1.el9_4.{MACHINE}"
NEWER = f"5.14.0-503.11.1.el9_5.{MACHINE}"
CRCS = {"module_layout": 0x1111, "scsi_host_alloc": 0x2222}
NEWER_CRCS = {**CRCS, "scsi_host_alloc": 0x3333}
FLAGS = "SMP preempt mod_unload modversions"
NAME = "mpt3sas"


def module(build: str, release: str, crcs: Mapping[str, int] = CRCS, **fields: str) -> bytes:
    """A module file with what modinfo shows of it."""
    magic = fields.pop("flags", FLAGS)
    values = {"srcversion": build, "version": "47.0", "vermagic": f"{release} {magic}", "name": NAME, **fields}
    info = b"".join(f"{key}={value}\0".encode() for key, value in values.items())
    return module_bytes(crcs, modinfo=b"\0" + info)


def package_bytes(files: Mapping[str, bytes]) -> bytes:
    """A package file: a lead, headers without an entry, and a packed archive."""
    head = b"\x8e\xad\xe8\x01" + bytes(4) + struct.pack(">II", 0, 0)
    names = {f".{path}": content for path, content in files.items()}
    return b"\xed\xab\xee\xdb".ljust(96, b"\0") + head + head + gzip.compress(archive(names), mtime=0)


def package_files(path: Path) -> dict[str, bytes]:
    members, _ = read_archive(unpack(path.read_bytes()[128:]), 0)
    return {member.name[1:]: member.content for member in members}


class KmodBench(RpmBench):
    """Three kernels; RUNS runs, OLDER has the same symbols, NEWER has others.

    `failing_post` is what dnf tells of a script that fails, and does not mind; with `failing_preun` one fails that
    rpm minds. `leaves`: links stay when a package goes.
    """

    failing_post = ""
    failing_preun = False
    leaves = False
    packings = "+XZ +ZLIB +ZSTD"
    in_initramfs = True

    def __post_init__(self) -> None:
        self.serial = 0
        self.packages_there: dict[str, dict[str, bytes]] = {}
        super().__post_init__()
        root = self.folder
        (root / "usr" / "lib" / "depmod.d").mkdir(parents=True)
        (root / "usr" / "lib" / "depmod.d" / "dist.conf").write_text("search updates extra built-in weak-updates\n")
        for kernel in self.kernels:
            self._kernel_files(kernel)
        self.load(RUNS)
        for name in ("state", "proc/sys/kernel"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "proc" / "sys" / "kernel" / "osrelease").write_text(f"{self.running}\n")

    def _kernel_files(self, kernel: str) -> None:
        place = self.folder / "lib" / "modules" / kernel
        own = place / "kernel" / "drivers" / "scsi"
        own.mkdir(parents=True, exist_ok=True)
        crcs = NEWER_CRCS if kernel == NEWER else CRCS
        (own / f"{NAME}.ko").write_bytes(module("AAAA", kernel, crcs))
        (place / "symvers.gz").write_bytes(gzip.compress(symvers_text(crcs).encode()))
        for name in ("weak-updates", "extra"):
            (place / name).mkdir(exist_ok=True)
        # another depmod made it, in other words
        (place / "modules.dep").write_text(f"# as found\nkernel/drivers/scsi/{NAME}.ko:\n")
        self.dracut(kernel)

    @property
    def boot(self) -> Path:
        return self.folder / "boot"

    def places(self, kernel: str) -> dict[str, Path]:
        root = self.folder / "lib" / "modules" / kernel
        return {str(path.relative_to(root)): path for path in sorted(root.rglob("*.ko*"))}

    def chosen(self, kernel: str) -> str:
        """Where the module of a kernel is, by its index."""
        index = self.folder / "lib" / "modules" / kernel / "modules.dep"
        lines = [line.partition(":")[0] for line in index.read_text().splitlines() if not line.startswith("#")]
        return next((line for line in lines if module_name(line) == NAME), "")

    def content(self, kernel: str) -> bytes:
        place = self.folder / "lib" / "modules" / kernel / self.chosen(kernel)
        if place.is_symlink():
            place = self.folder / str(place.readlink()).lstrip("/")
        return place.read_bytes()

    def build(self, kernel: str) -> str:
        """The build that a kernel loads from its disk."""
        return module_build(self.content(kernel)).srcversion

    def depmod(self, kernel: str) -> None:
        lines = [
            line.split()
            for folder in ("etc/depmod.d", "usr/lib/depmod.d")
            for path in sorted((self.folder / folder).glob("*.conf"))
            for line in path.read_text().splitlines()
        ]
        order = next(words[1:] for words in lines if words[0] == "search")
        named = [words[3] for words in lines if words[:2] == ["override", NAME]]

        def rank(place: str) -> tuple[bool, int]:
            top, _, _ = place.partition("/")
            stem = place.partition(".ko")[0]
            at = order.index(top) if top in order else order.index("built-in")
            return f"{NAME}" not in stem or stem not in [f"{folder}/{NAME}" for folder in named], at

        found = sorted(
            (
                place
                for place, path in self.places(kernel).items()
                if (module_name(place) == NAME and path.is_file())
                or (path.is_symlink() and (self.folder / str(path.readlink()).lstrip("/")).exists())
            ),
            key=rank,
        )
        text = "".join(f"{place}:\n" for place in found[:1])
        (self.folder / "lib" / "modules" / kernel / "modules.dep").write_text(text)

    def dracut(self, kernel: str) -> None:
        self.serial += 1
        files = {"serial": str(self.serial).encode(), "conf/modules": b""}
        if self.in_initramfs:
            files[f"usr/lib/modules/{kernel}/{self.chosen(kernel)}"] = self.content(kernel)
        (self.boot / f"initramfs-{kernel}.img").write_bytes(archive(files))

    def weak_modules(self, *, add: bool, place: str, release: str) -> None:
        """Link the module of `release` at `place` (below its folder), or take the links away."""
        target = f"/lib/modules/{release}/{place}"
        inside = place.partition("/")[2]
        touched = [release] if release in self.kernels else []
        needs = CRCS if add else {}
        for kernel in self.kernels:
            link = self.folder / "lib" / "modules" / kernel / "weak-updates" / inside
            fits = all((NEWER_CRCS if kernel == NEWER else CRCS)[name] == crc for name, crc in needs.items())
            if kernel == release or not fits:
                continue
            touched.append(kernel)
            if add:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)
            elif link.is_symlink() and not self.leaves:
                link.unlink()
                if link.parent.name != "weak-updates":
                    link.parent.rmdir()
        for kernel in touched:
            self.depmod(kernel)
        for kernel in touched:
            self.dracut(kernel)

    # programs

    def load(self, kernel: str, build: str = "") -> None:
        folder = self.folder / "sys" / "module" / NAME
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {"srcversion": build or self.build(kernel), "version": "47.0", "initstate": "live"}.items():
            (folder / name).write_text(f"{text}\n")
        (folder / "refcnt").write_text("0\n")
        driver = folder / "drivers" / f"pci:{NAME}"
        bound = self.folder / "sys" / "bus" / "pci" / "drivers" / NAME / "0000:00:10.0"
        if not driver.exists():
            driver.parent.mkdir(exist_ok=True)
            driver.symlink_to(os.path.relpath(bound.parent, driver.parent))
        if not bound.exists():
            bound.symlink_to(os.path.relpath(self.folder / "sys/devices/pci0000:00/0000:00:10.0", bound.parent))

    def reboot(self) -> None:
        """The driver comes from the initramfs of the boot, else from the disk."""
        super().reboot()
        (self.folder / "proc" / "sys" / "kernel" / "osrelease").write_text(f"{self.running}\n")
        words = (self.folder / "proc" / "cmdline").read_text().split()
        ours = [word.partition("=")[2] for word in words if word.startswith("storqual.initramfs=")]
        image = self.boot / (ours[0] if ours else f"initramfs-{self.running}.img")
        carried = builds_in(str(image), [NAME])[NAME]
        self.load(self.running, carried.srcversion if carried else "")

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        tool, *words = argv
        if tool == "modinfo":
            self.seen.append(" ".join(argv))
            return self._modinfo(argv, words)
        if tool == "modprobe" and words == ["--version"]:
            return Completed(tuple(argv), 0, f"kmod version 28\n{self.packings} -EXPERIMENTAL\n", "", 0.0)
        if tool == "modprobe":
            self.seen.append(" ".join(argv))
            if words[0] != "-r":
                self.load(self.running)
            else:
                (self.folder / "sys" / "module" / NAME / "initstate").unlink()
            return Completed(tuple(argv), 0, "", "", 0.0)
        if tool == "depmod":
            self.seen.append(" ".join(argv))
            if words[0] != "-b":
                self.depmod(words[-1])
            return Completed(tuple(argv), 0, "", "", 0.0)
        if tool in ("weak-modules", "mokutil"):
            raise MissingToolError(f"`{tool}` is not installed on this machine")
        if tool == "rpm" and words[0] == "-e" and self.failing_preun and "--noscripts" not in words:
            self.seen.append(" ".join(argv))
            told = "error: %preun(kmod-mpt3sas) scriptlet failed, exit status 1\n"
            return Completed(tuple(argv), 1, "", told, 0.0)
        if tool == "rpm" and "--requires" in words and "-p" in words:
            needs = "kernel(scsi_host_alloc) = 0x2222\nrpmlib(FileDigests) <= 4.6.0-1\n/bin/sh\nkmod >= 20\n"
            return Completed(tuple(argv), 0, needs, "", 0.0)
        return super().__call__(argv, **options)

    def _modinfo(self, argv: Sequence[str], words: Sequence[str]) -> Completed:
        if words[0] == "-k":
            place = f"/lib/modules/{words[1]}/{self.chosen(words[1])}"
            if not self.chosen(words[1]):
                return Completed(tuple(argv), 1, "", f"modinfo: ERROR: Module {NAME} not found.\n", 0.0)
            content = self.content(words[1])
        else:
            place, content = words[0], Path(words[0]).read_bytes()
        text = "".join(f"{key}: {value}\n" for key, value in _fields(content).items())
        return Completed(tuple(argv), 0, f"filename: {place}\n{text}", "", 0.0)

    def _files(self, name: str) -> str:
        return "".join(f"{path}\n" for path in self.packages_there.get(name, ())) or super()._files(name)

    def _front_end(self, words: Sequence[str]) -> tuple[str, int]:
        out, rc = super()._front_end(words)
        drivers = [word for word in words if Path(word).name.startswith("kmod-")]
        if "--assumeno" in words or not drivers:
            return out, rc
        for file in drivers:
            label = Path(file).name.removesuffix(".rpm")
            self.packages_there[label] = package_files(Path(file))
            for path, content in self.packages_there[label].items():
                place = self.folder / _plain(path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            for release, place in self._modules_of(label):
                self.weak_modules(add=True, place=place, release=release)
        return f"{self.failing_post}{out}", rc

    def _modules_of(self, label: str) -> list[tuple[str, str]]:
        places = [_plain(path).split("/", 3) for path in self.packages_there[label] if module_name(path)]
        return [(release, place) for _, _, release, place in places]

    def _erase(self, name: str) -> None:
        if name not in self.packages_there:
            super()._erase(name)
            return
        self.rpms.discard(name)
        modules = self._modules_of(name)
        for path in self.packages_there.pop(name):
            place = self.folder / _plain(path)
            place.unlink(missing_ok=True)
            if place.parent.parent.name == "extra":
                place.parent.rmdir()
        if not self.failing_preun:
            for release, place in modules:
                self.weak_modules(add=False, place=place, release=release)


def _plain(path: str) -> str:
    return path.lstrip("/").replace("usr/lib/modules/", "lib/modules/")


def _fields(content: bytes) -> dict[str, str]:
    text = content[content.index(b"srcversion=") :].split(b"\0\0")[0].split(b"\0")
    pairs = (field.decode("utf-8", "replace").partition("=") for field in text)
    return {key: value for key, equals, value in pairs if equals and key.isidentifier()}
