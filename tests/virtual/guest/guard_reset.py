# SPDX-License-Identifier: Apache-2.0
"""Run inside a bench before and after its reset button is pressed: what storqual made is known, every sector counted.

Reads `{"adapters": …, "adapter": alias, "unclaimed": serial, "phase": "before"|"after", "reading": …}` from standard
input, prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guard_tools import empty, peek, poke, run

from storqual_core.guard import hold
from storqual_core.guard.claims import Claim, claims_of_adapters
from storqual_core.guard.writes import read_disks, reading_of
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.errors import GuardRefusalError
from storqual_core.kit.machine import Machine


def before(claim: Claim, unclaimed: str) -> dict[str, Any]:
    """Make a file system that storqual would make, and leave it when the power goes; count from here on."""
    with hold.hold([claim], purpose="write", run="reset") as held:
        uuid = held.announce(claim.id)
        run("mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={uuid}", held.release(claim.id))
        held.retake(claim.id)
    del unclaimed
    return {"reading": read_disks().record(), "made": uuid}


def written_outside(reading: dict[str, Any], claimed: set[str]) -> dict[str, int]:
    """Sectors written to disks neither claimed nor the system's, by id; in another boot all since its start."""
    first, now = reading_of(reading), read_disks()
    was = first.disks if first.boot_id == now.boot_id else {}
    written = {
        disk.id: disk.sectors_written - (was[name].sectors_written if name in was else 0)
        for name, disk in now.disks.items()
        if disk.id not in claimed and not disk.system
    }
    return {name: sectors for name, sectors in written.items() if sectors}


def after(claim: Claim, unclaimed: str, reading: dict[str, Any], claimed: set[str]) -> dict[str, Any]:
    """The claims hold again after the boot; the drive is cleared; then a stray write of one sector."""
    hold.refuse(hold.check([claim], purpose="write"))
    first = written_outside(reading, claimed)
    with hold.hold([claim], purpose="write", run="reset") as held:
        held.stamp(claim.id)
    cleared = [str(refusal) for refusal in hold.check([claim], purpose="write")]
    run("mkfs.xfs", "-q", "-f", "-K", next(d.node for d in read_drives(Machine()) if d.id == claim.id))
    try:
        hold.refuse(hold.check([claim], purpose="write"))
        foreign = ""
    except GuardRefusalError as refusal:
        foreign = refusal.refusals[0]
    stray = next(drive for drive in read_drives(Machine()) if drive.identity.serial == unclaimed)
    poke(stray.node, (16384, peek(stray.node)[:512]))
    run("sync")
    second = written_outside(reading, claimed)
    empty(next(d.node for d in read_drives(Machine()) if d.id == claim.id))
    return {
        "boots": len({reading["boot_id"], read_disks().boot_id}),
        "outside_before_the_stray_write": first,
        "cleared": cleared,
        "foreign": foreign,
        "outside": second,
    }


def main() -> None:
    asked = json.load(sys.stdin)
    claims = claims_of_adapters(asked["adapters"])
    claim = claims_of_adapters({"a": asked["adapters"][asked["adapter"]]})[0]
    if asked["phase"] == "before":
        result = before(claim, asked["unclaimed"])
    else:
        result = after(claim, asked["unclaimed"], asked["reading"], {claim.id for claim in claims})
    print(json.dumps(result))


if __name__ == "__main__":
    main()
