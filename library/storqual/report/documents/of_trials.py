# SPDX-License-Identifier: Apache-2.0
"""What the documents of a release tell of a campaign of trials: which faults are tried, and what they showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from storqual.inputs.trials import Expectation
from storqual.judge.outcome import required_roles
from storqual.report.documents.document import Document, Row, Section, Table
from storqual.report.figures import seconds
from storqual.robustness.matrix import Cell, matrix_of
from storqual.robustness.store import read_trials
from storqual.run import Run
from storqual_core.data.faults import FAULTS


def planned_trials(run: Run) -> Document:
    """The plan of a campaign of trials. Raises BadInputError for a plan that cannot be read."""
    files = read_trials(run)
    arms, plan = list(run.arms), run.plan
    lasts = seconds(plan.expected_seconds, "run:/plan/expected_seconds")
    roles = " and ".join(role.replace("-", " ") for role in required_roles(run))
    counts = Counter((one.number, one.adapter) for one in files.planned if one.arm == arms[0])
    rows = tuple(
        Row(
            (
                files.suite.trials[number].fault.replace("_", " "),
                FAULTS[files.suite.trials[number].fault].sentence,
                adapter,
                files.suite.trials[number].load,
                str(count),
                _allowed(files.suite.trials[number].fault, files.suite.trials[number].expect),
            )
        )
        for (number, adapter), count in sorted(counts.items())
    )
    heads = ("Fault", "What happens", "Adapter", "Load", "Trials of each arm", "Allowed")
    loads = tuple(
        f"{name}: {one.workers} workers on {one.region // 1024} KiB, with a flush after {one.flush_every} writes."
        for name, one in files.suite.loads.items()
    )
    trials, sessions = len(files.planned), len(plan.sessions)
    how = f"{trials} trials in {sessions} sessions, about {lasts} of bench time; seed {plan.seed}."
    trial = (
        "In each trial a fault is caused under load at a drawn moment; afterwards all data is read back. A trial "
        "whose fault is not proven does not count."
    )
    left_out = tuple(f"{one}." for one in plan.fields.get("left_out") or ())
    return Document(
        kind="Test plan",
        title=" against ".join(run.arms[arm].drop for arm in ("candidate", "baseline") if arm in run.arms),
        subject=(f"Suite {run.suite.name}, profile {run.suite.profile}; run {run.name}",),
        sections=(
            Section("how", "How it is tried", (how, trial, f"A passing run is signed by: {roles}.")),
            Section("faults", "What is tried", (), Table("Faults with what is allowed", heads, rows)),
            Section("loads", "Loads", loads),
            Section("left-out", "What is not tried", left_out),
        ),
        foot="Made by storqual from run.json and the copies of its inputs, before or after the bench was touched.",
    )


def _allowed(fault: str, expect: Expectation) -> str:
    errors = {"none": False, "any": True, None: FAULTS[fault].io_errors}[expect.errors]
    told = f"recovery within {expect.recovery:g} s, no I/O longer than {expect.stall:g} s"
    return f"{told}, I/O errors while it lasts" if errors else f"{told}, no I/O error"


def tried(run: Run) -> tuple[Section, ...]:
    """For a customer: the faults that were tried on the candidate, and how many trials failed."""
    cells = [cell for cell in matrix_of(read_trials(run).records) if cell.arm == "candidate"]
    heads = ("Fault", "Adapter", "Trials", "Failed", "Recovery, longest")
    rows = tuple(
        Row(
            (
                cell.fault.replace("_", " "),
                cell.adapter,
                str(cell.trials),
                str(cell.failures),
                "" if cell.recovery_worst is None else f"{cell.recovery_worst:.1f} s",
            )
        )
        for cell in cells
    )
    return (
        Section("tested", "What was tested", tuple(_words(cells)), Table("Faults of the candidate", heads, rows)),
    )


def _words(cells: Sequence[Cell]) -> Iterator[str]:
    trials, failed = sum(cell.trials for cell in cells), sum(cell.failures for cell in cells)
    kinds = len({cell.fault for cell in cells})
    yield f"{kinds} kinds of faults were caused under load, in {trials} trials; all data was read back after each."
    yield "No trial failed." if not failed else f"{failed} trials failed."
