# SPDX-License-Identifier: Apache-2.0
"""What a run's events say about one bench: sessions that started or were lost, batches that ended, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storqual.run.records import Event, PlannedSession


@dataclass
class Progress:
    """The state of a bench's part of a campaign. `halt` is why it does not go on, until somebody resumes."""

    boots: dict[str, str] = field(default_factory=dict)
    """Started session -> the boot it runs in."""
    lost: dict[str, str] = field(default_factory=dict)
    """Session that cannot go on -> why."""
    started: set[str] = field(default_factory=set)
    """Blocks that were started."""
    ended: dict[str, str] = field(default_factory=dict)
    """Block -> how it ended: done, refused, stopped, lost."""
    added: list[PlannedSession] = field(default_factory=list)
    """Sessions that were planned since the plan."""
    more: dict[str, list[str]] = field(default_factory=dict)
    """Session -> batches that were planned for it since it was."""
    halt: str = ""


def read_progress(events: Iterable[Event], bench: str) -> Progress:
    """Follow the events of `bench` in their order."""
    progress = Progress()
    for event in events:
        if event.bench in (bench, None):
            _follow(progress, event)
    return progress


def _follow(progress: Progress, event: Event) -> None:
    session, batch = event.text("session"), event.text("block")
    match event.kind:
        case "session_started":
            progress.boots[session] = event.text("boot_id")
        case "session_lost":
            progress.lost.setdefault(session, event.text("reason"))
        case "session_planned":
            progress.added.append(PlannedSession.from_json(event.fields["plan"]))
        case "block_planned":
            progress.more.setdefault(session, []).append(batch)
        case "block_started":
            progress.started.add(batch)
        case "block_finished":
            _finish(progress, session, batch, event)
        case "provision_failed":
            progress.halt = f"session {session} could not be provisioned: {event.text('reason')}"
        case "resumed":
            progress.halt = ""


def _finish(progress: Progress, session: str, batch: str, event: Event) -> None:
    outcome = progress.ended[batch] = event.text("outcome")
    why = event.text("message") or f"batch {batch} ended {outcome}"
    if outcome != "done":
        # the launches that have no sample are tried in a session of their own, if the campaign goes on
        progress.lost.setdefault(session, why)
    if outcome not in ("done", "lost"):
        progress.halt = f"batch {batch} {outcome}: {why}"
