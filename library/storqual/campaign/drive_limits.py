# SPDX-License-Identifier: Apache-2.0
"""On a virtual bench, what QEMU grants to drives before a batch: arms that differ in it alternate batch by batch."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storqual.run import append_event, read_batch, read_run_json
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import change_drives
from storqual_core.kit.errors import StorqualError


def limits_of_batch(run: Path, bench: str, batch: str) -> dict[str, int] | None:
    """I/O per second by drive for a batch, as its arm's drop says; None where sessions are provisioned with them.

    Raises StorqualError for a batch of several arms: nobody could switch them inside it.
    """
    document = read_run_json(run)
    design: dict[str, Any] = (document["plan"].get("designs") or {}).get(bench) or {}
    if not design.get("by_block"):
        return None
    specs = document["provision"][bench]
    names = dict.fromkeys(str(turn["configuration"]) for turn in read_batch(run, batch)["turns"])
    wanted = [dict(specs[name]["virtual"].get("iops_limit") or {}) for name in names]
    if any(caps != wanted[0] for caps in wanted):
        raise StorqualError(f"batch {batch}: found launches of arms with different limits, expected one arm")
    return wanted[0]


def limit_drives(run: Path, bench: str, batch: str, state_dir: str) -> None:
    """Put a batch's limits into force, read them back from QEMU, and record them (`limited`).

    Raises StorqualError when the bench is off or the limits are not in force: nothing is measured under a wrong name.
    """
    wanted = limits_of_batch(run, bench, batch)
    if wanted is None:
        return
    done = change_drives(BenchPlaces.of(state_dir), "limited", iops=wanted, bandwidth={})
    in_force = {drive: limit["iops"] for drive, limit in done["limits"].items()}
    append_event(run, "limited", {"bench": bench, "block": batch, "limits": in_force})


def unplug_later(
    run: Path, bench: str, wanted: Mapping[str, Any], state_dir: str, clock: Callable[[], float]
) -> Callable[[], None]:
    """What to call now and then: `wanted["after_s"]` seconds after this call it pulls `wanted["drive"]`, once.

    The event `unplugged` is written when the drive is gone. Raises StorqualError when it cannot be pulled: a fault
    that did not happen proves nothing.
    """
    drive, due = str(wanted["drive"]), clock() + float(wanted["after_s"])
    done = False

    def tick() -> None:
        nonlocal done
        if done or clock() < due:
            return
        done = True
        pulled = change_drives(BenchPlaces.of(state_dir), "unplugged", iops={}, bandwidth={}, drive=drive)
        if not pulled["changed"]:
            raise StorqualError(f"drive {drive} could not be unplugged: it was not plugged")
        append_event(run, "unplugged", {"bench": bench, "drive": drive})

    return tick
