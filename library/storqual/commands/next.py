# SPDX-License-Identifier: Apache-2.0
"""`storqual next`: what a bench does next, and the files that it needs for that."""

from __future__ import annotations

from pathlib import Path

from storqual.campaign import Further, Provision, RunBlock, Step, Stop, Worth, next_step, session_boot
from storqual.campaign.worth import as_planned
from storqual.store import Run, append_event, read_run, write_block

__all__ = ["next_command"]


def next_command(path: Path, bench: str, *, boot_id: str | None = None, worth: Worth = as_planned) -> Step:
    """The next step of `bench`; block files that it needs are written before it is told.

    `boot_id` is what the bench says of itself now: when a session's bench was booted since, the session is recorded
    as lost and goes on as a new one. Where everything planned is measured, `worth` says what else is to be.
    """
    run = read_run(path)
    step = next_step(run, bench)
    if isinstance(step, Stop) and step.complete:
        found = worth(run, bench)
        if isinstance(found, Stop):
            _tell_why(path, run, bench, found)
            return found
        _plan_further(path, bench, found)
        run = read_run(path)
        step = next_step(run, bench)
    if boot_id and isinstance(step, RunBlock) and not step.resume:
        expected = session_boot(run, bench, step.session)
        if expected and expected != boot_id:
            reason = f"the bench was booted in between (boot {expected}, now {boot_id})"
            append_event(path, "session_lost", {"bench": bench, "session": step.session, "reason": reason})
            step = next_step(read_run(path), bench)
    if isinstance(step, Provision):
        for block in step.blocks:
            write_block(path, block)
    return step


def _tell_why(path: Path, run: Run, bench: str, stop: Stop) -> None:
    """Record once why a campaign that could have gone on ended; the plan's own end needs no words."""
    said = any(event.kind == "note" and event.text("text") == stop.reason for event in run.events)
    if run.plan.fields.get("looks") == "every" and not said:
        append_event(path, "note", {"bench": bench, "text": stop.reason})


def _plan_further(path: Path, bench: str, further: Further) -> None:
    """Write the blocks, then record them: a control node that is killed in between finds the same again."""
    for block in further.blocks:
        write_block(path, block)
    new = {session.id for session in further.sessions}
    for session in further.sessions:
        fields = {"bench": bench, "session": session.id, "plan": session.to_json(), "reason": further.reason}
        append_event(path, "session_planned", fields)
    for block in further.blocks:
        if block["session"] not in new:
            fields = {"bench": bench, "session": block["session"], "block": block["block"], "reason": further.reason}
            append_event(path, "block_planned", fields)
