# SPDX-License-Identifier: Apache-2.0
"""A bench whose driver builds come from files, a package manager and DKMS; one that boots as GRUB says."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storqual_core.kit.command import Completed
from storqual_core.provision.boot import System
from storqual_core.provision.initramfs import builds_in, module_build
from tests.support.adapter_bench import KERNEL, AdapterBench
from tests.support.cpio_archive import archive
from tests.support.fake_boot import FakeBench

PCI, WWN = "0000:00:05.0", "0x5000c50015ea0000"
MAGIC = f"{KERNEL} SMP preempt mod_unload modversions"
PLACE = f"/lib/modules/{KERNEL}/updates/storqual/hba.ko"


class BuildBench(AdapterBench):
    """A bench whose modules come from files, a package manager and DKMS; a build is named by its text."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, modules={"hba": {}})
        self.native = "AAAA"
        self.packages: dict[str, str] = {}
        self.state = "ii "
        self.dkms_builds = ""
        self.tree.write(f"/lib/modules/{KERNEL}/build/Makefile", "")
        self.adapter(PCI, "hba")
        self.tree.write("/sys/module/hba/version", "2.0\n")
        self.drive("sda", PCI, 0, WWN)

    @property
    def on_disk(self) -> str:
        """The build that modprobe would load: updates come first."""
        place = self.root / PLACE.lstrip("/")
        return place.read_text().split()[0] if place.exists() else self.dkms_builds or self.native

    def described(self, file: Path) -> list[str]:
        return file.read_text().split("|")

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        line = " ".join(argv)
        stdout, rc = "", 0
        if any(line.startswith(start) for start in self.broken):
            return Completed(tuple(argv), 1, "", "it broke\n", 0.0)
        if argv[0] == "modinfo" and argv[1] != "-k":
            build, name, magic, *signer = self.described(self.root / argv[1])
            stdout = f"filename: {argv[1]}\nname: {name}\nsrcversion: {build}\nversion: 2.0\nvermagic: {magic}\n"
            stdout += f"signer: {signer[0]}\n" if signer else ""
        elif argv[0] == "modinfo":
            build = self.on_disk.split("|")[0]
            stdout = f"filename: /lib/hba.ko\nname: hba\nsrcversion: {build}\nversion: 2.0\nvermagic: {MAGIC}\n"
        elif argv[0] == "dpkg-deb":
            stdout = "hba-dkms\t2.0-1"
        elif argv[0] == "dpkg-query":
            stdout, rc = (f"hba-dkms\t{self.packages['hba-dkms']}\t{self.state}\n", 0) if self.packages else ("", 1)
        elif argv[0] == "dpkg" and "-i" in argv:
            self.packages["hba-dkms"], self.dkms_builds = "2.0-1", "DDDD"
        elif argv[:2] == ["dpkg", "--purge"]:
            self.packages.clear()
            self.dkms_builds = ""
        elif line == "dkms status":
            stdout = f"hba/2.0, {KERNEL}, x86_64: installed\n" if self.dkms_builds else ""
        elif argv[0] == "depmod":
            pass
        else:
            ended = super().__call__(argv, **options)
            if argv[0] == "modprobe" and argv[1] != "-r":
                self.tree.write("/sys/module/hba/srcversion", self.on_disk.split("|")[0] + "\n")
                self.tree.write("/sys/module/hba/version", "2.0\n")
            return ended
        self.seen.append(line)
        return Completed(tuple(argv), rc, stdout, "", 0.0)


def module_file(build: str, version: str = "2.0", magic: str = MAGIC) -> bytes:
    """A module file that says what it is, as the kernel's own tools and an initramfs are read."""
    return f"\x7fELF\0srcversion={build}\0version={version}\0vermagic={magic}\0".encode()


