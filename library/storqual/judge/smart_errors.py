# SPDX-License-Identifier: Apache-2.0
"""Errors that drives put on record of themselves while a campaign had them, as evidence about their points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storqual.judge.question import Question
from storqual.store import Run

__all__ = ["Grown", "grown_errors", "recorded_errors_of"]

Grown = Mapping[tuple[str, str], Sequence[str]]
"""Sentences by bench and drive."""


def grown_errors(run: Run) -> Grown:
    """What grew between the first look before the campaign and the last one after it.

    A count that was not there before, or went back, says nothing. Which arm a drive was in when it happened is not
    known: nobody asks drives while they are measured.
    """
    before: dict[str, Mapping[str, Mapping[str, int]]] = {}
    after: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for event in run.events:
        if event.kind == "environment" and event.bench:
            looked = event.fields.get("smart") or {}
            if event.fields.get("when") == "before":
                before.setdefault(event.bench, looked)
            else:
                after[event.bench] = looked
    return {
        (bench, drive): tuple(
            f"SMART, drive {drive}: {name} grew from {first[name]} to {count} during the campaign"
            for name, count in counts.items()
            if count > first.get(name, count)
        )
        for bench, drives in after.items()
        for drive, counts in drives.items()
        for first in [before.get(bench, {}).get(drive, {})]
    }


def recorded_errors_of(question: Question, grown: Grown) -> list[str]:
    """The sentences about a question's drives."""
    return [told for drive in question.point.drives for told in grown.get((question.point.bench, drive), ())]
