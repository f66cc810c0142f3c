# SPDX-License-Identifier: Apache-2.0
"""Fabrics of a virtual bench: FC over Ethernet, iSCSI and NVMe over TCP, targets and initiators in one kernel.

Each drive is a LUN over a disk of QEMU's, so it is limited and broken as other drives are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from storqual.inputs.inventory import Adapter

FABRICS: Mapping[str, str] = {"fc": "fcoe", "iscsi": "iscsi_tcp", "nvme_tcp": "nvme_tcp"}
"""What the inventory calls each among the devices that QEMU emulates, and the driver of its initiator."""
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
