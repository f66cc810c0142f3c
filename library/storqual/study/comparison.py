# SPDX-License-Identifier: Apache-2.0
"""`storqual compare`: adapters of one run, or of several, against each other; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.statistics.estimates import Estimate
from storqual.study.adapters import Contest, EqualLoad, contests, equal_loads
from storqual.study.cells import cells_of_runs
from storqual.study.compare import LevelShift, SubjectComparison
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class Comparisons:
    """All contests of the runs' subjects, and what they need at equal load."""

    subjects: tuple[str, ...]
    contests: tuple[Contest, ...]
    equal_loads: tuple[EqualLoad, ...]

    def to_json(self) -> dict[str, Any]:
        """For `--json`: fractions; None where there is no interval."""
        return {
            "schema": "storqual.compare/1",
            "subjects": list(self.subjects),
            "contests": [_contest(one) for one in self.contests],
            "equal_load": [_equal(one) for one in self.equal_loads],
        }


def compare_runs(paths: Sequence[Path], *, arms: Sequence[str] = ("candidate",)) -> Comparisons:
    """Every pair of subjects at every level that they share. Raises BadInputError with nothing to compare."""
    cells = cells_of_runs(paths, arms=arms)
    subjects = list(dict.fromkeys(cell.subject for cell in cells))
    if len(subjects) < 2:
        told = f"found {len(subjects)} measured adapter{'s' if len(subjects) != 1 else ''}"
        raise BadInputError([f"{', '.join(map(str, paths))}: {told}, expected two at least (or two arms, two runs)"])
    return Comparisons(tuple(subjects), tuple(contests(cells)), tuple(equal_loads(cells)))


def _contest(one: Contest) -> dict[str, Any]:
    return {
        "title": one.title,
        "metric": one.metric,
        "along": one.along,
        "leaders": [{"at": level, "leader": name} for level, name in one.leaders.items()],
        "pairs": [_pair(pair) for pair in one.comparisons],
        "sentences": list(one.sentences),
    }


def _pair(pair: SubjectComparison) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "levels": [_level(level) for level in pair.levels],
        "ranges": [{"from": one.start, "to": one.end, "relation": one.relation} for one in pair.ranges],
    }


def _level(level: LevelShift) -> dict[str, Any]:
    return {"at": level.at, "relation": level.relation, **_estimate("shift", level.shift)}


def _equal(one: EqualLoad) -> dict[str, Any]:
    return {
        "title": one.title,
        "first": one.first,
        "second": one.second,
        "metric": one.of,
        "at_equal": one.at,
        "load": one.load,
        **_estimate("shift", one.shift),
        "sentence": one.sentence,
    }


def _estimate(name: str, estimate: Estimate) -> dict[str, Any]:
    interval = None if estimate.low is None or estimate.high is None else [estimate.low, estimate.high]
    return {name: estimate.value, "ci95": interval}
