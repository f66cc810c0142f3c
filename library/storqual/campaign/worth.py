# SPDX-License-Identifier: Apache-2.0
"""What is worth measuring next, once everything planned is measured: the seam where a campaign goes on or stops.

What is found worth measuring is recorded (`session_planned`, `block_planned`) with its block files beside those of
the plan, so that the state of a campaign stays in its files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from storqual.campaign.steps import Stop
from storqual.store.records import PlannedSession
from storqual.store.run import Run

__all__ = ["Further", "Worth", "as_planned", "nothing_more"]


@dataclass(frozen=True)
class Further:
    """Blocks beyond the plan: those of new `sessions`, and others that go on in a session that was planned before."""

    reason: str
    blocks: tuple[Mapping[str, Any], ...]
    sessions: tuple[PlannedSession, ...] = ()


Worth = Callable[[Run, str], Further | Stop]
"""Called with a run and a bench whose sessions are all measured; it must be a pure function of the run's files."""


def nothing_more(_run: Run, _bench: str) -> Stop:
    """The planned sessions, then stop."""
    return Stop("everything that was planned is measured", complete=True)


def as_planned(run: Run, bench: str) -> Further | Stop:
    """What the plan wants: a campaign that may end at any look goes on until it is decided, any other stops."""
    if run.plan.fields.get("looks") != "every":
        return nothing_more(run, bench)
    from storqual.campaign.until_decided import until_decided  # noqa: PLC0415 - the judge is slow to import

    return until_decided(run, bench)
