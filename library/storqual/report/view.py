# SPDX-License-Identifier: Apache-2.0
"""What the page shows, piece by piece: the templates print these; they compute, decide and format nothing."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.cells import (
    Chart,
    ChartTable,
    Decision,
    Digest,
    KeyValue,
    Outcome,
    TimelineEvent,
)
from storqual.report.figures import Figure


@dataclass(frozen=True)
class CriterionRow:
    """One criterion at one point."""

    ident: str
    outcome: Outcome
    point: str
    href: str
    candidate: Figure
    reference: Figure
    shift: Figure
    low: Figure
    high: Figure
    margin: Figure
    detectable: Figure
    launches: tuple[Figure, Figure]
    sessions: tuple[Figure, Figure]
    reason: str
    waiver: str
    picture: Markup


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
    rows: tuple[CriterionRow, ...]


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
class FailedTrial:
    """A trial that did not pass: why, what happened when (seconds of its load), and how to make it again."""

    ident: str
    outcome: str
    reasons: tuple[str, ...]
    timeline: ChartTable
    command: str


@dataclass(frozen=True)
class Trials:
    """A campaign of trials: fault by adapter by arm, and each trial that failed or proved nothing."""

    matrix: ChartTable
    failed: tuple[FailedTrial, ...]
    left_out: tuple[str, ...]


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
    checks: tuple[CriterionRow, ...]
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
    trials: Trials | None = None
