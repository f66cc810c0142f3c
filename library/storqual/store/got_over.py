# SPDX-License-Identifier: Apache-2.0
"""How a campaign that was resumed put right what had gone wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.store.measured import is_measured
from storqual.store.records import planned_session

if TYPE_CHECKING:
    from storqual.store.records import Event
    from storqual.store.run import Run

__all__ = ["got_over"]

_MEASURED = "its launches were measured later"


def got_over(run: Run, event: Event) -> str:
    """How the campaign got over a failure that `event` tells; empty when it did not, or when there is none.

    What the bench did meanwhile is not undone: a panic, a drive that vanished. A task that failed is one that was
    tried again: a resumed campaign repeats it, and what fails again is on record again. What a reset cut off is
    measured in a session of its own. Raises StorqualError for a block file that is damaged.
    """
    if event.kind == "block_finished":
        lost = event.text("outcome") not in ("", "done")
        return _MEASURED if lost and is_measured(run, event.bench or "", [event.text("block")]) else ""
    if event.kind == "session_lost":
        planned = (event.bench, planned_session(event.text("session")))
        blocks = [block for one in run.sessions if (one.bench, one.id) == planned for block in one.blocks]
        return _MEASURED if is_measured(run, event.bench or "", blocks) else ""
    return _tried_again(run, event)


def _tried_again(run: Run, event: Event) -> str:
    later = run.events[run.events.index(event) + 1 :]
    for other in (one for one in later if one.bench in (event.bench, None)):
        if event.kind == "provision_failed" and other.kind == "session_started":
            if other.fields.get("session") == event.fields.get("session"):
                return "the session started later"
        elif event.kind == "restore_failed" and other.kind == "restored":
            return "it was later"
        elif event.kind == "failed" and other.kind == "resumed":
            return "the campaign was resumed and went on"
    return ""
