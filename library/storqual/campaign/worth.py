# SPDX-License-Identifier: Apache-2.0
"""What is worth measuring next, once everything planned is measured: the one place where that is decided.

Today nothing is. Sequential judging comes in here: more pairs for points that are undecided, a fresh session that
confirms a fail, the next pair where it is worth most. Such a session is recorded as `session_planned`, with its block
files beside those of the plan, so that the state of a campaign stays in its files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from storqual.store.records import PlannedSession
from storqual.store.run import Run

__all__ = ["Further", "Worth", "nothing_more"]


@dataclass(frozen=True)
class Further:
    """A session beyond the plan, and its blocks."""

    session: PlannedSession
    blocks: tuple[Mapping[str, Any], ...]
    reason: str


Worth = Callable[[Run, str], Further | None]
"""Called with a run and a bench whose sessions are all measured; it must be a pure function of the run's files."""


def nothing_more(_run: Run, _bench: str) -> Further | None:
    """The planned sessions, then stop."""
    return None
