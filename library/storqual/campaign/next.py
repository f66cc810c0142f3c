# SPDX-License-Identifier: Apache-2.0
"""`storqual next`: what a bench does next, and the files that it needs for that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from storqual.campaign import Further, Provision, RunBatch, Step, Stop, next_step, session_boot
from storqual.run import Run, append_event, read_run, write_block

BeyondPlan = Callable[[Run, str], Further | Stop]
"""Called with a run and a bench whose sessions are all measured; a pure function of the run's files.

What it asks for is recorded (`session_planned`, `block_planned`) with its batch files beside those of the plan, so
that the state of a campaign stays in its files alone.
"""


def nothing_more(_run: Run, _bench: str) -> Stop:
    """The planned sessions, then stop."""
    return Stop("everything that was planned is measured", complete=True)


def as_planned(run: Run, bench: str) -> Further | Stop:
    """What the plan wants: a campaign that may end at any look goes on until it is decided, any other stops."""
    if run.plan.fields.get("looks") != "every":
        return nothing_more(run, bench)
    from storqual.campaign.until_decided import until_decided  # noqa: PLC0415 - the judge is slow to import

    return until_decided(run, bench)


def next_command(path: Path, bench: str, *, boot_id: str | None = None, beyond: BeyondPlan = as_planned) -> Step:
    """The next step of `bench`; batch files that it needs are written before it is told.

    `boot_id` is what the bench says of itself now: when a session's bench was booted since, the session is recorded
    as lost and goes on as a new one. Where everything planned is measured, `beyond` says what else is.
    """
    run = read_run(path)
    step = next_step(run, bench)
    if isinstance(step, Stop) and step.complete:
        found = beyond(run, bench)
        if isinstance(found, Stop):
            _tell_why(path, run, bench, found)
            return found
        _plan_further(path, bench, found)
        run = read_run(path)
        step = next_step(run, bench)
    if boot_id and isinstance(step, RunBatch) and not step.resume:
        expected = session_boot(run, bench, step.session)
        if expected and expected != boot_id:
            reason = f"the bench was booted in between (boot {expected}, now {boot_id})"
            append_event(path, "session_lost", {"bench": bench, "session": step.session, "reason": reason})
            step = next_step(read_run(path), bench)
    if isinstance(step, Provision):
        for batch in step.batches:
            write_block(path, batch)
    return step


def _tell_why(path: Path, run: Run, bench: str, stop: Stop) -> None:
    """Record once why a campaign that could have gone on ended; the plan's own end needs no words."""
    said = any(event.kind == "note" and event.text("text") == stop.reason for event in run.events)
    if run.plan.fields.get("looks") == "every" and not said:
        append_event(path, "note", {"bench": bench, "text": stop.reason})


def _plan_further(path: Path, bench: str, further: Further) -> None:
    """Write the batches, then record them: a control node that is killed in between finds the same again."""
    for batch in further.batches:
        write_block(path, batch)
    new = {session.id for session in further.sessions}
    for session in further.sessions:
        fields = {"bench": bench, "session": session.id, "plan": session.to_json(), "reason": further.reason}
        append_event(path, "session_planned", fields)
    for batch in further.batches:
        if batch["session"] not in new:
            fields = {"bench": bench, "session": batch["session"], "block": batch["block"], "reason": further.reason}
            append_event(path, "block_planned", fields)
