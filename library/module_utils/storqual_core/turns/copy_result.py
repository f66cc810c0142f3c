# SPDX-License-Identifier: Apache-2.0
"""What copy programs (dd, sg_dd) said of the reads of one launch: a status, a sentence of why, and primitives.

Each program tells its counts when the launch begins and when it ends; what lies between is the launch. They tell no
latency and nothing per second, so such primitives are not there.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Callable, Mapping, NamedTuple

from ..kit.errors import ToolError
from ..tools import dd, sg_dd
from ..tools.dd import CopyReport, CopySummary
from .fio_result import SHORT_BELOW, FioResult

_UNSURE = 0.01
"""The share of a launch's time that its printing may leave open."""
_OK = ("", "")


class CopyProgram(NamedTuple):
    """How a program is started, read, and what one of its records is (None: one read)."""

    argv: Callable[..., list[str]]
    parse: Callable[[str], CopyReport]
    record_bytes: int | None
    is_counted: bool
    """Whether the block layer counts its reads on every kernel."""


COPY_PROGRAMS: Mapping[str, CopyProgram] = {
    "dd": CopyProgram(dd.argv, dd.parse_report, dd.RECORD_BYTES, is_counted=True),
    "sg_dd": CopyProgram(sg_dd.argv, sg_dd.parse_report, sg_dd.RECORD_BYTES, is_counted=False),
}


@dataclass(frozen=True)
class Copy:
    """One process that ended: the drive that it read, what it said, and how it ended (negative: by that signal)."""

    drive: str
    said: str
    exit_status: int


@dataclass(frozen=True)
class Copies:
    """The processes of a launch, one a drive, each with reads of `bs` bytes."""

    program: str
    bs: int
    ended: tuple[Copy, ...]


def copies_result(copies: Copies, *, asked_s: float, in_time: bool) -> FioResult:
    """Judge the processes of a launch together. Raises KeyError for a program that is none; nothing for any text."""
    read = [_read(copies, one) for one in copies.ended]
    runtimes = [one.time_ns for one in read if one.time_ns is not None]
    runtime_ns = max((sum(time) // 2 for time in runtimes), default=0)
    reads = sum(one.reads for one in read)
    # where one ends early the others are not asked any more: what they lack says nothing
    problems = sorted((one for one in read if one.status != "ok"), key=lambda one: one.status == "lost")
    primitives: dict[str, Any] = {
        "runtime_ns": runtime_ns,
        "fio_errors": sum(one.status == "io_error" for one in read),
        "read_ios": reads,
        "read_bytes": reads * copies.bs,
        "write_ios": 0,
        "write_bytes": 0,
    }
    status, reason = (problems[0].status, problems[0].reason) if problems else ("ok", "")
    shortest = min((sum(time) // 2 for time in runtimes), default=0)
    if not in_time:
        status, reason = "killed", f"storqual gave up on {copies.program}: it did not end when it was told to"
    elif not read:
        status, reason = "refused", f"{copies.program} was not started on any drive"
    elif status == "ok" and shortest < SHORT_BELOW * asked_s * 1e9:
        status, reason = "short", f"{copies.program} told of {shortest / 1e9:.3g} of {asked_s:g} s"
    open_ns = max((most - least for least, most in runtimes), default=0)
    suspect = (f"{copies.program} prints its time too coarsely for a launch of {asked_s:g} s",)
    unsure = status == "ok" and open_ns > _UNSURE * runtime_ns
    notes = tuple(dict.fromkeys(note for one in read for note in one.notes))
    counts = tuple(one.reads for one in read)
    return FioResult(status, reason, primitives, notes, suspect if unsure else (), "", counts)


@dataclass(frozen=True)
class _Read:
    """One process: its status, its reads between its two summaries, and their time as an interval."""

    status: str
    reason: str
    reads: int = 0
    time_ns: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()


def _read(copies: Copies, one: Copy) -> _Read:
    program = COPY_PROGRAMS[copies.program]
    where = f"{copies.program} on {one.drive}"
    try:
        report = program.parse(one.said)
    except ToolError as problem:
        return _Read("lost", f"{where}: {problem}")
    status, reason = _ended(where, one.exit_status, report)
    if len(report.summaries) != 2:
        told = f"{where} told its counts {len(report.summaries)} times, expected at the begin and at the end"
        return _Read(status or "lost", reason or told, notes=report.notes)
    first, last = report.summaries
    per_read = copies.bs // (program.record_bytes or copies.bs)
    records = last.records_in - first.records_in
    time_ns = last.time_ns[0] - first.time_ns[1], last.time_ns[1] - first.time_ns[0]
    wrong = [doubt for each in report.summaries for doubt in _misfits(each, copies.bs, per_read)]
    if not status and (wrong or records < 0 or records % per_read or time_ns[0] < 0):
        status, reason = "lost", f"{where}: {wrong[0] if wrong else 'its counts do not fit together'}"
    elif not status and not records:
        status, reason = "refused", f"{where} read nothing"
    return _Read(status or "ok", reason, max(records, 0) // per_read, time_ns, report.notes)


def _ended(where: str, exit_status: int, report: CopyReport) -> tuple[str, str]:
    """How a process went wrong by its exit status; nothing when it read until it was interrupted."""
    if exit_status == -signal.SIGINT:
        return _OK
    said = report.notes[-1] if report.notes else "it printed nothing"
    if exit_status < 0:
        return "killed", f"{where} was ended by signal {-exit_status}: {said}"
    if exit_status == 0:
        return "short", f"{where} reached the end of its data before the launch was over"
    if not report.summaries:
        return "refused", f"{where} did not run (exit status {exit_status}): {said}"
    return "io_error", f"{where} ended with exit status {exit_status}: {said}"


def _misfits(summary: CopySummary, bs: int, per_read: int) -> list[str]:
    """What in a summary contradicts itself: it may be told between a read and its count, one read early or late."""
    written = summary.records_out * (bs // per_read)
    least, most = summary.bytes
    slack = bs if per_read > 1 else 0
    told = []
    if summary.partial:
        told.append("it read less than it asked for")
    if not 0 <= summary.records_in - summary.records_out <= per_read:
        told.append(f"it tells {summary.records_in} records in and {summary.records_out} out")
    if not least - slack <= written <= most + slack:
        told.append(f"it tells {summary.records_out} records and other bytes")
    return told
