# SPDX-License-Identifier: Apache-2.0
"""Open loop: I/Os arrive at a rate, whatever is outstanding, unless fio could not issue them in time."""

from __future__ import annotations

import math

from .fio_job import FioAsk
from .fio_result import FioResult

__all__ = ["KEPT", "arrivals"]

KEPT = 0.99
"""The share of arrivals that must have been issued; below it the load was closed in part."""
_SPREADS = 3.0


def arrivals(ask: FioAsk, drives: int, result: FioResult) -> tuple[dict[str, int], list[str]]:
    """Primitives of an open-loop launch on so many drives, and what puts it in doubt; nothing for a closed loop."""
    rate = ask.options.get("rate_iops", "")
    if ask.options.get("rate_process") != "poisson" or not rate.isdigit():
        return {}, []
    runtime_s = int(result.primitives.get("runtime_ns", 0)) / 1e9
    asked = int(rate) * ask.numjobs * drives * runtime_s
    primitives = {"open_loop": 1, "asked_ios": round(asked)}
    issued = sum(result.jobs_ios)
    # arrivals are counts of a Poisson process: their own spread is no shortfall
    if result.status != "ok" or issued >= KEPT * asked - _SPREADS * math.sqrt(asked):
        return primitives, []
    share = 100.0 * issued / asked
    return primitives, [
        f"{share:.1f} % of the arrivals were issued: the loop was closed in part, its latencies hide waits"
    ]