class TrialBench(BuildBench):
    """Its initramfs carries the driver, so that what is loaded is what the initramfs of the boot had."""

    def __init__(self, root: Path) -> None:
        self.grub = FakeBench(root, [KERNEL], KERNEL)
        self.script_builds = True
        self.built = module_file("DDDD")
        super().__init__(root)
        self.tree.write("/proc/cmdline", "root=/dev/vda\n")
        self.native_image = self.image({"hba.ko": module_file("AAAA")})
        (root / f"boot/initrd.img-{KERNEL}").write_bytes(self.native_image)

    @staticmethod
    def image(modules: dict[str, bytes]) -> bytes:
        folder = f"usr/lib/modules/{KERNEL}"
        files = {f"{folder}/kernel/{name}": content for name, content in modules.items()}
        return archive({"conf/modules": b"ext4\n", f"{folder}/modules.builtin": b"kernel/crc.ko\n", **files})

    @property
    def system(self) -> System:
        """What boots, on the same files."""
        return System(self, f"{self.root}/boot", f"{self.root}/proc", f"{self.root}/sys", release=KERNEL)

    @property
    def on_disk(self) -> str:
        place = self.root / PLACE.lstrip("/")
        return module_build(place.read_bytes()).srcversion if place.exists() else self.dkms_builds or self.native

    def described(self, file: Path) -> list[str]:
        build = module_build(file.read_bytes())
        return [build.srcversion, "hba", build.vermagic]

    @property
    def loaded(self) -> str:
        return self.machine.text("/sys/module/hba/srcversion")

    def reboot(self) -> None:
        """Boot what GRUB would; the driver comes from the initramfs of that boot, else from the disk."""
        self.grub.reboot()
        image = next(
            (
                word.partition("=")[2]
                for word in self.machine.text("/proc/cmdline").split()
                if word.startswith("storqual.initramfs=")
            ),
            f"initrd.img-{KERNEL}",
        )
        carried = builds_in(f"{self.root}/boot/{image}", ["hba"])["hba"]
        self.tree.write("/sys/module/hba/srcversion", (carried.srcversion if carried else self.on_disk) + "\n")

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        """GRUB's commands are GRUB's, and a build of DKMS is a file that is installed or not."""
        words = " ".join(argv[:2])
        if argv[0].startswith("grub-") or argv[0] == "sync":
            return self.grub(argv, **options)
        if words in ("dkms build", "dkms install", "dkms uninstall"):
            assert list(argv[2:8]) == ["-m", "hba-lab", "-v", "2.0", "-k", KERNEL]
            return self._dkms(argv)
        if words == "dpkg-query -L":
            return Completed(tuple(argv), 0, "/usr/src/hba-lab-2.0/dkms.conf\n", "", 0.0)
        if words == "dkms status":
            state = "installed" if self.dkms_builds else "built"
            listed = f"hba-lab/2.0, {KERNEL}, x86_64: {state}\n" if self.packages else ""
            return Completed(tuple(argv), 0, listed, "", 0.0)
        ended = super().__call__(argv, **options)
        if "-i" in argv and ended.rc == 0:
            self.tree.write("/usr/src/hba-lab-2.0/dkms.conf", 'PACKAGE_NAME="hba-lab"\nPACKAGE_VERSION="2.0" # x\n')
            if self.script_builds:
                self._dkms(["dkms", "build"])
                # as vendors' packages do
                (self.root / f"boot/initrd.img-{KERNEL}").write_bytes(self.image({"hba.ko": module_file("DDDD")}))
            else:
                self.dkms_builds = ""
        elif words == "dpkg --purge":
            shutil.rmtree(self.root / "var/lib/dkms", ignore_errors=True)
        return ended

    def _dkms(self, argv: Sequence[str]) -> Completed:
        self.seen.append(" ".join(argv))
        if argv[1] == "build":
            place = self.root / f"var/lib/dkms/hba-lab/2.0/{KERNEL}/x86_64/module/hba.ko"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self.built)
        else:
            self.dkms_builds = "DDDD" if argv[1] == "install" else ""
        return Completed(tuple(argv), 0, "", "", 0.0)
