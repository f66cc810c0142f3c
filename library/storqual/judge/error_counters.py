# SPDX-License-Identifier: Apache-2.0
"""Error counters that moved while a block ran, as evidence about the points on those drives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from storqual.judge.question import Question
from storqual.store import Run
from storqual_core.error_counters import WORDS

__all__ = ["Counted", "counted_errors", "errors_of"]

Counted = Mapping[tuple[str, str], Sequence[str]]
"""Sentences by bench and block, and by drive: `("vbench", "s01-b01/0x5000...")`."""


def counted_errors(run: Run) -> Counted:
    """What the bench read from its drives' error counters before and after each block.

    Healthy commands, retries that nobody saw included, move none of them.
    """
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for event in run.events:
        if event.kind != "block_finished":
            continue
        block = event.text("block")
        for node, disk in ((event.fields.get("end") or {}).get("disks") or {}).items():
            drive = str(disk.get("id") or disk.get("wwn") or node)
            for counter, number in (disk.get("errors") or {}).items():
                if number:
                    what = WORDS.get(counter, counter)
                    told = f"error counters, drive {drive}: {what}: {number} ({counter}) in block {block}"
                    found[str(event.bench), f"{block}/{drive}"].append(told)
    return found


def errors_of(question: Question, counted: Counted) -> list[str]:
    """The sentences about a question's drives in the blocks of its launches."""
    if not counted:
        return []
    blocks = {launch.block for arm in ("baseline", "candidate") for launch in question.place.of(arm)}
    return sorted(
        sentence
        for block in blocks
        for drive in question.point.drives
        for sentence in counted.get((question.point.bench, f"{block}/{drive}"), ())
    )
