# SPDX-License-Identifier: Apache-2.0
"""Was the bench itself during a campaign: its golden reference against the limits that history gives."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

from storqual.history.reference import readings_of
from storqual.store import Run
from storqual_core.errors import BadInputError

__all__ = ["out_of_control"]


def out_of_control(run: Run, history: Path | None) -> list[str]:
    """Sentences about benches whose reference left its limits: their campaign is suspect. Raises BadInputError."""
    limits = _limits(history)
    if not limits:
        return []
    values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for reading in readings_of(run):
        values[reading.bench, reading.drive].append(reading.iops)
    said = []
    for key, found in values.items():
        low, high = limits.get(key, (-math.inf, math.inf))
        mean = math.fsum(found) / len(found)
        if not low <= mean <= high:
            told = f"its golden reference {key[1]} gave {mean:.0f} IOPS, outside of {low:.0f} to {high:.0f}"
            said.append(f"{key[0]}: {told}: the bench was out of control, this campaign is suspect")
    return said


def _limits(history: Path | None) -> dict[tuple[str, str], tuple[float, float]]:
    if history is None:
        return {}
    try:
        entries = json.loads(history.read_text(encoding="utf-8")).get("reference") or []
        return {(one["bench"], one["drive"]): (float(one["low"]), float(one["high"])) for one in entries}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BadInputError([f"{history}: found no history ({problem})"]) from None
