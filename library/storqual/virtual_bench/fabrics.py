# SPDX-License-Identifier: Apache-2.0
"""Fabrics of a virtual bench: FC over Ethernet, iSCSI and NVMe over TCP, targets and initiators in one kernel.

Each drive is a LUN over a disk of QEMU's, so it is limited and broken as other drives are. The commands that set a
fabric up are handed over at power-on and run at every boot, whatever kernel that is.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from storqual.inputs.inventory import Adapter
    from storqual.virtual_bench.description import BenchDescription, EmulatedAdapter

FABRICS: Mapping[str, str] = {"fc": "fcoe", "iscsi": "iscsi_tcp", "nvme_tcp": "nvme_tcp"}
"""What the inventory calls each among the devices that QEMU emulates, and the driver of its initiator."""
_SETUP = Path(__file__).parent / "recipe" / "fabrics"
_COMPANY = "6001405"
"""How a WWN begins that the kernel's SCSI target makes; the hexadecimal digits of the serial follow."""
_WWN_DIGITS = 32
_UUID = re.compile(r"uuid\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def served_wwn(serial: str) -> str:
    """The WWN of a LUN with that serial."""
    digits = _COMPANY + "".join(letter for letter in serial.lower() if letter in "0123456789abcdef")
    return f"0x{digits[:_WWN_DIGITS]:0<{_WWN_DIGITS}}"


def refuse_unservable(alias: str, fabric: str, adapter: Adapter, complain: Callable[[str, str], None]) -> None:
    """Tell `complain` what the kernel's targets cannot make of a declared adapter."""
    where, driver = f"storqual_adapters.{alias}", FABRICS[fabric]
    if adapter.pseudo != driver or adapter.pci is not None:
        complain(where, f"expected `pseudo: {driver}` and no `pci`: a fabric of a virtual bench has no card")
    for index, drive in enumerate(adapter.drives):
        at = f"{where}.drives[{index}]"
        if fabric == "nvme_tcp":
            if not _UUID.fullmatch(drive.wwn or ""):
                complain(f"{at}.wwn", f"expected uuid. and a UUID, which its target is given, found {drive.wwn!r}")
        elif drive.wwn != (wwn := served_wwn(drive.serial or "")):
            complain(f"{at}.wwn", f"a target makes {wwn} of the serial {drive.serial!r}, found {drive.wwn!r}")
        for key in ("serial", "model"):
            if not getattr(drive, key):
                complain(f"{at}.{key}", "is missing: its target has to be given one")
        if drive.paths:
            complain(f"{at}.paths", "a drive of a fabric has one path on this bench")
        if drive.virtual and (drive.virtual.service_time or drive.virtual.fua):
            complain(f"{at}.virtual", "a drive of a fabric takes `iops`, `bandwidth` and `block`")


def setup(description: BenchDescription) -> str:
    """The commands that set the fabrics of a bench up; empty when it has none."""
    fabrics = [adapter for adapter in description.adapters if adapter.device in FABRICS]
    if not fabrics:
        return ""
    lines = [line for adapter in fabrics for line in _commands(adapter)]
    return _SETUP.read_text(encoding="utf-8") + "\n".join([*lines, "end", ""])


def _commands(adapter: EmulatedAdapter) -> Iterator[str]:
    """All drives of all ports before any port: what is served is complete before somebody asks for it."""
    for drive in adapter.drives:
        function = f"0000:00:{adapter.slot:02x}.{adapter.function + drive.channel}"
        texts = (drive.serial, drive.vendor or "LIO-ORG", drive.model, drive.revision or "0001", drive.wwn)
        yield shlex.join(
            [f"{adapter.device}_drive", str(drive.channel), drive.device, function, str(drive.target), *texts]
        )
    for port in sorted({drive.channel for drive in adapter.drives}):
        yield f"{adapter.device}_port {port}"
