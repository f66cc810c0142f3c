# SPDX-License-Identifier: Apache-2.0
"""What the trend page shows, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass

from storqual.report.cells import Cell, Chart, Outcome
from storqual.report.figures import Figure

__all__ = ["BenchChart", "DropRow", "RunRow", "TrendPage", "TrendWaiver"]


@dataclass(frozen=True)
class RunRow:
    """One campaign; `href` leads to its report where there is one."""

    date: str
    name: str
    href: str
    benches: str
    adapters: str
    baseline: str
    candidate: str
    suite: str
    outcome: Outcome
    worst: Figure
    where: str
    coverage: Cell
    waivers: Figure


@dataclass(frozen=True)
class TrendWaiver:
    """A waiver that past verdicts rest on; `state` says whether it holds, and how long."""

    state: str
    tone: str
    owner: str
    reason: str
    reference: str
    expiry: str
    covers: tuple[str, ...]
    last_used: str


@dataclass(frozen=True)
class DropRow:
    """A candidate drop on an adapter against one baseline: its last campaign, and all of them."""

    adapter: str
    candidate: str
    baseline: str
    outcome: Outcome
    median: Figure
    worst: Figure
    points: Figure
    campaigns: Figure
    date: str


@dataclass(frozen=True)
class BenchChart:
    """A control chart with what it says in a sentence."""

    ident: str
    sentence: str
    chart: Chart
    calm: bool


@dataclass(frozen=True)
class TrendPage:
    """trend.html."""

    title: str
    subject: tuple[Cell, ...]
    as_of: str
    counts: tuple[tuple[Outcome, Figure], ...]
    waivers: tuple[TrendWaiver, ...]
    signals: tuple[tuple[str, str], ...]
    runs: tuple[RunRow, ...]
    drops: tuple[DropRow, ...]
    benches: tuple[BenchChart, ...]
    untrended: str
