# SPDX-License-Identifier: Apache-2.0
"""From run directories to the cells that studies look at: samples streamed, metrics by the product's definitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from storqual.metrics import METRICS, Value
from storqual.model import load_suite
from storqual.plan.points import cells as suite_cells
from storqual.store import PlannedPoint, Run, iter_samples, read_run
from storqual.study.cells import METRICS as STUDIED
from storqual.study.cells import Cell

__all__ = ["cells_of_runs", "ports_of"]

_Name = tuple[str, str, str, str]
"""Run, bench, adapter, arm."""


def cells_of_runs(paths: Sequence[Path], *, arms: Sequence[str] = ("candidate",)) -> list[Cell]:
    """The measured points of runs, of the arms that are looked at.

    A subject is named by what tells it from the others: its adapter, with bench, drop and run where they differ.
    Raises BadInputError for what is no run, StorqualError for a damaged one.
    """
    found: dict[_Name, list[Cell]] = {}
    drops: dict[_Name, str] = {}
    for run in [read_run(path) for path in paths]:
        launches = _launches(run, arms)
        patterns = {
            (cell.workload, frozenset(cell.factors)): cell.pattern.values
            for cell in suite_cells(load_suite(run.input_file("suite")))
        }
        ports = {(bench, drive): port for bench in run.benches for drive, port in ports_of(run, bench).items()}
        for planned in run.plan.points:
            pattern = patterns.get((planned.workload, frozenset(planned.factors.items())), planned.factors)
            wired = {ports.get((planned.bench, drive)) for drive in planned.drives}
            for arm in arms:
                name = (run.name, planned.bench, planned.adapter, arm)
                values = launches.get((*planned.key, arm))
                if values:
                    drops[name] = run.arms[arm].drop if arm in run.arms else arm
                    found.setdefault(name, []).append(_cell(planned, pattern, max(1, len(wired - {None})), values))
    subjects = _subjects(drops)
    return [replace(cell, subject=subjects[name]) for name, cells in found.items() for cell in cells]


def ports_of(run: Run, bench: str) -> dict[str, tuple[str, int]]:
    """The adapter and the port of every drive of a bench, by the drive's id."""
    return {
        str(drive["id"]): (alias, int(drive.get("port") or 0))
        for alias, adapter in (run.benches[bench].get("adapters") or {}).items()
        for drive in adapter.get("drives") or ()
    }


def _launches(run: Run, arms: Sequence[str]) -> dict[tuple[str, str, str, str], list[dict[str, float]]]:
    """(bench, adapter, point, arm) -> the studied metrics of each launch that ran as asked."""
    found: defaultdict[tuple[str, str, str, str], list[dict[str, float]]] = defaultdict(list)
    for sample in iter_samples(run.path):
        if sample.status != "ok" or sample.arm not in arms:
            continue
        values = {name: METRICS[name].value(sample) for name in STUDIED}
        known = {name: value.value for name, value in values.items() if isinstance(value, Value)}
        found[(sample.bench, sample.adapter, sample.point, sample.arm)].append(known)
    return found


def _cell(
    planned: PlannedPoint, pattern: Mapping[str, Any], ports: int, launches: Sequence[Mapping[str, float]]
) -> Cell:
    return Cell(
        subject=planned.adapter,
        bench=planned.bench,
        adapter=planned.adapter,
        point=planned.point,
        workload=planned.workload,
        levels={**planned.factors, **planned.varied},
        varied=tuple(sorted(planned.varied)),
        pattern=pattern,
        drives=planned.drives,
        ports=ports,
        launches=tuple(launches),
    )


def _subjects(drops: Mapping[_Name, str]) -> dict[_Name, str]:
    """Names that tell subjects apart; drops of one name in several runs are told apart by their runs."""
    rows = {name: (name[2], name[1], drop, name[0]) for name, drop in drops.items()}
    varies = [len({row[column] for row in rows.values()}) > 1 for column in range(4)]
    # a run's id tells nothing to a reader where drop or bench do
    for columns in ((True, varies[1], varies[2], False), (True, varies[1], varies[2], True)):
        named = {
            name: " ".join(part for part, shown in zip(row, columns, strict=True) if shown)
            for name, row in rows.items()
        }
        if len(set(named.values())) == len(named):
            break
    return named
