# SPDX-License-Identifier: Apache-2.0
"""What a bench is to do next: get ready for a session, run a batch, or stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storqual.run.records import PlannedSession


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
        return {
            "action": "block",
            "session": self.session,
            "block": self.batch,
            "file": f"blocks/{self.batch}.json",
            "resume": self.resume,
            "boot_id": self.boot_id,
            "number": self.number,
            "of": self.of,
        }


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
