# SPDX-License-Identifier: Apache-2.0
"""One live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from storqual.text_safety import terminal_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from storqual.follow import Progress

__all__ = ["LiveLine", "describe"]

_PLAIN_EVERY_S = 20.0
_CLEAR = "\r\x1b[2K"


def describe(bench: str, arm: str, progress: Progress, run_eta_s: float | None) -> str:
    """Which bench, arm, block, point k of n, IOPS now, time left."""
    left = run_eta_s if run_eta_s is not None else progress.eta_s
    parts = [
        f"{bench} {arm}",
        f"block {progress.block}",
        f"point {progress.index + 1} of {progress.of}: {progress.point}",
    ]
    if progress.iops_now is not None:
        parts.append(f"{progress.iops_now:,.0f} IOPS now")
    if left is not None:
        parts.append(f"{int(left) // 60}:{int(left) % 60:02d} left")
    return terminal_text(" | ".join(parts))


class LiveLine:
    """Write progress through `write(text, end)`; on a terminal one line is written over, elsewhere lines are rare."""

    def __init__(
        self, write: Callable[[str, str], None], *, live: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._live = live
        self._clock = clock
        self._last: float | None = None

    def show(self, text: str) -> None:
        """Show `text` now on a terminal; elsewhere when the last line is old enough."""
        if self._live:
            self._write(_CLEAR + text, "")
            return
        now = self._clock()
        if self._last is None or now - self._last >= _PLAIN_EVERY_S:
            self._last = now
            self._write(text, "\n")

    def close(self) -> None:
        """Leave the terminal's line empty for what comes next."""
        if self._live:
            self._write(_CLEAR, "")
