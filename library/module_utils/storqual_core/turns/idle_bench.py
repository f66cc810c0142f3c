# SPDX-License-Identifier: Apache-2.0
"""What the bench does by itself, measured once per batch: service demand is counted above it."""

from __future__ import annotations

from typing import Callable, Tuple

from ..host.counters import IDLE_CLASSES, Snapshot, differences

Window = Tuple[Snapshot, Snapshot]
MOST_WINDOWS = 5
QUIET = 0.15
"""Share of the processors' time that an idle bench may use without being looked at again."""


def watch_idle(read: Callable[[], Snapshot], wait: Callable[[float], None], seconds: float) -> Window:
    """The quietest of at most `MOST_WINDOWS` windows of so many seconds; the first that is `QUIET` ends the search.

    As long again passes first: the start of the batch (a login, Python's own start) is not the idle bench. What a
    boot or a timer still does may fill a whole window too, and would be subtracted from every launch.
    """
    wait(seconds)
    windows: list[Window] = []
    while len(windows) < MOST_WINDOWS:
        before = read()
        wait(seconds)
        windows.append((before, read()))
        share = busy_share(windows[-1])
        if share is None or share <= QUIET:
            return windows[-1]
    return min(windows, key=lambda window: busy_share(window) or 0.0)


def busy_share(window: Window) -> float | None:
    """Share of the processors' time that was used, 0 to 1; None where the kernel counts no idle time."""
    found = differences(*window)
    total = found["wall_ns"] * found.get("cpu_count", 0)
    if total <= 0:
        return None
    if "cpuidle_ns" in found:
        return 1.0 - found["cpuidle_ns"] / total
    ticks = [found.get(f"stat_{name}_ticks") for name in IDLE_CLASSES]
    if ticks[0] is None:
        return None
    return 1.0 - sum(tick or 0 for tick in ticks) * found["tick_ns"] / total
