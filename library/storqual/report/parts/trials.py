# SPDX-License-Identifier: Apache-2.0
"""Trials: the matrix of faults, adapters and arms, and each trial that did not pass with its timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storqual.base.figures import DASH
from storqual.base.table import Table
from storqual.judge.numbers import plural
from storqual.robustness.matrix import Cell, matrix_of, repeat_command
from storqual.robustness.store import has_trials, read_trials

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from storqual.run import Run

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


@dataclass(frozen=True)
class FailedTrial:
    """A trial that did not pass: why, what happened when (seconds of its load), and how to make it again."""

    ident: str
    outcome: str
    reasons: tuple[str, ...]
    timeline: Table
    command: str


@dataclass(frozen=True)
class Trials:
    """A campaign of trials: fault by adapter by arm, and each trial that failed or proved nothing."""

    figures: tuple[tuple[str, str, str], ...]
    """For the first screen: name, value, and what it counts."""
    matrix: Table
    failed: tuple[FailedTrial, ...]
    left_out: tuple[str, ...]
    again: tuple[str, ...]
    """Trials that were cut short and made again: by what."""


def trials_of(run: Run) -> Trials | None:
    """The trials of a run; None for a campaign of measurements."""
    if not has_trials(run.document):
        return None
    files = read_trials(run)
    cells = matrix_of(files.records)
    rows = tuple(
        (
            cell.fault,
            cell.adapter,
            cell.arm,
            str(cell.trials),
            str(cell.failures),
            str(cell.void),
            f"{-(-cell.bound * 1000 // 1) / 10:.1f} %" if cell.trials else DASH,
            _seconds(cell.recovery_p50),
            _seconds(cell.recovery_worst),
        )
        for cell in cells
    )
    failed = tuple(_failed(run, record) for record in files.records if record["outcome"] != "passed")
    left_out = tuple(str(one) for one in run.document["plan"].get("left_out") or ())
    again = tuple(
        f"{event.fields['lost']['turn']}: {event.text('message')}"
        for event in run.events
        if event.kind == "block_finished" and event.fields.get("lost")
    )
    matrix = Table("Faults by adapter and arm", _HEADS, rows)
    figures = _figures(cells) if cells or not run.document["plan"].get("external") else ()
    return Trials(figures, matrix, failed, left_out, again)


def _figures(cells: Sequence[Cell]) -> tuple[tuple[str, str, str], ...]:
    adapters = plural(len({cell.adapter for cell in cells}), "adapter")
    trials, void = sum(cell.trials for cell in cells), sum(cell.void for cell in cells)
    worst = max((cell.recovery_worst for cell in cells if cell.recovery_worst is not None), default=None)
    return (
        (
            "Failed trials",
            f"{sum(cell.failures for cell in cells)} of {trials}",
            f"both arms; void (fault not proven): {void}",
        ),
        ("Faults", str(len({cell.fault for cell in cells if cell.trials})), f"kinds on {adapters}"),
        ("Worst recovery", _seconds(worst), "from the fault to the last I/O that failed or stalled"),
    )


def _seconds(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f} s"


def _failed(run: Run, record: Mapping[str, Any]) -> FailedTrial:
    rows = tuple((f"{at:.3f} s", str(what), str(text)) for at, what, text in record["timeline"])
    return FailedTrial(
        ident=str(record["id"]),
        outcome=str(record["outcome"]),
        reasons=tuple(map(str, record["reasons"])),
        timeline=Table(f"Timeline of {record['id']}", ("Time of the load", "What", "Text"), rows),
        command=repeat_command(run.document, str(record["id"])),
    )
