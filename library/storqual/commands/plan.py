# SPDX-License-Identifier: Apache-2.0
"""`storqual plan`: plan a campaign and make its run directory; `resume`: is a planned one still what it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.plan import PlanRequest, make_plan
from storqual.store import Run, append_event, create_run, read_run, sha256_of
from storqual_core.errors import BadInputError

__all__ = ["PlanRequest", "Planned", "check_resume", "plan_run"]


@dataclass(frozen=True)
class Planned:
    """A planned campaign. `path` is None when nothing was written (`--dry-run`)."""

    run: str
    path: Path | None
    points: int
    skipped: int
    sessions: int
    launches: int
    expected_seconds: float
    until: str
    unit: str
    expected_units: int
    most_units: int
    detectable: float | None
    margin: float
    warnings: tuple[str, ...]
    advice: tuple[str, ...]
    benches: Mapping[str, Mapping[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "run": self.run,
            "path": None if self.path is None else str(self.path),
            "points": self.points,
            "skipped": self.skipped,
            "sessions": self.sessions,
            "launches": self.launches,
            "expected_seconds": self.expected_seconds,
            "until": self.until,
            "unit": self.unit,
            "expected_units": self.expected_units,
            "most_units": self.most_units,
            "detectable_percent": None if self.detectable is None else round(100 * self.detectable, 3),
            "margin_percent": round(100 * self.margin, 3),
            "warnings": list(self.warnings),
            "advice": list(self.advice),
            "benches": {name: dict(entry) for name, entry in self.benches.items()},
        }


def plan_run(request: PlanRequest, runs: Path, *, write: bool = True) -> Planned:
    """Plan, and write `runs/<run-id>/` when `write`. Raises BadInputError with every problem of every file."""
    campaign = make_plan(request)
    path = None
    if write:
        path = create_run(runs, campaign.run, campaign.document, inputs=campaign.inputs, blocks=campaign.blocks)
    plan = campaign.document["plan"]
    return Planned(
        run=campaign.run,
        path=path,
        points=sum(not point["skipped"] for point in plan["points"]),
        skipped=sum(bool(point["skipped"]) for point in plan["points"]),
        sessions=len(plan["sessions"]),
        launches=plan["launch_count"],
        expected_seconds=plan["expected_seconds"],
        until="decided" if plan["looks"] == "every" else "planned",
        unit="pairs" if plan["design"] == "interleaved" else "sessions of each arm",
        expected_units=plan["expected_units"],
        most_units=max(bench.effort.most for bench in campaign.benches),
        detectable=plan["detectable"],
        margin=plan["margin"],
        warnings=campaign.warnings,
        advice=tuple(plan["advice"]),
        benches={
            bench.bench.name: {
                "adapters": list(bench.under_test),
                "design": bench.design.kind,
                "change": bench.design.change,
                "sessions": [f"{session.id} {'/'.join(session.arms)}" for session in bench.sessions],
                "expected_seconds": round(bench.seconds, 1),
            }
            for bench in campaign.benches
        },
    )


def check_resume(path: Path, files: Mapping[str, Path] | None = None) -> Run:
    """Open a run to go on with it, and record that. `files` are inputs that the user named again.

    Raises BadInputError when a copy in inputs/ or a named file has another digest than the plan's.
    """
    run = read_run(path)
    problems = run.verify_inputs()
    planned = run.document.get("inputs") or {}
    for name, file in (files or {}).items():
        try:
            found = sha256_of(file.read_bytes())
        except OSError as problem:
            problems.append(f"{file}: found no readable file ({problem.strerror}), expected the {name} of the plan")
            continue
        expected = (planned.get(name) or {}).get("sha256")
        if found != expected:
            problems.append(f"{file}: found a {name} that changed since the plan ({found}), expected {expected}")
    if problems:
        raise BadInputError(problems)
    append_event(path, "resumed", {})
    return read_run(path)
