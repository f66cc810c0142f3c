# SPDX-License-Identifier: Apache-2.0
"""A bench with adapters in a folder: PCI functions, drivers that can be unbound and loaded, drives behind them."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual_core.kit.command import Completed
from storqual_core.kit.machine import Machine
from tests.support.bench_tree import BenchTree

KERNEL = "6.1.0-1-amd64"


@dataclass
class AdapterBench:
    """Modules with parameters (None: the module does not show it) and the depth that its drives get from one."""

    root: Path
    tree: BenchTree = field(init=False)
    modules: dict[str, dict[str, str | None]] = field(default_factory=dict)
    given: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    broken: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.tree = BenchTree(self.root)
        self.tree.write("/proc/cmdline", "root=/dev/vda1\n")
        self.tree.write("/proc/sys/kernel/osrelease", KERNEL + "\n")

    @property
    def machine(self) -> Machine:
        return self.tree.machine

    def adapter(self, pci: str, driver: str, **ids: str) -> None:
        self.tree.adapter(pci, driver=driver, **ids)
        folder = f"/sys/bus/pci/drivers/{driver}"
        for name in ("bind", "unbind"):
            self.tree.write(f"{folder}/{name}", "")
        self.tree.link(f"{folder}/{pci}", f"/sys/devices/pci0000:00/{pci}")
        self.load(driver)

    def load(self, module: str) -> None:
        place = f"/sys/module/{module}"
        for name, text in {"initstate": "live", "refcnt": "0", "srcversion": "AAAA"}.items():
            self.tree.write(f"{place}/{name}", text + "\n")
        for name, shown in self.modules.get(module, {}).items():
            if shown is not None:
                self.tree.write(f"{place}/parameters/{name}", self.given.get(module, {}).get(name, shown) + "\n")
        if (self.root / f"sys/bus/pci/drivers/{module}").exists():
            link = f"{place}/drivers/pci:{module}"
            if not (self.root / link.lstrip("/")).exists():
                self.tree.link(link, f"/sys/bus/pci/drivers/{module}")

    def drive(self, name: str, pci: str, target: int, wwn: str) -> None:
        """A SCSI drive behind an adapter that takes no tagged commands."""
        self.tree.scsi(name, pci=pci, hctl=f"0:0:{target}:0", wwn=wwn, serial=wwn[-6:])
        self.set_queue(name, 16, "none")

    def set_queue(self, name: str, depth: int, kind: str) -> None:
        device = self.machine.real(f"/sys/block/{name}/device")
        self.tree.write(f"{device}/queue_depth", f"{depth}\n")
        self.tree.write(f"{device}/queue_type", f"{kind}\n")

    def modprobe_file(self) -> str | None:
        place = self.root / "etc/modprobe.d/zz-storqual.conf"
        return place.read_text() if place.exists() else None

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        line = " ".join(argv)
        self.seen.append(line)
        if any(line.startswith(start) for start in self.broken):
            return Completed(tuple(argv), 1, "", "it broke\n", 0.0)
        stdout, stderr, rc = "", "", 0
        if argv[0] == "modprobe" and argv[1] == "--showconfig":
            stdout = "alias a b\n" + (self.modprobe_file() or "")
            for word in self.machine.text("/proc/cmdline").split():
                module, dot, pair = word.partition(".")
                stdout += f"options {module} {pair}\n" if dot and "=" in pair else ""
        elif argv[:2] == ["modprobe", "-r"]:
            shutil.rmtree(self.root / f"sys/module/{argv[2]}")
        elif argv[0] == "modprobe":
            own = [
                row.split()[2:]
                for row in (self.modprobe_file() or "").splitlines()
                if row.startswith(f"options {argv[1]} ")
            ]
            words = [*(own[0] if own else []), *argv[2:]]
            self.given[argv[1]] = dict(word.split("=", 1) for word in words)
            self.load(argv[1])
        elif argv[0] == "modinfo":
            for name in argv[3:]:
                if name in self.modules:
                    stdout += f"filename: /lib/modules/{name}.ko\nname: {name}\nsrcversion: AAAA\n"
                    stdout += "".join(f"parm: {each}:what it does (int)\n" for each in self.modules[name])
                else:
                    stderr += f"modinfo: ERROR: Module {name} not found.\n"
            rc = 1 if stderr else 0
        else:
            raise AssertionError(line)
        return Completed(tuple(argv), rc, stdout, stderr, 0.0)
