# SPDX-License-Identifier: Apache-2.0
"""Third-party programs: how their tests compare on each adapter, and each kind of difference as a folded list."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storqual.base.table import Table
from storqual.judge.numbers import plural
from storqual.robustness.external_results import KINDS, Compared, Kind, compare_tests
from storqual.robustness.external_runs import read_external

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from storqual.run import Run

_TOLD: Mapping[Kind, str] = {
    "regression": "Regressions: passed in the baseline, not in the candidate",
    "failed": "Failed",
    "missing": "Not run in both arms",
    "flaky": "Flaky: repeats differ",
    "hung": "Hung in both arms",
    "fixed": "Fixed: not passed in the baseline, passed in the candidate",
    "known": "Known: not passed in both arms",
    "skipped": "Skipped by the program in both arms",
    "same": "Passed in both arms",
}
_OPEN: tuple[Kind, ...] = ("regression", "failed", "missing", "flaky", "hung")
_SHOWN: tuple[Kind, ...] = ("same", "known", "fixed", "regression", "flaky", "hung", "skipped", "missing")
_ALONE: tuple[Kind, ...] = ("same", "failed", "flaky", "hung", "skipped", "missing")


@dataclass(frozen=True)
class TestList:
    """The tests of one kind of a program on an adapter; unfolded where somebody must look."""

    title: str
    tests: Table
    unfolded: bool


@dataclass(frozen=True)
class ProgramRuns:
    """What a program did on one adapter: how each of its runs ended, and its tests by kind."""

    title: str
    runs: Table
    lists: tuple[TestList, ...]


@dataclass(frozen=True)
class Programs:
    """The programs of a campaign: counts by program and adapter, then each with its tests."""

    figures: tuple[tuple[str, str, str], ...]
    """For the first screen: name, value, and what it counts."""
    counts: Table
    programs: tuple[ProgramRuns, ...]


def programs_of(run: Run) -> Programs | None:
    """The programs of a run; None for one without."""
    files = read_external(run) if run.document["plan"].get("external") else None
    if files is None:
        return None
    arms = list(dict.fromkeys(one.arm for one in files.planned))
    tests = list(compare_tests(files.planned, files.records))
    places = list(dict.fromkeys((one.program, one.adapter) for one in files.planned))
    kinds = _ALONE if len(arms) == 1 else _SHOWN
    rows, programs = [], []
    for program, adapter in places:
        here = [test for test in tests if (test.program, test.adapter) == (program, adapter)]
        counted = Counter(test.kind for test in here)
        rows.append((program, adapter, str(len(here)), *(str(counted[kind]) for kind in kinds)))
        records = [one for one in files.records if (one["program"], one["adapter"]) == (program, adapter)]
        lists = tuple(_list(program, adapter, kind, here) for kind in KINDS if counted[kind])
        programs.append(ProgramRuns(f"{program} on {adapter}", _runs(program, adapter, records), lists))
    words = ["passed" if kind == "same" and len(arms) == 1 else kind for kind in kinds]
    heads = ("Program", "Adapter", "Tests", *(word.capitalize() for word in words))
    figures = _figures(tests, len({adapter for _, adapter in places}))
    return Programs(figures, Table("Tests of programs by adapter", heads, tuple(rows)), tuple(programs))


def _figures(tests: Sequence[Compared], adapters: int) -> tuple[tuple[str, str, str], ...]:
    counted = Counter(test.kind for test in tests)
    bad = counted["regression"] + counted["failed"]
    beside = (
        f"known {counted['known']}, hung {counted['hung']}, flaky {counted['flaky']}, missing {counted['missing']}"
    )
    return (("Failed tests of programs", f"{bad} of {len(tests)}", f"on {plural(adapters, 'adapter')}; {beside}"),)


def _runs(program: str, adapter: str, records: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            str(record["id"]),
            str(record["outcome"]),
            f"{record['seconds']:.0f} s",
            plural(len(record["tests"]), "test"),
            "; ".join(
                filter(None, (*record["reasons"], *record["problems"], str(record["recovered"]), *record["notes"]))
            ),
        )
        for record in records
    )
    heads = ("Run", "Ended", "Took", "Read", "What happened")
    return Table(f"Runs of {program} on {adapter}", heads, rows)


def _list(program: str, adapter: str, kind: Kind, tests: Sequence[Compared]) -> TestList:
    rows = tuple((test.name, test.reason) for test in tests if test.kind == kind)
    title = f"{_TOLD[kind]}: {len(rows)}"
    table = Table(f"{program} on {adapter}: {kind}", ("Test", "Result"), rows)
    return TestList(title, table, kind in _OPEN)
