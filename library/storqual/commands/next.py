# SPDX-License-Identifier: Apache-2.0
"""`storqual next`: what a bench does next, and the files that it needs for that."""

from __future__ import annotations

from pathlib import Path

from storqual.campaign import Provision, RunBlock, Step, Worth, next_step, session_boot
from storqual.campaign.worth import nothing_more
from storqual.store import append_event, read_run, write_block

__all__ = ["next_command"]


def next_command(path: Path, bench: str, *, boot_id: str | None = None, worth: Worth = nothing_more) -> Step:
    """The next step of `bench`; block files that it needs are written before it is told.

    `boot_id` is what the bench says of itself now: when a session's bench was booted since, the session is recorded
    as lost and goes on as a new one.
    """
    run = read_run(path)
    step = next_step(run, bench, worth=worth)
    if boot_id and isinstance(step, RunBlock) and not step.resume:
        expected = session_boot(run, bench, step.session)
        if expected and expected != boot_id:
            reason = f"the bench was booted in between (boot {expected}, now {boot_id})"
            append_event(path, "session_lost", {"bench": bench, "session": step.session, "reason": reason})
            run = read_run(path)
            step = next_step(run, bench, worth=worth)
    if isinstance(step, Provision):
        for block in step.blocks:
            write_block(path, block)
        if step.added:
            append_event(
                path, "session_planned", {"bench": bench, "session": step.session.id, "plan": step.session.to_json()}
            )
    return step
