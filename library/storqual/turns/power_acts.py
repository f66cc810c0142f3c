# SPDX-License-Identifier: Apache-2.0
"""Faults that really take a bench's power: by the backends of its inventory, believed only with evidence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from storqual.bench.follow import Connection
from storqual.bench.reboot import Boot
from storqual.inputs.power import BENCH_ITSELF
from storqual.kinds.record import DRIVE_KEPT_POWER, DRIVE_LOST_POWER
from storqual.power.cycling import BenchPower, cycle_bench
from storqual_core.kit.errors import ToolError

_KINDS: Mapping[str, str] = {"ac": "AC", "dc": "DC"}


@dataclass(frozen=True)
class PowerReach:
    """What a fault of the power works with. `powered_by` is the shelf of the drive, `away_s` how long power is off.

    `emulated`: the drives are files of a host whose power stays.
    """

    run: Path
    power: BenchPower | None
    connection: Connection
    powered_by: str
    away_s: float
    emulated: bool
    tell: Callable[[str, str], None]


def _cycle(reach: PowerReach, *, stays_off: bool) -> None:
    """Off, proven, on, until a new boot answers. Raises ToolError where no power was taken, or nothing came back."""
    cutting = [backend for backend in reach.power.backends if backend.removes] if reach.power else []
    if reach.power is None or not cutting:
        raise ToolError("no backend of `storqual_power` says that it removes AC or DC")
    others = [backend for backend in reach.power.backends if not backend.removes]
    off_for_s = max(reach.away_s, *(backend.off_for_s for backend in cutting)) if stays_off else None
    before = reach.connection.boot_id()
    outcome = cycle_bench(
        # a controller that cannot take the drives' power may still switch the bench on again
        replace(reach.power, backends=[*cutting, *others]),
        "a trial takes the power",
        run=reach.run,
        off_for_s=off_for_s,
        before=Boot(before, ""),
    )
    reach.connection.cut()
    by = [backend for backend in cutting if backend.name in outcome.off_by]
    if by:
        named = ", ".join(f"{backend.name} ({_KINDS[backend.removes]})" for backend in by)
        reach.tell("power_off", f"the bench was proven off by {named}")
        lost = not reach.emulated and any(reach.powered_by in backend.powers for backend in by)
        whose = "the bench" if reach.powered_by == BENCH_ITSELF else f"shelf {reach.powered_by}"
        if reach.emulated:
            reach.tell(DRIVE_KEPT_POWER, "the drive is emulated: its host kept what it had answered")
        elif lost:
            reach.tell(DRIVE_LOST_POWER, f"the drive is powered by {whose}, which {named} powers")
        else:
            reach.tell(DRIVE_KEPT_POWER, f"the drive is powered by {whose}, which kept its power")
    if outcome.boot is None:
        raise ToolError(outcome.conclusion)
    reach.tell("other_boot", f"the bench is on boot {outcome.boot.boot_id}, it was on {before}")
    if not by:
        raise ToolError("no backend that removes AC or DC was proven to have switched the bench off")


POWER_WAYS: Mapping[str, Callable[[PowerReach], None]] = {
    "power_removal": partial(_cycle, stays_off=False),
    "power_cycle": partial(_cycle, stays_off=False),
    "power_absence": partial(_cycle, stays_off=True),
}


def longest_cycle_s(power: BenchPower, away_s: float) -> float:
    """How long the power may be cycled: each backend in turn may switch it off, wait, and await a boot."""
    each = [
        max(away_s, backend.off_for_s) + 2 * backend.answers_within_s + power.boot_limit_s
        for backend in power.backends
    ]
    return sum(each) + power.boot_limit_s
