# SPDX-License-Identifier: Apache-2.0
"""Which failures somebody has accepted, and what is wrong with a waiver."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from storqual.model.policy import Waiver

__all__ = ["Doubt", "apply_waivers"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is wrong with a waiver: it matches nothing, has expired, a failure exceeds its loss, or it is too wide."""

    kind: Literal["unused", "expired", "loss", "wide"]
    text: str


def apply_waivers(
    criteria: Sequence[dict[str, Any]], waivers: Sequence[Waiver], *, drop: str, suite: str, today: date
) -> list[Doubt]:
    """Put its waiver into each accepted failure; returns what is wrong with the waivers.

    A waiver counts through its last day, for failures within its loss. One that matches nothing, has expired, or
    covers more than what failed is reported; an expired one counts no more.
    """
    doubts = []
    for waiver in waivers:
        name = f"waiver {waiver.reference} of {waiver.owner}"
        here = _of_drop(waiver.drop, drop) and fnmatch.fnmatchcase(suite, waiver.suite)
        covered = [entry for entry in criteria if here and _covers(waiver, entry)]
        failed = [entry for entry in covered if entry["outcome"] == "FAIL"]
        if not failed:
            doubts.append(Doubt("unused", f"{name} matches no failure"))
            continue
        if today > waiver.expiry:
            doubts.append(Doubt("expired", f"{name} expired on {waiver.expiry.isoformat()}"))
            continue
        for entry in failed:
            loss = -(entry["shift_percent"] or 0.0) / 100
            if waiver.max_loss is not None and loss > waiver.max_loss:
                place = f"{entry['adapter']}/{entry['point']}"
                text = f"{name} accepts a loss of {100 * waiver.max_loss:g} %, {place} lost {100 * loss:.1f} %"
                doubts.append(Doubt("loss", text))
                continue
            entry["waiver"] = {
                "owner": waiver.owner,
                "reason": waiver.reason,
                "reference": waiver.reference,
                "expiry": waiver.expiry.isoformat(),
            }
        if len(covered) > len(failed):
            text = f"is wider than what failed: it covers {len(covered)} criteria, {len(failed)} failed"
            doubts.append(Doubt("wide", f"{name} {text}"))
    return doubts


def _of_drop(pattern: str, drop: str) -> bool:
    """Whether a drop is meant: by a pattern, or by a range `28.00..28.09` in which numbers count as numbers."""
    first, dots, last = pattern.partition("..")
    if dots:
        return _natural(first) <= _natural(drop) <= _natural(last)
    return fnmatch.fnmatchcase(drop, pattern)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts 9.2 before 9.10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


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
