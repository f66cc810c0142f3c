# SPDX-License-Identifier: Apache-2.0
"""Fabrics of a virtual bench: FC over Ethernet, iSCSI and NVMe over TCP, targets and initiators in one kernel.

Targets of FC may be in a guest of their own, apart: then they can lose their power, and come back. Each drive is a
LUN over a disk of QEMU's, so it is limited and broken as other drives are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from storqual.inputs.inventory import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storqual.inputs.inventory import Adapter, Drive

FABRICS: Mapping[str, str] = {"fc": "fcoe", "iscsi": "iscsi_tcp", "nvme_tcp": "nvme_tcp"}
"""What the inventory calls each among the devices that QEMU emulates, and the driver of its initiator."""
INITIATOR, TARGET = "initiator", "target"
"""The ends of a fabric."""
MOST_APART = 6
"""Ports whose far end is in another guest: functions of the slot of its network card, beside it and netconsole's."""
_COMPANY = "6001405"
"""How a WWN begins that the kernel's SCSI target makes; the hexadecimal digits of the serial follow."""
_WWN_DIGITS = 32
_UUID = re.compile(r"uuid\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def served_wwn(serial: str) -> str:
    """The WWN of a LUN with that serial."""
    digits = _COMPANY + "".join(letter for letter in serial.lower() if letter in "0123456789abcdef")
    return f"0x{digits[:_WWN_DIGITS]:0<{_WWN_DIGITS}}"


def _ends(fabric: str, initiator: int, target: int) -> tuple[str, str]:
    """What a path from one port to another is called by an inventory."""
    if fabric == "fc":
        return f"0x200002000000{initiator:02x}01", f"0x200002000000{target:02x}02"
    if fabric == "iscsi":
        return "iqn.2026-11.storqual:initiator", f"10.53.{target}.2:3260"
    return "nqn.2026-11.storqual:initiator", f"10.54.{target}.2:4420"


def routes(fabric: str, drive: Drive, ports: int) -> str:
    """The paths of a drive as the bench sets them up, `INITIATOR-PORT:TARGET-PORT` each; empty for one that is none.

    Every FC port reaches every other where any drive has several paths; other networks have one port at each end.
    """
    if not drive.paths:
        return f"{drive.port}:{drive.port}" if isinstance(drive.port, int) else ""
    pairs = [(port, other) for port in range(ports) for other in range(ports) if fabric == "fc" or port == other]
    known = {_ends(fabric, *pair): f"{pair[0]}:{pair[1]}" for pair in pairs}
    ends = [
        (path.initiator, path.target) if isinstance(path, Route) else ("", "") for path in (drive.port, *drive.paths)
    ]
    return " ".join(known[each] for each in ends) if all(each in known for each in ends) else ""


def refuse_unservable(
    alias: str, fabric: str, adapter: Adapter, channels: int, complain: Callable[[str, str], None]
) -> None:
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
        if not routes(fabric, drive, channels):
            some = " to ".join(_ends(fabric, 0, 0))
            complain(f"{at}.paths", f"expected `port` and `paths` between ports of this bench, such as {some}")
        if drive.virtual and (drive.virtual.service_time or drive.virtual.fua):
            complain(f"{at}.virtual", "a drive of a fabric takes `iops`, `bandwidth` and `block`")


def refuse_apart(
    alias: str, fabric: str, ports: int, served: Sequence[str], complain: Callable[[str, str], None]
) -> None:
    """Tell `complain` what cannot be where the targets of an adapter are in a guest of their own."""
    at = f"storqual_virtual.adapters.{alias}"
    if fabric != "fc":
        complain(f"{at}.targets", f"only targets of fc can be apart, found {fabric}")
    if ports > MOST_APART:
        complain(f"{at}.channels", f"expected at most {MOST_APART} ports to targets that are apart, found {ports}")
    for index, paths in enumerate(served):
        if any(len(set(path.split(":"))) > 1 for path in paths.split()):
            where = f"storqual_adapters.{alias}.drives[{index}].paths"
            complain(where, "each port of a bench whose targets are apart reaches the target port of its own number")
