# SPDX-License-Identifier: Apache-2.0
"""What the first screen shows: the decision, why, and of what."""

from __future__ import annotations

from dataclasses import dataclass

from storqual.report.cells import KeyValue, Outcome, Phrase, TimelineEvent
from storqual.report.figures import Figure

__all__ = ["AdapterIdentity", "Decision", "Extreme", "Problem", "ProblemPoint"]


@dataclass(frozen=True)
class AdapterIdentity:
    """One adapter on the first screen: what it is, and its driver in both arms."""

    alias: str
    bench: str
    model: str
    place: str
    firmware: str
    driver: str
    baseline: str
    candidate: str
    same: bool


@dataclass(frozen=True)
class ProblemPoint:
    """One criterion of a problem; the reason is empty where all of the problem share it."""

    name: str
    href: str
    shift: Figure
    reason: str


@dataclass(frozen=True)
class Problem:
    """Criteria of one adapter and metric that did not pass alike; a check stands alone, with its own `href`."""

    outcome: Outcome
    where: str
    href: str
    metric: str
    number: Figure
    total: Figure
    worst: Figure
    best: Figure
    reason: str
    waiver: str
    points: tuple[ProblemPoint, ...]
    more: Figure | None


@dataclass(frozen=True)
class Extreme:
    """The worst or the best shift and where it was found."""

    shift: Figure
    where: str
    metric: str
    href: str


@dataclass(frozen=True)
class Decision:
    """The first screen; `single` where there is no baseline."""

    notices: tuple[str, ...]
    single: bool
    baseline: str
    candidate: str
    subject: tuple[str, ...]
    changes: tuple[KeyValue, ...]
    outcome: Outcome
    sentence: Phrase
    exit_code: Figure
    exit_meaning: str
    adapters: tuple[AdapterIdentity, ...]
    facts: tuple[KeyValue, ...]
    counts: tuple[tuple[Outcome, Figure], ...]
    incidents: tuple[TimelineEvent, ...]
    problems: tuple[Problem, ...]
    more_problems: Figure | None
    informative: Phrase
    worst: Extreme | None
    best: Extreme | None
    planned: Figure
    measured: Figure
    skipped: Figure
    holes: Figure
    has_holes: bool
    sectors: Figure
    sectors_note: str
    signers: tuple[str, ...]
    may_sign: bool
    roles: tuple[str, ...]
    verdict_sha256: str
    warnings: tuple[str, ...]
