# SPDX-License-Identifier: Apache-2.0
"""What a user asks a plan of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PlanRequest"]


@dataclass(frozen=True)
class PlanRequest:
    """What a user asks for. Names or paths as design section 4; `budget` in seconds; None: as the suite says.

    Without a baseline (empty) the candidate is characterised: one arm, and no criterion against a baseline. With a
    budget the campaign measures until decided or until the budget ends. `history` is an extract of earlier campaigns,
    or a folder of their runs. `consent` are ends of WWNs, for what a claim does not cover (a format).
    """

    inventories: Sequence[Path]
    baseline: str
    candidate: str
    suite: str
    profile: str | None = None
    gate: Path | None = None
    history: Path | None = None
    limit: str | None = None
    adapters: Sequence[str] | None = None
    seed: int | None = None
    budget: float | None = None
    by_sessions: bool = False
    consent: Sequence[str] = ()
    run: str | None = None
