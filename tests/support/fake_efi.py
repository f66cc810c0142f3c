# SPDX-License-Identifier: Apache-2.0
"""A bench that boots with systemd-boot, made of files: its partition, EFI variables, and bootctl with its habits."""

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storqual_core.kit.command import Completed
from tests.support.fake_boot import FakeBench

_VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


class EfiBench(FakeBench):
    """Kernels in folders of their own on the partition that the loader reads; entries newest first, by file name."""

    @property
    def entries(self) -> Path:
        return self.folder / "boot" / "loader" / "entries"

    def install_kernels(self) -> None:
        """Write kernels, entries, and what the loader left when it started."""
        self.entries.mkdir(parents=True, exist_ok=True)
        for kernel in self.kernels:
            place = self.folder / "boot" / "token" / kernel
            place.mkdir(parents=True, exist_ok=True)
            (place / "linux").write_text("")
            (place / "initrd").write_text("")
            self.write_entry(f"token-{kernel}", kernel)
        (self.folder / "sys" / "firmware" / "efi" / "efivars").mkdir(parents=True, exist_ok=True)
        self.set_efi("LoaderFeatures", (0xFF).to_bytes(8, "little"))
        self.started()

    def write_entry(self, name: str, kernel: str, options: str = "root=/dev/vda quiet") -> None:
        lines = (f"title Linux {kernel}", f"version {kernel}", f"options {options}")
        files = (f"linux /token/{kernel}/linux", f"initrd /token/{kernel}/initrd")
        (self.entries / f"{name}.conf").write_text("\n".join((*lines, *files, "")))

    def efi(self, name: str) -> Path:
        return self.folder / "sys" / "firmware" / "efi" / "efivars" / f"{name}-{_VENDOR}"

    def set_efi(self, name: str, data: bytes) -> None:
        """Write a variable with its attributes; one without data is none."""
        self.efi(name).unlink(missing_ok=True)
        if data:
            self.efi(name).write_bytes(b"\x07\0\0\0" + data)

    def text(self, name: str) -> str:
        """A variable's text, empty without one."""
        return self.efi(name).read_bytes()[4:].decode("utf-16-le").rstrip("\0") if self.efi(name).exists() else ""

    def menu(self) -> list[str]:
        return sorted((path.name for path in self.entries.glob("*.conf")), reverse=True)

    def started(self) -> None:
        self.set_efi("LoaderEntries", "".join(f"{name}\0" for name in self.menu()).encode("utf-16-le"))

    def reboot(self) -> None:
        """Boot what the loader would: the one-shot name is forgotten first, counters go down in the file's name."""
        once, default = self.text("LoaderEntryOneShot"), self.text("LoaderEntryDefault")
        self.set_efi("LoaderEntryOneShot", b"")
        menu = self.menu()
        self.started()
        matching = [name for wanted in (once, default) for name in menu if wanted and fnmatchcase(name, wanted)]
        chosen = (matching or menu)[0]
        lines = (self.entries / chosen).read_text().splitlines()
        keys = dict(line.split(" ", 1) for line in lines)
        if "+" in chosen:
            (self.entries / chosen).rename(self.entries / f"{chosen.partition('+')[0]}+2-1.conf")
        self.boot_id = self.boot_id[:-1] + str(int(self.boot_id[-1]) + 1)
        if "rdinit=/storqual-panic" in keys["options"]:
            self.reboot()
            return
        self.running = keys["linux"].split("/")[-2]
        self.boot_with(keys["options"].split())

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        """`bootctl` as it is: it takes any name, and lists counted entries without their counter."""
        if argv[0] != "bootctl":
            return super().__call__(argv, **options)
        self.seen.append(" ".join(argv))
        stdout = ""
        if argv[1] == "list":
            rows = [
                {"id": f"{name.partition('+')[0].removesuffix('.conf')}.conf", "path": f"{self.entries}/{name}"}
                for name in self.menu()
            ]
            stdout = "".join(json.dumps(row) + "\n" for row in [*rows, {"id": "auto-firmware", "path": None}])
        else:
            variable = {"set-oneshot": "LoaderEntryOneShot", "set-default": "LoaderEntryDefault"}[argv[1]]
            self.set_efi(variable, f"{argv[2]}\0".encode("utf-16-le") if argv[2] else b"")
        return Completed(tuple(argv), 0, stdout, "", 0.0)
