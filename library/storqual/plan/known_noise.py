# SPDX-License-Identifier: Apache-2.0
"""How noisy a bench was in earlier campaigns: what a plan expects of it."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict

from storqual.plan.budget import KnownNoise

__all__ = ["known_noise"]

_METRIC = "iops"
"""Rates are what plans are sized by; each point's own noise of each metric is the judge's to use."""


def known_noise(extract: bytes) -> dict[str, KnownNoise]:
    """The middle of the points of each bench, from an extract that was found to be sound."""
    launches: defaultdict[str, list[float]] = defaultdict(list)
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for entry in json.loads(extract)["noise"]:
        if entry["metric"] == _METRIC:
            if entry.get("sd_pair"):
                launches[entry["bench"]].append(entry["sd_pair"] / math.sqrt(2.0))
            if entry.get("sd_session"):
                sessions[entry["bench"]].append(entry["sd_session"])
    return {
        bench: KnownNoise(
            *(statistics.median(found[bench]) if found[bench] else None for found in (launches, sessions))
        )
        for bench in {*launches, *sessions}
    }
