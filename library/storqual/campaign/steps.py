# SPDX-License-Identifier: Apache-2.0
"""How far a bench is in its part of a campaign, as the run's events tell it, and the steps that can come next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from storqual.run.records import Event, PlannedSession


@dataclass
class CampaignProgress:
    """The state of a bench's part of a campaign. `halt` is why it does not go on, until somebody resumes."""

    boots: dict[str, str] = field(default_factory=dict)
    """Started session -> the boot it runs in."""
    lost: dict[str, str] = field(default_factory=dict)
    """Session that cannot go on -> why."""
    started: set[str] = field(default_factory=set)
    """Blocks that were started."""
    ended: dict[str, str] = field(default_factory=dict)
    """Block -> how it ended: done, refused, stopped, lost."""
    bounded: set[str] = field(default_factory=set)
    """Sessions whose loss was expected, or has a limit of its own: trying them again is not counted."""
    added: list[PlannedSession] = field(default_factory=list)
    """Sessions that were planned since the plan."""
    more: dict[str, list[str]] = field(default_factory=dict)
    """Session -> batches that were planned for it since it was."""
    hung: list[tuple[str, str]] = field(default_factory=list)
    """Block and turn of each hang; both are empty for one in a boot."""
    failed: str = ""
    """The first turn whose record says that it failed."""
    halt: str = ""


def read_progress(events: Iterable[Event], bench: str) -> CampaignProgress:
    progress = CampaignProgress()
    for event in events:
        if event.bench in (bench, None):
            _follow(progress, event)
    return progress


def _follow(progress: CampaignProgress, event: Event) -> None:
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
        case "turn_finished":
            progress.bounded.add(session)
            if event.text("outcome") == "failed":
                progress.failed = progress.failed or event.text("turn")
            if event.fields.get("ends_session"):
                progress.lost.setdefault(session, f"after {event.text('turn')} the bench is set up again")
        case "bench_hung":
            progress.hung.append((batch, event.text("turn")))
            # the point is not tried again, which bounds it
            progress.bounded |= {session} if event.text("turn") else set()
        case "provision_failed":
            progress.halt = f"session {session} could not be provisioned: {event.text('reason')}"
        case "resumed":
            progress.halt = ""


def _finish(progress: CampaignProgress, session: str, batch: str, event: Event) -> None:
    outcome = progress.ended[batch] = event.text("outcome")
    why = event.text("message") or f"batch {batch} ended {outcome}"
    if outcome != "done":
        # the launches that have no sample are tried in a session of their own, if the campaign goes on
        progress.lost.setdefault(session, why)
    if event.fields.get("lost") or event.fields.get("interrupted"):
        progress.bounded.add(session)
    if outcome not in ("done", "lost"):
        progress.halt = f"batch {batch} {outcome}: {why}"


@dataclass(frozen=True)
class Provision:
    """Bring the bench to the session's configuration, prove it, then record `session_started`.

    `blocks` are files that the session needs and that may not be written yet.
    """

    session: PlannedSession
    spec: Mapping[str, Any]
    number: int
    of: int
    batches: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `storqual next --json` prints."""
        return {
            "action": "provision",
            "session": self.session.to_json(),
            "spec": dict(self.spec),
            "number": self.number,
            "of": self.of,
        }


@dataclass(frozen=True)
class RunBatch:
    """Run a batch. `resume`: it was started and its end is not known: attach to it or collect its spool.

    `boot_id` is the boot that the session belongs to: a bench in another boot must not start it.
    """

    session: str
    batch: str
    resume: bool
    boot_id: str
    number: int
    of: int

    def to_json(self) -> dict[str, Any]:
        """What `storqual next --json` prints."""
        named = {name: getattr(self, name) for name in ("session", "resume", "boot_id", "number", "of")}
        return {"action": "block", "block": self.batch, "file": f"blocks/{self.batch}.json", **named}


@dataclass(frozen=True)
class Stop:
    """Nothing more to do on this bench. `complete`: because everything that was worth measuring is measured."""

    reason: str
    complete: bool

    def to_json(self) -> dict[str, Any]:
        """What `storqual next --json` prints."""
        return {"action": "stop", "reason": self.reason, "complete": self.complete}


Step = Provision | RunBatch | Stop


@dataclass(frozen=True)
class Further:
    """Blocks beyond the plan: those of new `sessions`, and others that go on in a session that was planned before.

    `ramps` are points whose launches in them have a longer ramp for the first time: the fields of their events.
    """

    reason: str
    batches: tuple[Mapping[str, Any], ...]
    sessions: tuple[PlannedSession, ...] = ()
    ramps: tuple[Mapping[str, Any], ...] = ()
