# SPDX-License-Identifier: Apache-2.0
"""The last verdict about each bench, from the run directories of a lab."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.run.files import read_object
from storqual.run.layout import RUN_FILE
from storqual_core.kit.errors import StorqualError


@dataclass(frozen=True)
class LastResult:
    """A judged run as far as it concerns one bench; `outcomes` are its criteria there, counted by outcome.

    `reference` has the criteria on the bench's golden reference drive, as (id, outcome, shift in percent or None).
    """

    run: str
    finished: str
    suite: str
    baseline: str
    candidate: str
    outcome: str
    outcomes: tuple[tuple[str, int], ...]
    reference: tuple[tuple[str, str, float | None], ...] = ()


def last_results(runs: Path) -> dict[str, LastResult]:
    """By bench the run below `runs` that was planned last, of those with a verdict. What is no run is passed over."""
    found: dict[str, tuple[str, LastResult]] = {}
    for path in sorted(runs.glob(f"*/{RUN_FILE}")):
        run, verdict = _read(path), _read(path.parent / "verdict.json")
        if run is None or verdict is None:
            continue
        created = str(run.get("created", ""))
        for bench, entry in _mapping(run.get("benches")).items():
            if bench not in found or found[bench][0] <= created:
                found[bench] = created, _result(bench, _mapping(entry), run, verdict)
    return {bench: result for bench, (_, result) in found.items()}


def _read(path: Path) -> Mapping[str, Any] | None:
    """A file of a run; a run that is being written, or is damaged, is no result yet."""
    try:
        return read_object(path.parent, path.name)
    except (OSError, StorqualError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _result(bench: str, entry: Mapping[str, Any], run: Mapping[str, Any], verdict: Mapping[str, Any]) -> LastResult:
    criteria = [each for each in verdict.get("criteria") or () if _mapping(each).get("bench") == bench]
    arms = _mapping(run.get("arms"))
    reference = entry.get("reference")
    points = {
        (point.get("adapter"), point.get("point"))
        for point in _mapping(run.get("plan")).get("points") or ()
        if reference and point.get("bench") == bench and point.get("drives") == [reference]
    }
    on_reference = [each for each in criteria if (each.get("adapter"), each.get("point")) in points]
    return LastResult(
        run=str(run.get("run", "")),
        finished=str(run.get("finished") or verdict.get("as_of") or ""),
        suite=str(_mapping(run.get("suite")).get("name", "")),
        baseline=str(_mapping(arms.get("baseline")).get("drop", "")),
        candidate=str(_mapping(arms.get("candidate")).get("drop", "")),
        outcome=str(verdict.get("outcome", "")),
        outcomes=tuple(sorted(Counter(str(each.get("outcome")) for each in criteria).items())),
        reference=tuple(
            (str(each.get("id")), str(each.get("outcome")), each.get("shift_percent")) for each in on_reference
        ),
    )
