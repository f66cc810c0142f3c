# SPDX-License-Identifier: Apache-2.0
"""From past runs to trend.html: a lab over a quarter, drops beside each other, each bench against itself."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import median
from typing import Any

from storqual.judge.outcome import used_waivers, with_waivers
from storqual.report.axes import percent_axis
from storqual.report.charts.line import ControlMark, control_chart
from storqual.report.charts.svg import Axis
from storqual.report.criterion import OUTCOMES, Criterion, Outcome, outcome
from storqual.report.figures import NONE, Figure, count, minute, percent
from storqual.report.render import render_template
from storqual.report.trend.read import NOT_JUDGED, PastRun, Series, read_past, reference_series, series_of
from storqual.report.view import Cell, Chart, ChartTable
from storqual.run import write_bytes
from storqual.statistics.control import FEWEST


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
    accepted: str


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


_SOON_DAYS = 30
_MOST_TICKS = 8
_SIGNALS = {"beyond": "beyond the limits", "shift": "eighth or later in a row on one side"}
_LETTERS = {"beyond": "B", "shift": "S"}


def build_trend(places: Sequence[Path], page: Path, *, as_of: datetime | None = None) -> Path:
    """Write the trend of the runs at `places` to `page`; returns its path.

    Raises BadInputError when there is none, StorqualError for a damaged run.
    """
    made = trend_page(read_past(places), page.resolve().parent, as_of=as_of or datetime.now(UTC))
    write_bytes(page, render_template("trend.html.j2", "report.css", page=made).encode())
    return page


def trend_page(runs: Sequence[PastRun], folder: Path, *, as_of: datetime) -> TrendPage:
    """The page of `runs` (in the order of time), with links that hold in `folder`."""
    series = (*reference_series(runs), *series_of(runs))
    charts = tuple(_bench(one, f"t{at}") for at, one in enumerate(series))
    counted = Counter(run.outcome for run in runs)
    benches = {bench for run in runs for bench in run.benches}
    words = ("campaign" if len(runs) == 1 else "campaigns", "bench" if len(benches) == 1 else "benches")
    span = f"{runs[0].created[:10]} to {runs[-1].created[:10]}" if runs else ""
    return TrendPage(
        title=f"{len(runs)} {words[0]} on {len(benches)} {words[1]}",
        subject=(span,),
        as_of=minute(as_of.isoformat()),
        counts=tuple(
            (_outcome(word), count(counted[word], f"count:runs:{word}"))
            for word in dict.fromkeys([*OUTCOMES, *counted])
            if counted[word]
        ),
        waivers=tuple(_waivers(runs, as_of.date())),
        signals=tuple((one.ident, one.sentence) for one in charts if not one.calm),
        runs=tuple(_run(run, folder) for run in reversed(runs)),
        drops=tuple(_drops(runs)),
        benches=charts,
        untrended="" if charts else "No adapter has two campaigns of one baseline drop with points in common yet.",
    )


def _run(run: PastRun, folder: Path) -> RunRow:
    shifts = run.shifts()
    report = run.path / "report.html"
    covered = run.verdict.get("coverage") or {}
    waived = sum(row.waived for row in run.rows)
    adapters = dict.fromkeys(row.text("adapter") for row in run.rows if row.text("adapter"))
    return RunRow(
        date=minute(run.created),
        name=run.name,
        href=Path(os.path.relpath(report, folder)).as_posix() if report.is_file() else "",
        benches=", ".join(run.benches),
        adapters=", ".join(adapters),
        baseline=run.drop("baseline"),
        candidate=run.drop("candidate"),
        suite=run.suite,
        outcome=_outcome(run.outcome),
        worst=_shift(shifts[0], run) if shifts else NONE,
        where=f"{shifts[0].text('adapter')} {shifts[0].text('point')}" if shifts else "",
        coverage=f"{covered['measured']} of {covered['planned']}" if "planned" in covered else NONE,
        waivers=count(waived, f"count:waived:{run.name}"),
        accepted=with_waivers(used_waivers(row.fields for row in run.rows)),
    )


def _outcome(word: str) -> Outcome:
    """A run without a verdict is neither good nor bad."""
    return Outcome(word, "\u2013", "skipped") if word == NOT_JUDGED else outcome(word)


def _shift(row: Criterion, run: PastRun) -> Figure:
    return percent(row.number("shift_percent"), f"{run.name}:{row.source('shift_percent')}")


def _waivers(runs: Sequence[PastRun], today: date) -> list[TrendWaiver]:
    """Every waiver that a verdict used, those that end first in front."""
    used: defaultdict[tuple[str, ...], dict[str, Any]] = defaultdict(lambda: {"covers": {}, "last": ""})
    for run in runs:
        for row in run.rows:
            waiver = row.fields.get("waiver")
            if isinstance(waiver, dict):
                key = tuple(str(waiver.get(name) or "") for name in ("expiry", "owner", "reference", "reason"))
                used[key]["covers"][row.text("id")] = None
                used[key]["last"] = run.created[:10]
    found = []
    for (expiry, owner, reference, reason), entry in sorted(used.items()):
        state, tone = _holds(expiry, today)
        found.append(
            TrendWaiver(state, tone, owner, reason, reference, expiry, tuple(entry["covers"]), entry["last"])
        )
    return found


def _holds(expiry: str, today: date) -> tuple[str, str]:
    try:
        left = (date.fromisoformat(expiry[:10]) - today).days
    except ValueError:
        return "has no end", "error"
    if left < 0:
        return f"expired {-left} days ago", "fail"
    return (f"ends in {left} days", "marginal") if left <= _SOON_DAYS else (f"holds for {left} days", "pass")


def _drops(runs: Sequence[PastRun]) -> list[DropRow]:
    """Drops beside each other: by adapter and baseline, the newest campaign of each candidate first."""
    found: defaultdict[tuple[str, str, str], list[PastRun]] = defaultdict(list)
    for run in runs:
        for adapter in dict.fromkeys(row.text("adapter") for row in run.shifts()):
            found[adapter, run.drop("baseline"), run.drop("candidate")].append(run)
    rows = []
    for (adapter, baseline, candidate), campaigns in found.items():
        last = campaigns[-1]
        shifts = [row for row in last.shifts() if row.text("adapter") == adapter]
        words = {row.outcome for row in last.rows if row.required and row.text("adapter") == adapter}
        values = [row.number("shift_percent") or 0.0 for row in shifts]
        worst = next((word for word in _WORST if word in words), last.outcome)
        rows.append(
            DropRow(
                adapter=adapter,
                candidate=candidate,
                baseline=baseline,
                outcome=_outcome(worst),
                median=percent(median(values), f"count:median:{last.name}:{adapter}"),
                worst=_shift(shifts[0], last),
                points=count(len(shifts), f"count:points:{last.name}:{adapter}"),
                campaigns=count(len(campaigns), f"count:campaigns:{adapter}:{candidate}"),
                date=last.created[:10],
            )
        )
    rows.sort(key=lambda row: row.date, reverse=True)
    return sorted(rows, key=lambda row: (row.adapter, row.baseline))


_WORST = ("ERROR", "FAIL", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")


def _bench(series: Series, ident: str) -> BenchChart:
    """One control chart with its table and what it says."""
    levels, control = series.levels, series.control
    marks = [
        ControlMark(level.percent, _LETTERS.get(signal, ""))
        for level, signal in zip(levels, control.signals, strict=True)
    ]
    ends = [*(level.percent for level in levels), *(control.limits or ())]
    step = -(-len(levels) // _MOST_TICKS)
    days = {level.run.created[:10] for level in levels}
    # campaigns of one day are told apart by the minute
    end = 10 if len(days) == len(levels) else 16
    ticks = tuple((float(at), levels[at].run.created[:end].replace("T", " ")) for at in range(0, len(levels), step))
    across = Axis("campaigns in the order of time", 0.0, float(max(len(levels) - 1, 1)), ticks)
    title = f"{series.bench}, {series.place}: {series.what}"
    picture = control_chart(
        ident,
        title,
        f"{title}: deviation of its IOPS from their usual level in each campaign; numbers in the table below.",
        marks,
        across,
        percent_axis("", max(abs(end) for end in ends) or 1.0),
        centre=control.centre,
        limits=control.limits,
    )
    rows = tuple(
        (
            level.run.name,
            minute(level.run.created),
            percent(level.percent, f"count:level:{level.run.name}:{series.place}"),
            count(level.points, f"count:levels:{level.run.name}:{series.place}"),
            _SIGNALS.get(signal, ""),
        )
        for level, signal in zip(levels, control.signals, strict=True)
    )
    heads = ("Campaign", "Planned", "Deviation of IOPS", "Points", "Signal")
    return BenchChart(
        ident,
        _sentence(series),
        Chart(title, picture, ChartTable(title, heads, rows), wide=True),
        not any(control.signals),
    )


def _sentence(series: Series) -> str:
    name = f"{series.bench}, {series.place}"
    beyond = [level.run.created[:10] for level, signal in _signalled(series) if signal == "beyond"]
    shifted = [level.run.created[:10] for level, signal in _signalled(series) if signal == "shift"]
    if series.control.limits is None:
        return f"{name}: {len(series.levels)} campaigns; control limits take {FEWEST}."
    if beyond:
        return f"{name}: beyond its control limits on {', '.join(beyond)}."
    if shifted:
        return f"{name}: its level has shifted, seen on {shifted[0]}."
    return f"{name}: in control over {len(series.levels)} campaigns."


def _signalled(series: Series) -> list[tuple[Any, str]]:
    return [pair for pair in zip(series.levels, series.control.signals, strict=True) if pair[1]]
