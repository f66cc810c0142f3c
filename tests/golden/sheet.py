# SPDX-License-Identifier: Apache-2.0
"""The sheet of one fixed bench: claimed, kept, missing, failing and unnamed drives, drift, a last result."""

import re
from typing import Any

from storqual.history.past_runs import LastResult
from storqual.inputs.lab import inventory_from_hostvars
from storqual.report.sheet import make_sheet, render_sheet
from tests.golden import FOLDER

SHEET = "bench01.sheet.html"


def _drive(name: str, number: int, adapter: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"0x5000c5000000000{number}",
        "name": name,
        "node": f"/dev/{name}",
        "wwn": f"0x5000c5000000000{number}",
        "serial": f"SER000{number}",
        "vendor": "EXAMPLE",
        "model": "DISK9",
        "revision": "0007",
        "size": 73407865856,
        "adapter": adapter,
        "hctl": f"2:0:{number}:0",
        "transport": "scsi",
        "system": "",
        "state": "running",
        "cache": "write back",
        "queue": {"queue_depth": "32", "scheduler": "[none] mq-deadline"},
        **more,
    }


FACTS: dict[str, Any] = {
    "schema": "storqual.facts/1",
    "machine": {
        "sys_vendor": "Example Inc.",
        "product_name": "Rack 1U",
        "product_serial": "EX-1",
        "bios_vendor": "Example",
        "bios_version": "2.7",
        "bios_date": "01/22/2026",
    },
    "cpu": {"model": "Example CPU 9", "online": 16},
    "kernel": {"release": "6.1.0-47-amd64"},
    "watchdogs": [{"name": "watchdog0", "identity": "iTCO_wdt", "hardware": True, "timeout_s": 30, "armed": False}],
    "os": {"name": "Debian GNU/Linux 12"},
    "kind": {
        name: {"value": value, "evidence": "seen"}
        for name, value in {
            "packages": "dpkg",
            "loader": "grub",
            "loader_folder": "/boot/grub",
            "initramfs": "initramfs-tools",
            "secure_boot": "off",
            "lockdown": "",
            "immutable": "no",
            "kdump": "loaded",
        }.items()
    },
    "volumes": [],
    "adapters": [
        {
            "pci": "0000:3b:00.0",
            "slot": "PCIe Slot 2",
            "serial": "HBA0001",
            "subsystem": "1000:30e0",
            "board": "Example SAS",
            "driver": "mpt3sas",
            "module": {"name": "mpt3sas", "version": "43.100", "srcversion": "AB"},
            "firmware": "16.00.01.00",
            "versions": {"firmware": "16.00.01.00", "bios": "8.37"},
            "link": {"speed": "5.0 GT/s", "width": 4, "speed_max": "8.0 GT/s", "width_max": 8},
            "numa_node": 1,
        }
    ],
    "hidden_drives": [
        {
            "node": "/dev/bus/0",
            "kind": "megaraid,8",
            "vendor": "",
            "model": "Example 500",
            "serial": "HID0001",
            "firmware": "A1",
            "wwn": "",
            "size": 500107862016,
            "health": {"passed": True, "hours": 99},
        }
    ],
    "drives": [
        _drive("sda", 1, "0000:3b:00.0", position="252:0", health={"passed": True, "hours": 1234}),
        _drive("sdb", 2, "0000:3b:00.0", cache="write through", health={"passed": False, "hours": 65592}),
        _drive("sdd", 4, "0000:00:17.0", system="carries / and storqual's spool", model="<b>DISK</b>"),
    ],
}


def bench_of(facts: dict[str, Any] = FACTS) -> Any:
    """The bench as its inventory declares it: two drives that are there, one that is not."""
    drives = [
        {"wwn": drive["wwn"], "serial": drive["serial"], "vendor": "EXAMPLE", "model": "DISK9", "size": drive["size"]}
        for drive in facts["drives"][:2]
    ]
    drives[0] |= {"position": "shelf 1, bay 0", "claim": True}
    gone = {"wwn": "0x5000c50000000003", "serial": "SER0003", "model": "DISK9", "size": 1 << 20, "claim": True}
    adapter = {
        "model": "Example SAS HBA",
        "driver": "mpt3sas",
        "pci": "0000:3b:00.0",
        "slot": "2",
        "drives": [*drives, gone],
    }
    hosts = {
        "bench01": {
            "storqual_kind": "hardware",
            "storqual_reference": "0x5000c50000000001",
            "storqual_adapters": {"sas0": adapter},
        }
    }
    return inventory_from_hostvars(hosts).benches["bench01"]


LAST = LastResult(
    run="20261121T101500Z-adapter-4f2a",
    finished="2026-11-21T11:02:00.000Z",
    suite="adapter",
    baseline="driver_in_field",
    candidate="driver_candidate",
    outcome="FAIL",
    outcomes=(("FAIL", 1), ("PASS", 11)),
    reference=(("iops@sas0/rand_read[bs=4k,drives=1,iodepth=1]", "FAIL", -6.25),),
)


def sheet_html() -> str:
    """The sheet without its style sheet."""
    sheet = make_sheet(
        bench_of(),
        FACTS,
        made="2026-11-21 12:00 UTC",
        drop="driver_in_field",
        drift=("0x5000c50000000001 drive.WCE: 1, declared 0",),
        last=LAST,
    )
    return re.sub(r"<style>.*?</style>", "<style></style>", render_sheet(sheet), flags=re.DOTALL)


def accept_sheet() -> None:
    (FOLDER / SHEET).write_text(sheet_html(), encoding="utf-8")
    (FOLDER / f"{SHEET}.got").unlink(missing_ok=True)
