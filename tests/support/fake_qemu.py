# SPDX-License-Identifier: Apache-2.0
"""A virtual bench without QEMU: its description, and a monitor that keeps limits."""

from pathlib import Path
from typing import Any

from storqual.virtual_bench.description import BenchDescription, describe
from storqual.virtual_bench.fabrics import served_wwn
from storqual.virtual_bench.image import BenchImage
from storqual.virtual_bench.qemu import EmulatedMachine

FIRST, SECOND = "0x5000c50015ea0000", "0x5000c50015ea0001"


def bench_of_three_drives() -> BenchDescription:
    """Two SCSI drives with limits, and an NVMe drive without."""
    drives = [
        {"wwn": wwn, "serial": f"S{index}", "size": 2**20, "virtual": {"iops": 200, "bandwidth": "1MiB"}}
        for index, wwn in enumerate((FIRST, SECOND))
    ]
    adapters = {
        "sym": {"pci": "00:05.0", "drives": drives},
        "nvme": {"pci": "00:0a.0", "drives": [{"serial": "N1", "size": 2**20}]},
    }
    return describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a"}, "nvme": {"device": "nvme"}}})


def bench_with_targets_apart() -> BenchDescription:
    """An FC port with a LUN whose target is in a guest of its own."""
    drive = {"wwn": served_wwn("FCA0000001"), "serial": "FCA0000001", "model": "FCLUN", "size": 2**20, "port": 0}
    fc = {"pseudo": "fcoe", "drives": [drive]}
    return describe("vfc", {"fc": fc}, {"adapters": {"fc": {"device": "fc", "targets": "apart"}}})


def emulated_machine(folder: str = "/state", **others: Any) -> EmulatedMachine:
    """A machine whose files are all in a folder, each with the name of its field."""
    names = (
        "overlay variables drives console serial netconsole pstore monitor pidfile host_key authorized_keys host_name"
    )
    image = BenchImage(Path(folder) / "image")
    return EmulatedMachine(image=image, **{name: Path(folder) / name for name in names.split()}, **others)


class FakeQemu:
    """A monitor that keeps limits as QEMU does; `deaf` takes them and forgets."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.limits = {"sym-0": (0, 0), "sym-1": (0, 0), "nvme-0": (0, 0)}
        self.asked: list[str] = []

    async def ask(self, command: str, arguments: Any = None) -> Any:
        self.asked.append(command)
        if command == "query-block":
            disks = [
                {"qdev": f"/machine/peripheral/{name}", "inserted": {"iops": iops, "bps": bps}}
                for name, (iops, bps) in self.limits.items()
            ]
            return [*disks, {"qdev": "cd"}, {"device": "floppy0"}]
        if command == "block_set_io_throttle" and not self.deaf:
            self.limits[arguments["id"]] = (arguments["iops"], arguments["bps"])
        if command == "device_add":
            self.limits[arguments["id"]] = (0, 0)
        return {}

    async def ask_and_await(self, command: str, arguments: Any, event: str, limit_s: float, **match: Any) -> bool:
        """Unplug a drive; the event comes."""
        self.asked.append(command)
        self.limits.pop(arguments["id"])
        return True
