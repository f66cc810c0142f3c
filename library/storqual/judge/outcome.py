# SPDX-License-Identifier: Apache-2.0
"""From criteria to the outcome of a run: the first rule that applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["EXIT_CODES", "run_outcome"]

EXIT_CODES: Mapping[str, int] = {"PASS": 0, "MARGINAL": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 2}


def run_outcome(
    criteria: Sequence[Mapping[str, Any]], rig: Sequence[str], *, holes: int, marginal_passes: bool
) -> tuple[str, str]:
    """The run's outcome and its sentence. A rig or guard that is not valid comes before everything."""
    if rig:
        return "ERROR", rig[0]
    required = [entry for entry in criteria if entry["required"]]
    counts = Counter(entry["outcome"] for entry in required if not (entry["outcome"] == "FAIL" and entry["waiver"]))
    total = f"{len(required)} required criteria"
    if counts["FAIL"]:
        return "FAIL", f"{counts['FAIL']} of {total} failed"
    if counts["ERROR"]:
        first = next(entry for entry in required if entry["outcome"] == "ERROR")
        return "ERROR", f"{counts['ERROR']} of {total} could not be judged: {first['reason']}"
    if not any(entry["against"] != "check" and entry["outcome"] != "SKIPPED" for entry in required):
        return "ERROR", "no required criterion was judged at any point"
    if counts["INCONCLUSIVE"]:
        return "INCONCLUSIVE", f"{counts['INCONCLUSIVE']} of {total} are undecided"
    if holes:
        return "INCONCLUSIVE", f"{holes} planned points were not measured, and nobody said why"
    if counts["MARGINAL"] and not marginal_passes:
        return "FAIL", f"{counts['MARGINAL']} of {total} pass only marginally, which the gate does not take"
    if counts["MARGINAL"]:
        return "MARGINAL", f"all {total} hold, {counts['MARGINAL']} of them near their limit"
    return "PASS", f"all {total} hold"
