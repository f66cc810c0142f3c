# SPDX-License-Identifier: Apache-2.0
"""From the records of trials to criteria: one for each fault on each adapter, with counts and an exact bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from storqual.robustness.confidence import compare, told
from storqual.robustness.images import DROPPED_FLUSH
from storqual.robustness.lasting import lasting_checks
from storqual.robustness.oracle import KINDS
from storqual.robustness.plan import PlannedTrial
from storqual.run.records import TRIALS

Place = tuple[str, str]
_OF_DATA = (*KINDS, DROPPED_FLUSH)
"""What the first reason of a trial begins with whose data are not what they must be."""


def grouped(records: Iterable[Mapping[str, Any]]) -> Mapping[Place, list[Mapping[str, Any]]]:
    """Records by fault and adapter."""
    groups: defaultdict[Place, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        groups[(record["fault"], record["adapter"])].append(record)
    return groups


def checks_of(
    planned: Sequence[PlannedTrial], records: Sequence[Mapping[str, Any]], *, bench: str, until_failure: bool
) -> Iterator[dict[str, Any]]:
    """The checks of a run. What was planned and not made is undecided, unless trials were to end at a failure."""
    made = grouped(records)
    yield from lasting_checks(records, bench=bench)
    for place in dict.fromkeys((trial.fault, trial.adapter) for trial in planned):
        here = [trial for trial in planned if (trial.fault, trial.adapter) == place]
        records_here = made.get(place, [])
        left = 0 if until_failure else len({one.id for one in here} - {one["id"] for one in records_here})
        outcome, reason = _judged(here, records_here, left)
        yield {
            "id": f"trials.{place[0]}",
            "bench": bench,
            "adapter": place[1],
            "outcome": outcome,
            "reason": reason,
            "source": TRIALS,
        }


def _judged(planned: Sequence[PlannedTrial], records: Sequence[Mapping[str, Any]], left: int) -> tuple[str, str]:
    """Outcome and reason of one fault on one adapter."""
    valid = [record for record in records if record["outcome"] != "void"]
    void = [record for record in records if record["outcome"] == "void"]
    arms = list(dict.fromkeys(trial.arm for trial in planned))
    candidate = [record for record in valid if record["arm"] == "candidate" or len(arms) == 1]
    failed = [record for record in candidate if record["outcome"] == "failed"]
    beside = f"; {len(void)} void: {void[0]['reasons'][0]}" if void else ""
    damaged = [record for record in failed if record["reasons"][0].partition(": ")[0] in _OF_DATA]
    if damaged:
        return "FAIL", f"data: {_damage(damaged[0]['reasons'])} (trial {damaged[0]['id']}){beside}"
    if not candidate:
        return "ERROR", f"no trial proved its fault{beside}"
    if left:
        return "INCONCLUSIVE", f"{left} of {len(planned)} trials were not made{beside}"
    counts = told(len(failed), len(candidate)) + _images(candidate)
    if not failed:
        return "PASS", counts + beside
    first = f"first {failed[0]['id']}: {failed[0]['reasons'][0]}"
    if len(arms) == 1:
        return "FAIL", f"{counts}; {first}{beside}"
    pairs = _pairs(valid)
    answer = compare(pairs)
    others = f"the baseline failed in {sum(other for _, other in pairs)} of {len(pairs)} compared"
    said = f"{counts}; {others}, p = {answer.p:.3g}; {first}{beside}"
    if answer.answer == "regression":
        return "FAIL", f"regression: {said}"
    if answer.answer == "known":
        return "PASS", f"known, the baseline fails too: {said}"
    return "INCONCLUSIVE", f"too few trials to tell a regression: {said}"


def _damage(reasons: Iterable[str]) -> str:
    """The first reason of each kind of damage: a write that went elsewhere also lacks where it should be."""
    first: dict[str, str] = {}
    for reason in reasons:
        kind = reason.partition(": ")[0]
        if kind in _OF_DATA:
            first.setdefault(kind, reason)
    return "; ".join(first.values())


def _images(records: Sequence[Mapping[str, Any]]) -> str:
    """How many images of power cuts were looked at, where they are the fault."""
    cuts = [record["power_cuts"] for record in records if record.get("power_cuts")]
    if not cuts:
        return ""
    images, points = (sum(cut[name] for cut in cuts) for name in ("images", "points"))
    return f"; {images} images of {points} power cuts"


def _pairs(valid: Sequence[Mapping[str, Any]]) -> list[tuple[bool, bool]]:
    """(candidate failed, baseline failed) of pairs of which both trials are valid, in the order they were made."""
    arms: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for record in valid:
        arms[record["pair"]][record["arm"]] = record["outcome"] == "failed"
    return [(both["candidate"], both["baseline"]) for both in arms.values() if len(both) == 2]
