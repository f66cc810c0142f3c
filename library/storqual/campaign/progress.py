# SPDX-License-Identifier: Apache-2.0
"""What a run's events say about one bench: sessions that started or were lost, blocks that ended, and how."""

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
    """Session -> blocks that were planned for it since it was."""
    halt: str = ""


def read_progress(events: Iterable[Event], bench: str) -> Progress:
    """Follow the events of `bench` in their order."""
    progress = Progress()
    for event in events:
        if event.bench not in (bench, None):
            continue
        follow = _FOLLOW.get(event.kind)
        if follow is not None:
            follow(progress, event)
    return progress


def _session_started(progress: Progress, event: Event) -> None:
    progress.boots[event.text("session")] = event.text("boot_id")


def _session_lost(progress: Progress, event: Event) -> None:
    progress.lost.setdefault(event.text("session"), event.text("reason"))


def _session_planned(progress: Progress, event: Event) -> None:
    progress.added.append(PlannedSession.from_json(event.fields["plan"]))


def _block_planned(progress: Progress, event: Event) -> None:
    progress.more.setdefault(event.text("session"), []).append(event.text("block"))


def _block_started(progress: Progress, event: Event) -> None:
    progress.started.add(event.text("block"))


def _block_finished(progress: Progress, event: Event) -> None:
    outcome, block = event.text("outcome"), event.text("block")
    progress.ended[block] = outcome
    said = event.text("message") or f"block {block} ended {outcome}"
    if outcome != "done":
        # the launches that have no sample are tried in a session of their own, if the campaign goes on
        progress.lost.setdefault(event.text("session"), said)
    if outcome not in ("done", "lost"):
        progress.halt = f"block {block} {outcome}: {said}"


def _provision_failed(progress: Progress, event: Event) -> None:
    progress.halt = f"session {event.text('session')} could not be provisioned: {event.text('reason')}"


def _resumed(progress: Progress, _event: Event) -> None:
    progress.halt = ""


_FOLLOW = {
    "session_started": _session_started,
    "session_lost": _session_lost,
    "session_planned": _session_planned,
    "block_planned": _block_planned,
    "block_started": _block_started,
    "block_finished": _block_finished,
    "provision_failed": _provision_failed,
    "resumed": _resumed,
}
