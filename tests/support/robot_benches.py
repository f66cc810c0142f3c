# SPDX-License-Identifier: Apache-2.0
"""What a bench says of itself, for tests of acceptance: as it should be, and with one thing changed."""

import copy
from typing import Any

from tests.support.synthetic_shape import DRIVERS, drive_id


def fingerprint() -> dict[str, Any]:
    return {"kernel": {"release": "6.1.0-47-amd64"}, "adapters": {alias: _adapter(alias, at) for at, alias in PLACES}}


PLACES = ((5, "sym"), (6, "mpt"))


def _adapter(alias: str, place: int) -> dict[str, Any]:
    return {
        "board": "",
        "firmware": "01.50.146.00" if alias == "mpt" else "",
        "driver": DRIVERS[alias],
        "module": {"name": DRIVERS[alias], "version": "3.04.20", "srcversion": "016480FA0F81FEC28B029AF"},
        "link": {"speed": "8.0 GT/s PCIe", "width": 8, "speed_max": "8.0 GT/s PCIe", "width_max": 8},
        "drives": {
            drive_id(alias, number): {
                "adapter": f"0000:00:{place:02x}.0",
                "link": {"port": number if alias == "mpt" else None, "rate": "3.0 Gbit" if alias == "mpt" else ""},
                "model": "ST336607LW",
                "revision": "0007",
                "cache": "write back",
                "state": "running",
                "queue_depth": "16",
                "write_cache": "write back",
            }
            for number in range(4)
        },
    }


def odd(alias: str, number: int | None = None, **changes: Any) -> dict[str, Any]:
    """The fingerprint with something of an adapter or of one of its drives changed; no change takes the drive."""
    found = copy.deepcopy(fingerprint())
    entry = found["adapters"][alias]
    if number is None:
        entry.update(changes)
    elif changes:
        entry["drives"][drive_id(alias, number)].update(changes)
    else:
        del entry["drives"][drive_id(alias, number)]
    return found
