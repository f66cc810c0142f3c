# SPDX-License-Identifier: Apache-2.0
"""Past runs as a trend sees them: run.json and verdict.json of each, no samples: a quarter is read at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from storqual.report.rows import Row, read_rows
from storqual.store import read_run_json
from storqual_core.errors import BadInputError, StorqualError

__all__ = ["NOT_JUDGED", "PastRun", "read_past"]

NOT_JUDGED = "NOT JUDGED"


@dataclass(frozen=True)
class PastRun:
    """One run; `verdict` is empty where it was not judged."""

    path: Path
    document: Mapping[str, Any]
    verdict: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The run's id."""
        return str(self.document.get("run"))

    @property
    def created(self) -> str:
        """When it was planned, as an ISO time."""
        return str(self.document.get("created") or "")

    @property
    def outcome(self) -> str:
        """The verdict's outcome, or that there is none."""
        return str(self.verdict.get("outcome") or NOT_JUDGED)

    @property
    def benches(self) -> tuple[str, ...]:
        """The benches it used."""
        return tuple(self.document.get("benches") or ())

    def drop(self, arm: str) -> str:
        """The drop of an arm."""
        return str(((self.document.get("arms") or {}).get(arm) or {}).get("drop") or "")

    @property
    def suite(self) -> str:
        """Suite and profile."""
        suite = self.document.get("suite") or {}
        return f"{suite.get('name')} {suite.get('profile')}"

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The criteria of its verdict."""
        return read_rows(self.verdict)

    def shifts(self, *, required: bool = True) -> list[Row]:
        """Criteria against the baseline that have a shift, the worst first."""
        found = [
            row
            for row in self.rows
            if row.against == "baseline" and row.required == required and row.number("shift_percent") is not None
        ]
        return sorted(found, key=lambda row: row.number("shift_percent") or 0.0)


def read_past(places: Sequence[Path]) -> tuple[PastRun, ...]:
    """The runs at `places` (run directories, or folders of them) in the order of time, each once.

    Raises BadInputError when a place holds none, StorqualError for a damaged file.
    """
    found: dict[str, PastRun] = {}
    problems = []
    for place in places:
        runs = list(_runs_at(place))
        if not runs:
            problems.append(f"{place}: found no run directory, expected one, or a folder of them")
        for path in runs:
            run = PastRun(path, read_run_json(path), _verdict(path))
            found.setdefault(run.name, run)
    if problems:
        raise BadInputError(problems)
    return tuple(sorted(found.values(), key=lambda run: (run.created, run.name)))


def _runs_at(place: Path) -> Iterator[Path]:
    if (place / "run.json").is_file():
        yield place
    elif place.is_dir():
        yield from sorted(path.parent for path in place.glob("*/run.json"))


def _verdict(path: Path) -> Mapping[str, Any]:
    file = path / "verdict.json"
    if not file.is_file():
        return {}
    try:
        verdict = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise StorqualError(f"{file}: found no JSON ({problem})") from None
    if not isinstance(verdict, dict):
        raise StorqualError(f"{file}: found {type(verdict).__name__}, expected an object")
    return verdict
