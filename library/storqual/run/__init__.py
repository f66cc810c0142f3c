# SPDX-License-Identifier: Apache-2.0
"""The run directory: created, appended to, read, derived again and closed; quick to import for `next`."""

from storqual.run.collect import collect, read_batch
from storqual.run.coverage import coverage, finish_run, guard_ledger, ledger
from storqual.run.create import InputFile, create_run, new_run_id, write_batch
from storqual.run.event_kinds import EVENT_KINDS
from storqual.run.events import append_check, append_event, iter_events
from storqual.run.layout import is_signed, read_run_json, sha256_of, write_bytes, write_json
from storqual.run.records import (
    REFERENCE_POINT,
    Check,
    Event,
    Launch,
    PlannedPoint,
    Sample,
    planned_session,
    read_launches,
    read_samples,
)
from storqual.run.reopened import is_measured, recovered
from storqual.run.run import Run, read_run

__all__ = [
    "EVENT_KINDS",
    "REFERENCE_POINT",
    "Check",
    "Event",
    "InputFile",
    "Launch",
    "PlannedPoint",
    "Run",
    "Sample",
    "append_check",
    "append_event",
    "collect",
    "coverage",
    "create_run",
    "finish_run",
    "guard_ledger",
    "is_measured",
    "is_signed",
    "iter_events",
    "ledger",
    "new_run_id",
    "planned_session",
    "read_batch",
    "read_launches",
    "read_run",
    "read_run_json",
    "read_samples",
    "recovered",
    "sha256_of",
    "write_batch",
    "write_bytes",
    "write_json",
]
