# SPDX-License-Identifier: Apache-2.0
"""Runs of foreign programs in a run directory: planned in run.json, kept in `external/`, told in the events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storqual.robustness.external_plan import PlannedExternal
from storqual.robustness.suite import RobustnessSuite, load_robustness
from storqual.run import Run, append_event, sha256_of, write_json
from storqual_core.kit.errors import StorqualError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "external"


@dataclass(frozen=True)
class ExternalFiles:
    """The foreign programs of a run: its suite, all that is planned, and the records of what was run, in order."""

    suite: RobustnessSuite
    planned: tuple[PlannedExternal, ...]
    sessions: tuple[tuple[str, str], ...]
    records: tuple[Mapping[str, Any], ...]


def read_external(run: Run) -> ExternalFiles:
    """The programs of a run, none for one without. Raises StorqualError for a record that was changed."""
    plan = run.document["plan"]
    planned = tuple(PlannedExternal.from_json(line) for line in plan.get("external") or ())
    records = {}
    for event in run.events:
        if event.kind == "external_finished":
            ident = event.text("program")
            path = run.path / FOLDER / f"{ident}.json"
            data = path.read_bytes() if path.is_file() else b""
            if sha256_of(data) != event.text("sha256"):
                raise StorqualError(f"{path}: is not the record that the run's events tell of; the run is damaged")
            records[ident] = json.loads(data)
    return ExternalFiles(
        suite=load_robustness(run.input_file("suite")),
        planned=planned,
        sessions=tuple((session["id"], session["arm"]) for session in plan["sessions"]),
        records=tuple(records.values()),
    )


def keep_external(run: Path, record: Mapping[str, Any]) -> None:
    """Write the record of one run of a program, then the event that makes it count."""
    path = run / FOLDER / f"{record['id']}.json"
    write_json(path, record)
    told = {name: record[name] for name in ("bench", "session", "outcome", "boot_id")}
    told |= {"end": {"disks": record["disks"]}, "program": record["id"]}
    append_event(run, "external_finished", {**told, "sha256": sha256_of(path.read_bytes())})
