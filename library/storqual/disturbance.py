# SPDX-License-Identifier: Apache-2.0
"""What a drop asks to happen on a virtual bench while it is measured: a drive that is pulled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from storqual.store import append_event
from storqual.virtual_bench import limits
from storqual.virtual_bench.places import BenchPlaces, locked
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from storqual_core.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["unplug_later"]


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
        _pull(BenchPlaces.of(state_dir), drive)
        append_event(run, "unplugged", {"bench": bench, "drive": drive})

    return tick


def _pull(places: BenchPlaces, drive: str) -> None:
    with locked(places.lock):
        state = power_state(places)
        if state is None:
            raise StorqualError(f"drive {drive} could not be unplugged: the bench is off")
        if not converse(Path(state.monitor), lambda monitor: limits.unplug(monitor, state.bench, drive)):
            raise StorqualError(f"drive {drive} could not be unplugged: it was not plugged")
