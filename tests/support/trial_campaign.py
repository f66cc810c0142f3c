# SPDX-License-Identifier: Apache-2.0
"""Campaigns of trials without a bench: planned from the shipped suite, with records that a test wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual.base.resources import project_root
from storqual.plan import PlanRequest
from storqual.plan.make import plan_run
from storqual.robustness.store import read_trials
from storqual.run import append_event, read_run
from tests.support.turn_records import keep_turn

if TYPE_CHECKING:
    from pathlib import Path

    from storqual.run import Run

INVENTORY = project_root() / "inventories" / "virtual"
REQUEST = PlanRequest(
    inventories=(INVENTORY,),
    candidate="stable",
    baseline="stable",
    suite="robustness",
    profile="quick",
    adapters=("fusion", "vscsi"),
    seed=5,
)


def plan_campaign(request: PlanRequest, folder: Path) -> Path:
    """The directory of a planned run in a folder."""
    path = plan_run(request, folder).path
    assert path is not None
    return path


def record(run: Run, number: int, **fields: Any) -> dict[str, Any]:
    """The record of a planned trial that passed; `fields` change it."""
    planned = read_trials(run).planned[number]
    return {
        **planned.to_json(),
        "bench": "vbench",
        "outcome": "passed",
        "reasons": [],
        "violations": [],
        "recovery_s": 1.0,
        "timeline": [[1.0, "fault", "begin"]],
        "disks": {},
        "boot_id": "b",
        **fields,
    }


def finished(folder: Path, request: PlanRequest = REQUEST, **failures: dict[str, Any]) -> Path:
    """A campaign in which every trial was made; `failures` change records by the id's first word and the arm."""
    path = plan_campaign(request, folder)
    run = read_run(path)
    for session, arm in read_trials(run).sessions:
        told = {"bench": "vbench", "session": session, "arm": arm, "boot_id": "b", "kernel": "6.1"}
        append_event(path, "session_started", told)
    for number, planned in enumerate(read_trials(run).planned):
        change = failures.get(f"{planned.fault}_{planned.arm}", {})
        keep_turn(path, record(run, number, **change))
    return path
