# SPDX-License-Identifier: Apache-2.0
"""Past runs, as history, trend pages and bench sheets read them: run.json and verdict.json, samples only if asked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from storqual.judge.earlier import ReferenceReading, readings_of
from storqual.run import Run, read_run, read_run_json, sha256_of
from storqual.run.files import DAMAGE, read_bytes, read_object
from storqual.run.layout import RUN_FILE, run_folders, runs_below
from storqual.run.measurements import reference_launches

NOT_JUDGED = "NOT JUDGED"
_VERDICT = "verdict.json"


@dataclass(frozen=True)
class PastRun:
    """One run; `verdict` is empty where it was not judged."""

    path: Path
    document: Mapping[str, Any]
    verdict: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.document.get("run"))

    @property
    def created(self) -> str:
        """When it was planned, as an ISO time."""
        return str(self.document.get("created") or "")

    @property
    def outcome(self) -> str:
        return str(self.verdict.get("outcome") or NOT_JUDGED)

    @property
    def benches(self) -> Mapping[str, Mapping[str, Any]]:
        return self.document.get("benches") or {}

    @property
    def suite(self) -> Mapping[str, Any]:
        return self.document.get("suite") or {}

    def drop(self, arm: str) -> str:
        return str(((self.document.get("arms") or {}).get(arm) or {}).get("drop") or "")

    @property
    def criteria(self) -> Sequence[Mapping[str, Any]]:
        return self.verdict.get("criteria") or ()

    @cached_property
    def opened(self) -> Run:
        return read_run(self.path)

    def readings(self) -> list[ReferenceReading]:
        """Launches on reference drives; samples are read only where a bench has one."""
        if not any(bench.get("reference") for bench in self.benches.values()):
            return []
        return list(readings_of(self.opened, reference_launches(self.opened)))


def read_past_run(path: Path) -> PastRun:
    """The run at `path`, judged or not. Raises BadInputError for what is none, StorqualError for a damaged file."""
    return PastRun(path, read_run_json(path), read_object(path, _VERDICT) if is_judged(path) else {})


def is_judged(path: Path) -> bool:
    return (path / _VERDICT).is_file()


def digest_of_run(path: Path) -> str:
    """What a judged run is known by: its verdict holds the digests of samples and inputs. Raises OSError."""
    return sha256_of(read_bytes(path, RUN_FILE) + read_bytes(path, _VERDICT))


def read_past(paths: Sequence[Path]) -> tuple[PastRun, ...]:
    """Run directories, or those in folders of them, in the order of time, each once.

    Raises what `runs_below` raises, StorqualError for a damaged file.
    """
    runs: dict[str, PastRun] = {}
    for run in map(read_past_run, runs_below(paths)):
        runs.setdefault(run.name, run)
    return tuple(sorted(runs.values(), key=lambda run: (run.created, run.name)))


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
    """By bench the run below `runs` that was planned last, of those with a verdict.

    A run that is being written, or is damaged, is no result yet.
    """
    newest: dict[str, tuple[str, LastResult]] = {}
    for path in run_folders(runs):
        try:
            run = read_past_run(path)
            results = {bench: _result(run, bench) for bench in run.benches} if run.verdict else {}
        except DAMAGE:
            continue
        for bench, result in results.items():
            if bench not in newest or newest[bench][0] <= run.created:
                newest[bench] = run.created, result
    return {bench: result for bench, (_, result) in newest.items()}


def _result(run: PastRun, bench: str) -> LastResult:
    criteria = [entry for entry in run.criteria if entry.get("bench") == bench]
    reference = run.benches[bench].get("reference")
    points = {
        (point.get("adapter"), point.get("point"))
        for point in run.document["plan"].get("points") or ()
        if reference and point.get("bench") == bench and point.get("drives") == [reference]
    }
    return LastResult(
        run=run.name,
        finished=str(run.document.get("finished") or run.verdict.get("as_of") or ""),
        suite=str(run.suite.get("name", "")),
        baseline=run.drop("baseline"),
        candidate=run.drop("candidate"),
        outcome=run.outcome,
        outcomes=tuple(sorted(Counter(str(entry.get("outcome")) for entry in criteria).items())),
        reference=tuple(
            (str(entry.get("id")), str(entry.get("outcome")), entry.get("shift_percent"))
            for entry in criteria
            if (entry.get("adapter"), entry.get("point")) in points
        ),
    )
