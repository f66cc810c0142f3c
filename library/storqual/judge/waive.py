# SPDX-License-Identifier: Apache-2.0
"""Which failures somebody has accepted, and what is wrong with a waiver."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from datetime import date
from typing import Any

from storqual.model.policy import Waiver

__all__ = ["apply_waivers"]


def apply_waivers(
    criteria: Sequence[dict[str, Any]], waivers: Sequence[Waiver], *, drop: str, suite: str, today: date
) -> list[str]:
    """Put its waiver into each accepted failure; returns what is wrong with the waivers.

    A waiver counts through its last day, for failures within its loss. One that matches nothing, has expired, or
    covers more than what failed is reported; an expired one counts no more.
    """
    warnings = []
    for waiver in waivers:
        name = f"waiver {waiver.reference} of {waiver.owner}"
        here = fnmatch.fnmatchcase(drop, waiver.drop) and fnmatch.fnmatchcase(suite, waiver.suite)
        covered = [entry for entry in criteria if here and _covers(waiver, entry)]
        failed = [entry for entry in covered if entry["outcome"] == "FAIL"]
        if not failed:
            warnings.append(f"{name} matches no failure")
            continue
        if today > waiver.expiry:
            warnings.append(f"{name} expired on {waiver.expiry.isoformat()}")
            continue
        for entry in failed:
            loss = -(entry["shift_percent"] or 0.0) / 100
            if waiver.max_loss is not None and loss > waiver.max_loss:
                place = f"{entry['adapter']}/{entry['point']}"
                warnings.append(
                    f"{name} accepts a loss of {100 * waiver.max_loss:g} %, {place} lost {100 * loss:.1f} %"
                )
                continue
            entry["waiver"] = {
                "owner": waiver.owner,
                "reason": waiver.reason,
                "reference": waiver.reference,
                "expiry": waiver.expiry.isoformat(),
            }
        if len(covered) > len(failed):
            warnings.append(
                f"{name} is wider than what failed: it covers {len(covered)} criteria, {len(failed)} failed"
            )
    return warnings


def _covers(waiver: Waiver, entry: dict[str, Any]) -> bool:
    pairs = (
        (waiver.criterion, entry["id"]),
        (waiver.adapter, entry["adapter"]),
        (waiver.bench, entry["bench"]),
    )
    if not all(fnmatch.fnmatchcase(str(found or ""), pattern) for pattern, found in pairs):
        return False
    # a point's name holds brackets, which a pattern would take for a set of letters
    return waiver.point in ("*", entry["point"]) or fnmatch.fnmatchcase(
        str(entry["point"]), waiver.point.replace("[", "[[]")
    )
