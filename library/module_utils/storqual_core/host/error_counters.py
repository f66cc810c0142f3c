# SPDX-License-Identifier: Apache-2.0
"""Error counters that the kernel keeps of a drive and of its SAS link: a number that is perfect may hide retries.

`ioerr_cnt` counts commands that ended with any status but good, `iotmo_cnt` commands that timed out (SCSI layer);
the others count events on the adapter's or expander's phys (SAS transport). Counters start at boot and only grow.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from ..kit.machine import Machine

_PORT = re.compile(r"/port-\d+(?::\d+)+(?=/)")


def read_phys(machine: Machine, name: str) -> list[str]:
    """The folders of the phys that a drive is linked through, on adapter or last expander; none without SAS."""
    place = machine.link(f"/sys/block/{name}")
    ports = list(_PORT.finditer(place))
    if not ports:
        return []
    # the link's text is relative to /sys/block; the last port of the path is the one the drive itself is on
    folder = "/sys/" + place[: ports[-1].end()].replace("../", "")
    return [f"{folder}/{phy}/sas_phy/{phy}" for phy in machine.names(folder) if phy.startswith("phy-")]


def read_link(machine: Machine, name: str) -> dict[str, Any]:
    """`port` (number on the adapter), `rate`, `rate_max` (of the adapter's or expander's phys) and `width` in phys.

    A wide port whose phys run at different rates shows all of them; what is not shown is empty or None.
    """
    port = _PORT.search(machine.link(f"/sys/block/{name}"))
    phys = read_phys(machine, name)
    return {
        "port": int(port.group(0).split(":")[1]) if port else None,
        "rate": _texts(machine, phys, "negotiated_linkrate"),
        "rate_max": _texts(machine, phys, "maximum_linkrate"),
        "width": len(phys) or None,
    }


def _texts(machine: Machine, phys: list[str], name: str) -> str:
    found = {machine.text(f"{phy}/{name}") for phy in phys}
    return ", ".join(sorted(text for text in found if text))


_SCSI = ("ioerr_cnt", "iotmo_cnt")
_PHY = (
    "invalid_dword_count",
    "running_disparity_error_count",
    "loss_of_dword_sync_count",
    "phy_reset_problem_count",
)
WORDS: Mapping[str, str] = {
    "ioerr_cnt": "commands that ended with an error",
    "iotmo_cnt": "commands that timed out",
    "invalid_dword_count": "invalid dwords on the link",
    "running_disparity_error_count": "running disparity errors on the link",
    "loss_of_dword_sync_count": "losses of dword synchronisation",
    "phy_reset_problem_count": "failed resets of the phy",
}
"""What each counter counts, in words."""


def hexadecimal(text: str) -> int | None:
    """A counter of the SCSI layer, which shows them as `0x1f`; None for what is no number."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def read_error_counters(machine: Machine, name: str) -> dict[str, int]:
    """The counters of the drive with this kernel name, a wide port's added up; what is not kept is left out."""
    found = {}
    for counter in _SCSI:
        value = hexadecimal(machine.text(f"/sys/block/{name}/device/{counter}"))
        if value is not None:
            found[counter] = value
    phys = read_phys(machine, name)
    for counter in _PHY:
        values = [value for value in (machine.number(f"{phy}/{counter}") for phy in phys) if value is not None]
        if values:
            found[counter] = sum(values)
    return found
