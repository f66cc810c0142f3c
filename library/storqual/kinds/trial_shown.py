# SPDX-License-Identifier: Apache-2.0
"""Trials as people ask for them: counts, bound and recovery by fault, adapter and arm; failures with timelines."""

from __future__ import annotations

import re
import shlex
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.table import Table
from storqual.base.text import plural
from storqual.kinds.kind import FoldedList, Part, PlannedTurn, Section
from storqual.kinds.sweep_shown import show_coverage
from storqual.kinds.trial_checks import upper_bound
from storqual_core.data.faults import FAULTS

_REPETITION = re.compile(r"\.r[0-9]+\Z")
"""What the id of a repeated trial ends with."""


@dataclass(frozen=True)
class Cell:
    """One fault on one adapter in one arm. Trials are valid ones; times in seconds, None without a recovery."""

    fault: str
    adapter: str
    arm: str
    trials: int
    failures: int
    void: int
    bound: float
    recovery_p50: float | None
    recovery_worst: float | None


def matrix_of(records: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The cells in the order of faults, adapters and arms."""
    groups: defaultdict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    listed_records = list(records)
    several = len({record.get("bench") for record in listed_records}) > 1
    for record in listed_records:
        adapter = f"{record['bench']} {record['adapter']}" if several else record["adapter"]
        groups[(record["fault"], adapter, record["arm"])].append(record)
    cells = []
    for (fault, adapter, arm), listed in sorted(groups.items()):
        valid = [record for record in listed if record["outcome"] != "void"]
        failures = sum(record["outcome"] == "failed" for record in valid)
        times = [float(record["recovery_s"]) for record in valid if record["recovery_s"] is not None]
        cells.append(
            Cell(
                fault=fault,
                adapter=adapter,
                arm=arm,
                trials=len(valid),
                failures=failures,
                void=len(listed) - len(valid),
                bound=upper_bound(failures, len(valid)),
                recovery_p50=statistics.median(times) if times else None,
                recovery_worst=max(times, default=None),
            )
        )
    return cells


def repeat_command(run: Mapping[str, Any], bench: str, adapters: Iterable[str], trial: str, times: int = 20) -> str:
    """The command that makes one trial of a run (its run.json) again until it fails.

    `adapters` are those of its bench in the plan.
    """
    trial = _REPETITION.sub("", trial)
    suite = run["suite"]
    words: list[str] = ["storqual", "qualify"]
    for source in run["inventories"]:
        words += ["-i", str(source)]
    # files instead of names: a drop or a suite may have been given by its path
    for arm in (*run["arms"], "suite"):
        words += [f"--{arm}", str(run["inputs"][arm]["source"])]
    words += [
        "--profile",
        str(suite["profile"]),
        "--adapters",
        ",".join(sorted(set(adapters))),
        "--limit",
        bench,
    ]
    words += ["--seed", str(run["plan"]["seed"]), "--trial", trial, "--repeat", str(times)]
    return shlex.join(words)


_DASH = "\N{EN DASH}"
_HEADS = (
    "Fault",
    "Adapter",
    "Arm",
    "Trials",
    "Failed",
    "Void",
    "Failure rate below, at 95 %",
    "Recovery p50",
    "Worst",
)


def show_trials(
    planned: Sequence[PlannedTurn], records: Sequence[Mapping[str, Any]], document: Mapping[str, Any]
) -> Section:
    """The matrix, and each trial that failed or proved nothing."""
    cells = matrix_of(records)
    rows = tuple(
        (
            *(cell.fault, cell.adapter, cell.arm, str(cell.trials), str(cell.failures), str(cell.void)),
            f"{-(-cell.bound * 1000 // 1) / 10:.1f} %" if cell.trials else _DASH,
            _seconds(cell.recovery_p50),
            _seconds(cell.recovery_worst),
        )
        for cell in cells
    )
    failed = tuple(_failed(document, planned, one) for one in records if one["outcome"] != "passed")
    parts = [Part("", Table("Faults by adapter and arm", _HEADS, rows), () if failed else ("Every trial passed.",))]
    parts += show_coverage(records)
    if failed:
        parts.append(Part("Trials that did not pass", folded=failed))
    left_out = tuple(map(str, document["plan"].get("left_out") or ()))
    if left_out:
        parts.append(Part("Not tried", sentences=left_out))
    return Section("trials", "Trials", tuple(parts), figures=_figures(cells))


def _figures(cells: Sequence[Cell]) -> tuple[tuple[str, str, str], ...]:
    adapters = plural(len({cell.adapter for cell in cells}), "adapter")
    trials, void = sum(cell.trials for cell in cells), sum(cell.void for cell in cells)
    failures = f"{sum(cell.failures for cell in cells)} of {trials}"
    worst = max((cell.recovery_worst for cell in cells if cell.recovery_worst is not None), default=None)
    return (
        ("Failed trials", failures, f"both arms; void (fault not proven): {void}"),
        ("Faults", str(len({cell.fault for cell in cells if cell.trials})), f"kinds on {adapters}"),
        ("Worst recovery", _seconds(worst), "from the fault to the last I/O that failed or stalled"),
    )


def _seconds(value: float | None) -> str:
    return _DASH if value is None else f"{value:.1f} s"


def _failed(document: Mapping[str, Any], planned: Sequence[PlannedTurn], record: Mapping[str, Any]) -> FoldedList:
    adapters = [turn.adapter for turn in planned if turn.bench == record["bench"]]
    rows = tuple((f"{at:.3f} s", str(what), str(text)) for at, what, text in record["timeline"])
    return FoldedList(
        f"{record['id']} {record['outcome']}: {record['reasons'][0]}",
        Table(f"Timeline of {record['id']}", ("Time of the load", "What", "Text"), rows),
        tuple(map(str, record["reasons"])),
        repeat_command(document, str(record["bench"]), adapters, str(record["id"])),
    )


_PLANNED = ("Fault", "What happens", "Adapter", "Load", "Trials of each arm", "Allowed")
_HOW = (
    "In each trial a fault is caused under load at a drawn moment; afterwards all data is read back. A trial whose "
    "fault is not proven does not count."
)


def planned_faults(planned: Sequence[PlannedTurn], document: Mapping[str, Any]) -> tuple[Part, ...]:
    """What a test plan says of the trials of a run."""
    first = next((turn.arm for turn in planned), "")
    counts = Counter(
        (turn.point, turn.adapter, _load(turn.request["load"]), _allowed(turn.point, turn.request["expect"]))
        for turn in planned
        if turn.arm == first
    )
    rows = tuple(
        (fault.replace("_", " "), FAULTS[fault].sentence, adapter, load, str(count), allowed)
        for (fault, adapter, load, allowed), count in sorted(counts.items())
    )
    left_out = tuple(f"{one}." for one in document["plan"].get("left_out") or ())
    tried = Part("What is tried", Table("Faults with what is allowed", _PLANNED, rows), (_HOW,))
    return (tried, *([Part("What is not tried", sentences=left_out)] if left_out else []))


def _load(load: Mapping[str, Any]) -> str:
    if load.get("sweep"):
        rows, commands = (len(load["sweep"][name]) for name in ("rows", "commands"))
        return f"{rows} writes in combinations of size, address, memory and way, {commands} seldom commands"
    return f"{load['workers']} workers on {load['sectors'] // 2} KiB, a flush after {load['flush_every']} writes"


def _allowed(fault: str, expect: Mapping[str, Any]) -> str:
    errors = {"none": False, "any": True, None: FAULTS[fault].io_errors}[expect["errors"]]
    allowed = f"recovery within {expect['recovery']:g} s, no I/O longer than {expect['stall']:g} s"
    return f"{allowed}, I/O errors while it lasts" if errors else f"{allowed}, no I/O error"


def tried_faults(records: Sequence[Mapping[str, Any]]) -> Part:
    """For a customer: the faults that were tried on the candidate, and how many trials failed."""
    cells = [cell for cell in matrix_of(records) if cell.arm == "candidate"]
    rows = tuple(
        (
            *(cell.fault.replace("_", " "), cell.adapter, str(cell.trials), str(cell.failures)),
            "" if cell.recovery_worst is None else f"{cell.recovery_worst:.1f} s",
        )
        for cell in cells
    )
    trials, failed = sum(cell.trials for cell in cells), sum(cell.failures for cell in cells)
    kinds = len({cell.fault for cell in cells})
    sentences = (
        f"{kinds} kinds of faults were caused under load, in {trials} trials; all data was read back after each.",
        "No trial failed." if not failed else f"{failed} trials failed.",
    )
    heads = ("Fault", "Adapter", "Trials", "Failed", "Recovery, longest")
    return Part("Faults", Table("Faults of the candidate", heads, rows), sentences)
