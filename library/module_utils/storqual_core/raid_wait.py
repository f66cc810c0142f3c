# SPDX-License-Identifier: Apache-2.0
"""Wait until a volume has nothing under way any more: md's own events where the kernel gives them."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Callable, Mapping

from .raid_plan import Existing

__all__ = ["wait_for"]

_IDLE = ("idle", "frozen", "")
_LOOK_AGAIN_S = 5.0
"""A controller has no event to wait for; and an event of md may come before its counters are settled."""


def wait_for(
    volume: Existing,
    progress: Callable[[Existing], Mapping[str, float]],
    seconds: float,
    *,
    sysfs: str = "/sys",
) -> Mapping[str, float]:
    """Wait at most `seconds`; percent by task of what is still under way, empty when nothing is. Raises ToolError."""
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        under_way = progress(volume)
        if not under_way or left <= 0:
            return under_way
        _event(Path(sysfs) / "block" / Path(volume.facts.device).resolve().name / "md" / "sync_action", left)


def _event(path: Path, seconds: float) -> None:
    """Until the kernel says that the action changed, but not longer than `seconds` or until the next look."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        time.sleep(min(seconds, _LOOK_AGAIN_S))
        return
    try:
        if os.read(handle, 64).decode("ascii", "replace").strip() in _IDLE:
            time.sleep(min(seconds, _LOOK_AGAIN_S / 10))
            return
        waiting = select.poll()
        waiting.register(handle, select.POLLPRI | select.POLLERR)
        waiting.poll(min(seconds, _LOOK_AGAIN_S * 12) * 1000)
    finally:
        os.close(handle)
