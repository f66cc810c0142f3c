# SPDX-License-Identifier: Apache-2.0
"""The run directory: created, appended to, read, derived again and closed; quick to import for `next`."""

from storqual.run.collect import Collected, collect, read_batch
from storqual.run.coverage import (
    Coverage,
    Skipped,
    coverage,
    finish_run,
    guard_ledger,
    ledger,
    provisioned,
)
from storqual.run.create import InputFile, create_run, new_run_id, write_batch
from storqual.run.event_kinds import EVENT_KINDS
from storqual.run.events import append_check, append_event, iter_events
from storqual.run.layout import is_signed, locked, read_run_json, sha256_of, write_bytes, write_json
from storqual.run.records import (
    REFERENCE_POINT,
    Arm,
    Check,
    Event,
    Launch,
    Plan,
    PlannedPoint,
    PlannedSession,
    RawFile,
    Sample,
    SuiteRef,
    planned_session,
    read_launches,
    read_samples,
)
from storqual.run.reopened import is_measured, recovered
from storqual.run.run import Run, read_run

__all__ = [
    "EVENT_KINDS",
    "REFERENCE_POINT",
    "Arm",
    "Check",
    "Collected",
    "Coverage",
    "Event",
    "InputFile",
    "Launch",
    "Plan",
    "PlannedPoint",
    "PlannedSession",
    "RawFile",
    "Run",
    "Sample",
    "Skipped",
    "SuiteRef",
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
    "locked",
    "new_run_id",
    "planned_session",
    "provisioned",
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
