# SPDX-License-Identifier: Apache-2.0
"""Error counters of a drive and of the SAS phys that it is linked through: a perfect number may hide retries."""

from __future__ import annotations

import re
from pathlib import Path
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
ERROR_WORDS: Mapping[str, str] = {
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


def error_files(machine: Machine, name: str) -> dict[str, list[str]]:
    """The files of the error counters of the drive with this kernel name, and of all phys of a wide port."""
    found = {}
    for counter in _SCSI:
        path = f"/sys/block/{name}/device/{counter}"
        if hexadecimal(machine.text(path)) is not None:
            found[counter] = [machine.path(path)]
    phys = read_phys(machine, name)
    for counter in _PHY:
        kept = [machine.path(f"{phy}/{counter}") for phy in phys if machine.number(f"{phy}/{counter}") is not None]
        if kept:
            found[counter] = kept
    return found


def read_error_counters(machine: Machine, name: str) -> dict[str, int]:
    """The counters of the drive with this kernel name, a wide port's added up; what is not kept is left out."""
    return {
        counter: sum(hexadecimal(Path(path).read_text(encoding="ascii").strip()) or 0 for path in paths)
        for counter, paths in error_files(machine, name).items()
    }
