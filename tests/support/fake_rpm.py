# SPDX-License-Identifier: Apache-2.0
"""A bench of the RPM kind, made of files: its package database, dnf, and what a kernel package's scripts do."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storqual_core.kit.command import Completed
from tests.support.cpio_archive import archive
from tests.support.fake_bls import BlsBench


def label(name: str, release: str) -> str:
    """As rpm calls a package of a kernel's release, `5.14.0-70.el9.x86_64`."""
    return f"{name}-{release}"


class RpmBench(BlsBench):
    """Each kernel is two packages. `broken_script` names a script that fails, which dnf does not mind.

    With `promotes` a package becomes the default whatever the settings say. `also` are lines that dnf plans beside
    what it is asked for, `holder` the process that has its lock; `checked` is what `rpm -K` says of a file's
    signature, `scripts` what `rpm --scripts` does; `repository` are packages that dnf can fetch.
    `in_image` are the modules in a new initramfs, `listing` what lsinitrd says of it.
    """

    broken_script = ""
    promotes = False
    also = ""
    holder = ""
    checked = "Header V4 RSA/SHA256 Signature, key ID db42a60e: OK"
    scripts = ""
    repository: tuple[str, ...] = ()
    in_image: tuple[str, ...] = ("mpt3sas",)
    listing = ""

    def __post_init__(self) -> None:
        self.rpms = {label(name, kernel) for kernel in self.kernels for name in ("kernel-core", "kernel-modules")}
        self.lines: list[str] = []
        super().__post_init__()
        for kernel in self.kernels:
            self._modules(kernel)
        self._root_drive()
        etc = self.folder / "etc" / "sysconfig"
        etc.mkdir(parents=True)
        program = self.folder / "usr" / "bin" / "rpm"
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
        (etc / "kernel").write_text("# settings of new kernels\nUPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-core\n")

    def _root_drive(self) -> None:
        """`/` is on sda, behind an adapter that mpt3sas drives."""
        root = self.folder
        (root / "proc" / "self").mkdir(parents=True)
        (root / "proc" / "self" / "mountinfo").write_text("22 1 8:0 / / rw - ext4 /dev/sda rw\n")
        pci = root / "sys" / "devices" / "pci0000:00" / "0000:00:10.0"
        drive = pci / "host0" / "target0:0:0" / "0:0:0:0" / "block" / "sda"
        module, driver = root / "sys" / "module" / "mpt3sas", root / "sys" / "bus" / "pci" / "drivers" / "mpt3sas"
        for folder in (drive, module, driver):
            folder.mkdir(parents=True)
        (pci / "class").write_text("0x010700\n")
        (drive / "dev").write_text("8:0\n")
        for place, target in {
            "sys/block/sda": drive,
            "sys/class/block/sda": drive,
            "sys/dev/block/8:0": drive,
            "sys/bus/pci/devices/0000:00:10.0": pci,
        }.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).symlink_to(os.path.relpath(target, (root / place).parent))
        (drive / "device").symlink_to("../..")
        (pci / "driver").symlink_to("../../../bus/pci/drivers/mpt3sas")
        (driver / "module").symlink_to("../../../../module/mpt3sas")

    def _modules(self, kernel: str) -> None:
        place = self.folder / "lib" / "modules" / kernel
        place.mkdir(parents=True, exist_ok=True)
        (place / "modules.dep").write_text("")

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        tool, *words = argv
        if tool == "lsinitrd":
            return Completed(tuple(argv), 0 if self.listing else 1, self.listing, "", 0.0)
        if tool not in ("rpm", "dnf"):
            return super().__call__(argv, **options)
        self.seen.append(" ".join(argv))
        rest = words[words.index("--") + 1 :] if "--" in words else []
        out, rc = "", 0
        if tool == "dnf":
            out, rc = self._front_end(words)
        elif "-f" in words:
            kernel = next((kernel for kernel in self.kernels if kernel in rest[0]), "")
            core = label("kernel-core", kernel)
            out = self._row(core) if core in self.rpms else f"file {rest[0]} is not owned by any package\n"
        elif "-p" in words or "-K" in words:
            out = self._of_files(words, rest)
        elif "--whatprovides" in words:
            # it looks for names, of which one with a version is none
            unknown = [f"no package provides {word}\n" for word in words[-1:] if " = " in word]
            out = "".join(
                unknown or (self._row(each) for each in sorted(self.rpms) if each.startswith("kernel-core-"))
            )
        elif "--requires" in words:
            out = f"kernel-core-uname-r = {rest[0].split('-', 1)[1]}.{os.uname().machine}\n"
        elif "-ql" in words:
            out = "".join(self._files(name) for name in self._named(rest[0]))
        elif "-e" in words:
            for name in rest:
                self._erase(name)
        elif "-q" in words:
            for name in sorted(self.rpms) if "-a" in words else rest:
                found = self._named(name)
                rc += not found
                out += "".join(map(self._row, found)) or f"package {name} is not installed\n"
        return Completed(tuple(argv), rc, out, "", 0.0)

    def _named(self, name: str) -> list[str]:
        return sorted(each for each in self.rpms if name in (each, each.rpartition(".")[0], _split(each)[0]))

    def _row(self, name: str, installed: str = "1700000000") -> str:
        package, version, release, machine = _split(name)
        return f"{package}\t0\t{version}\t{release}\t{machine}\t{installed}\n"

    def _files(self, name: str) -> str:
        package, version, release, machine = _split(name)
        kernel = f"{version}-{release}.{machine}"
        if package == "kernel":
            return "(contains no files)\n"
        file = "vmlinuz" if package == "kernel-core" else "kernel/drivers/a.ko"
        return f"/lib/modules/{kernel}/{file}\n"

    def _of_files(self, words: Sequence[str], files: Sequence[str]) -> str:
        if "-K" in words:
            return "".join(f"{file}:\n    {self.checked}\n    Payload SHA256 digest: OK\n" for file in files)
        if "--scripts" in words:
            return self.scripts
        names = [Path(file).name.removesuffix(".rpm") for file in files]
        return "".join(self._files(name) if "-l" in words else self._row(name, "(none)") for name in names)

    def _front_end(self, words: Sequence[str]) -> tuple[str, int]:
        what = words[words.index("install") + 1 :]
        if "--assumeno" in words:
            return self._planned(what), 1
        return (self._fetched(words) if "--downloadonly" in words else self._dnf(what)), 0

    def _planned(self, files: Sequence[str]) -> str:
        if self.holder:
            return f"Existing lock /var/run/dnf.pid: another copy is running as pid {self.holder}.\n"
        wanted = files[0]
        if not wanted.endswith(".rpm"):
            files = self._offered(wanted)
        if not files:
            return f"No match for argument: {wanted}\nError: Unable to find a match: {wanted}\n"
        names = [_split(Path(file).name.removesuffix(".rpm")) for file in files]
        rows = [
            f" {name} {machine} {version}-{release} @commandline 1 M\n" for name, version, release, machine in names
        ]
        return f"Dependencies resolved.\nInstalling:\n{''.join(rows)}{self.also}\nOperation aborted.\n"

    def _fetched(self, words: Sequence[str]) -> str:
        folder = next(Path(word.partition("=")[2]) for word in words if word.startswith("--destdir="))
        for name in self._offered(words[-1]):
            (folder / f"{name}.rpm").write_text("a package")
        return "Complete!\n"

    def _offered(self, name: str) -> list[str]:
        """What the repositories have of a package, with what it needs of its own release."""
        releases = {_split(each)[1:] for each in self.repository if name in (each, each.rpartition(".")[0])}
        return [each for each in self.repository if _split(each)[1:] in releases]

    def _dnf(self, files: Sequence[str]) -> str:
        self.rpms |= {Path(file).name.removesuffix(".rpm") for file in files}
        for file in files:
            package, version, release, machine = _split(Path(file).name.removesuffix(".rpm"))
            kernel = f"{version}-{release}.{machine}"
            if package != "kernel-core":
                continue
            self.kernels.append(kernel)
            self._modules(kernel)
            boot = self.folder / "boot"
            (boot / f"vmlinuz-{kernel}").write_text("")
            (boot / "do_purge_kernels").write_text("")
            if (boot / "vmlinuz").is_symlink():
                # as SUSE's scripts, which leave it so
                (boot / "vmlinuz").unlink()
                (boot / "vmlinuz").symlink_to(f"vmlinuz-{kernel}")
            # kernel-install takes the command line of what runs
            running = (self.folder / "proc" / "cmdline").read_text().strip()
            self.write_entry(f"{self.prefix}-{kernel}", kernel, options=running)
            if self.promotes or "UPDATEDEFAULT=yes" in (self.folder / "etc" / "sysconfig" / "kernel").read_text():
                self.variables["saved_entry"] = f"{self.prefix}-{kernel}"
            if self.broken_script != "dracut":
                (boot / f"initramfs-{kernel}.img").write_bytes(
                    archive({f"lib/{name}.ko": b"" for name in self.in_image})
                )
        return "Complete!\n"

    def _erase(self, name: str) -> None:
        self.rpms.discard(name)
        package, version, release, machine = _split(name)
        kernel = f"{version}-{release}.{machine}"
        if package == "kernel-core" and kernel in self.kernels:
            self.kernels.remove(kernel)
            boot = self.folder / "boot"
            gone = [boot / f"vmlinuz-{kernel}", boot / "loader" / "entries" / f"{self.prefix}-{kernel}.conf"]
            for path in gone:
                path.unlink(missing_ok=True)


def _split(name: str) -> tuple[str, str, str, str]:
    rest, _, machine = name.rpartition(".")
    package, version, release = rest.rsplit("-", 2)
    return package, version, release, machine
