# SPDX-License-Identifier: Apache-2.0
"""The small things that every part of a page is made of: outcomes, names with values, tables, charts."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.figures import Figure

Cell = Figure | str
Phrase = tuple[Cell, ...]
"""A sentence with figures in it."""


@dataclass(frozen=True)
class Outcome:
    """An outcome as it is shown: the word, a symbol beside it, and the class that colours it."""

    word: str
    symbol: str
    tone: str


@dataclass(frozen=True)
class KeyValue:
    """A name and what it has; `differs` marks what is not the same in both arms."""

    name: str
    values: tuple[Cell, ...]
    differs: bool = False


@dataclass(frozen=True)
class ChartTable:
    """The numbers of a chart: column heads, and rows whose first cell names the row."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold figures: those are set to the right."""
        return tuple(isinstance(cell, Figure) for cell in self.rows[0]) if self.rows else ()


@dataclass(frozen=True)
class Chart:
    """A picture with its title and its numbers; where `table` is None they stand in the table below it."""

    title: str
    picture: Markup
    table: ChartTable | None
    wide: bool = False
    beside: ChartTable | None = None


@dataclass(frozen=True)
class Digest:
    """A file and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class TimelineEvent:
    """Something that happened; `badge` names it in charts, `gist` is the line of `text` that says most.

    `mended` says how the campaign got over it; empty where it did not, or where there was nothing to get over.
    """

    badge: str
    time: str
    bench: str
    kind: str
    gist: str
    text: str
    serious: bool
    mended: str


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
