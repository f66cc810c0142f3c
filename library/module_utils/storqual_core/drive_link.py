# SPDX-License-Identifier: Apache-2.0
"""The link between an adapter and a drive as the SAS transport shows it: the adapter's port, the rate, the width.

Only the SAS transport layer tells ports apart; behind other drivers the port is not known, and None says so. Rates
are the kernel's own texts, such as `12.0 Gbit`.
"""

from __future__ import annotations

import re
from typing import Any

from .machine import Machine

__all__ = ["read_link", "read_phys"]

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
