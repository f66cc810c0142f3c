# SPDX-License-Identifier: Apache-2.0
"""What the page shows, piece by piece: the templates print these; they compute, decide and format nothing."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.criterion import Criterion, Outcome
from storqual.report.figures import Figure


@dataclass(frozen=True)
class CriteriaTable:
    """Criteria of one adapter and one metric against one kind of reference."""

    ident: str
    adapter: str
    metric: str
    unit: str
    better: str
    reference_name: str
    required: bool
    drawn: bool
    axis: Markup
    rows: tuple[Criterion, ...]


@dataclass(frozen=True)
class Rollup:
    """Outcomes of many criteria in one row, with the page that lists them."""

    title: str
    href: str
    points: Figure
    counts: tuple[tuple[Outcome, Figure], ...]
    worst: Figure


@dataclass(frozen=True)
class CurveGroup:
    """The small multiples of one metric on one adapter."""

    ident: str
    adapter: str
    metric: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Study:
    """One study of a suite: sentences (`more` were left out), tables and pictures."""

    ident: str
    title: str
    note: str
    sentences: tuple[str, ...]
    more: Figure | None
    tables: tuple[ChartTable, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Timeline:
    """One bench's campaign over time."""

    bench: str
    charts: tuple[Chart, ...]
    events: tuple[TimelineEvent, ...]
    sessions: ChartTable
    preconditioning: ChartTable


@dataclass(frozen=True)
class LogFinding:
    """A line of the kernel log that means something."""

    badge: str
    time: str
    session: str
    kind: str
    line: str


@dataclass(frozen=True)
class SettingRow:
    """One setting of some targets: declared, before and read back for each arm, and how it was proven."""

    targets: tuple[str, ...]
    count: Figure
    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    proof: tuple[str, ...]
    differs: bool
    wrong: bool


@dataclass(frozen=True)
class Drift:
    """A bench before and after: what differs, and what is the same or has nothing to be compared with."""

    bench: str
    compared: bool
    differing: tuple[KeyValue, ...]
    same: tuple[KeyValue, ...]
    number: Figure


@dataclass(frozen=True)
class Environment:
    """Both arms side by side, and each bench before and after."""

    arms: tuple[KeyValue, ...]
    drops: tuple[KeyValue, ...]
    benches: tuple[Drift, ...]


@dataclass(frozen=True)
class SkippedRow:
    """A planned point that was not measured; without a reason it is a hole."""

    where: str
    reason: str
    hole: bool


@dataclass(frozen=True)
class Coverage:
    """The ledger: planned x measured x skipped, in total, per adapter, and what is missing."""

    table: ChartTable
    skipped: tuple[SkippedRow, ...]


@dataclass(frozen=True)
class Guard:
    """What was written, where; `applies` is false for files on this machine."""

    applies: bool
    sectors: Figure
    disks: ChartTable


@dataclass(frozen=True)
class ErrorCounters:
    """Error counters that moved; `watched` is how many drives have any, None where none were recorded."""

    watched: Figure | None
    table: ChartTable


@dataclass(frozen=True)
class WaiverRow:
    """A failure that somebody accepted."""

    criterion: str
    href: str
    owner: str
    reason: str
    reference: str
    expiry: str


@dataclass(frozen=True)
class LaunchRow:
    """One finished launch with its values and its evidence."""

    ident: str
    arm: str
    session: str
    start: str
    status: str
    suspect: tuple[str, ...]
    values: tuple[Figure, ...]
    seconds: Figure
    length: Figure
    long: bool
    raw: tuple[Digest, ...]


@dataclass(frozen=True)
class PointEvidence:
    """Everything about one point; `outcomes` are (metric, outcome, reference) of its criteria."""

    ident: str
    bench: str
    adapter: str
    point: str
    outcomes: tuple[tuple[str, Outcome, str], ...]
    open: bool
    sentences: tuple[str, ...]
    skipped: str
    drives: tuple[str, ...]
    charts: tuple[Chart, ...]
    heads: tuple[str, ...]
    seconds: bool
    launches: tuple[LaunchRow, ...]


@dataclass(frozen=True)
class Appendix:
    """What somebody needs who wants to check or repeat this."""

    run: str
    digests: tuple[Digest, ...]
    versions: tuple[KeyValue, ...]
    blocks: ChartTable
    logs: tuple[tuple[str, str], ...]
    commands: tuple[tuple[str, str], ...]
    plan: tuple[KeyValue, ...]


@dataclass(frozen=True)
class Page:
    """report.html, or with `decision` of None a detail page of it."""

    title: str
    style: Markup
    run: str
    home: str
    decision: Decision | None
    criteria: tuple[CriteriaTable, ...]
    left_out: Figure | None
    rollups: tuple[Rollup, ...]
    checks: tuple[Criterion, ...]
    studies: tuple[Study, ...]
    advice: tuple[tuple[str, str], ...]
    curves: tuple[CurveGroup, ...]
    arms: tuple[tuple[str, str], ...]
    timelines: tuple[Timeline, ...]
    findings: tuple[LogFinding, ...]
    settings: tuple[SettingRow, ...]
    environment: Environment | None
    coverage: Coverage | None
    guard: Guard | None
    errors: ErrorCounters | None
    waivers: tuple[WaiverRow, ...]
    points: tuple[PointEvidence, ...]
    appendix: Appendix | None


Cell = Figure | str
Phrase = tuple[Cell, ...]
"""A sentence with figures in it."""


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
