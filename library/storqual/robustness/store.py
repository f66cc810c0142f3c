# SPDX-License-Identifier: Apache-2.0
"""Trials in a run directory: planned in run.json, made in `trials/`, each told once in the events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.robustness.plan import PlannedTrial
from storqual.robustness.suite import RobustnessSuite, load_robustness
from storqual.run import Run, append_event, sha256_of, write_json
from storqual_core.kit.errors import StorqualError

FOLDER = "trials"


@dataclass(frozen=True)
class TrialRunFiles:
    """A run of trials: its suite, all that is planned, and what was made of it, in order."""

    suite: RobustnessSuite
    planned: tuple[PlannedTrial, ...]
    sessions: tuple[tuple[str, str], ...]
    until_failure: bool
    records: tuple[Mapping[str, Any], ...]


def has_trials(document: Mapping[str, Any]) -> bool:
    """Whether a run.json plans trials."""
    return "trials" in document["plan"]


def read_trials(run: Run) -> TrialRunFiles:
    """The trials of a run. Raises StorqualError for a record that is not what the events say of it."""
    plan = run.document["plan"]
    records = []
    for event in run.events:
        if event.kind != "trial_finished":
            continue
        path = run.path / FOLDER / f"{event.text('trial')}.json"
        data = path.read_bytes() if path.is_file() else b""
        if sha256_of(data) != event.text("sha256"):
            raise StorqualError(f"{path}: is not the record that the run's events tell of; the run is damaged")
        records.append(json.loads(data))
    return TrialRunFiles(
        suite=load_robustness(run.input_file("suite")),
        planned=tuple(PlannedTrial.from_json(line) for line in plan["trials"]),
        sessions=tuple((session["id"], session["arm"]) for session in plan["sessions"]),
        until_failure=bool(plan.get("until_failure")),
        records=tuple(records),
    )


def keep_record(run: Path, record: Mapping[str, Any]) -> None:
    """Write a trial's record, then the event that makes it count."""
    path = run / FOLDER / f"{record['id']}.json"
    write_json(path, record)
    told = {name: record[name] for name in ("bench", "session", "outcome", "boot_id")}
    # the guard's count of what was written outside the claims rests on the counters that each trial ends with
    told |= {"end": {"disks": record["disks"]}, "trial": record["id"]}
    append_event(run, "trial_finished", {**told, "sha256": sha256_of(path.read_bytes())})
