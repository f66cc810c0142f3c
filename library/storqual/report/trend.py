# SPDX-License-Identifier: Apache-2.0
"""Trend pages: several campaigns, drops and benches over time, on one page without a script."""

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

from storqual.base.figures import NONE, ShownNumber, count, minute, percent
from storqual.base.table import NUMBER, LinkedCell, Table
from storqual.history.past_runs import NOT_JUDGED, PastRun, read_past
from storqual.judge.outcome import used_waivers, with_waivers
from storqual.report.charts import ControlMark, control_chart, percent_axis
from storqual.report.criterion import OUTCOMES, WORST_FIRST, JudgedCriterion, OutcomeBadge, outcome, read_criteria
from storqual.report.render import render_template
from storqual.report.svg import Axis
from storqual.report.view import Cell, DrawnChart
from storqual.run import write_bytes
from storqual.statistics.estimates import FEWEST, Control, individuals

_METRIC = "iops"
_FEWEST = 2
"""Campaigns from which there is something to compare."""


@dataclass(frozen=True)
class CampaignLevel:
    """One campaign: deviation from the usual level in percent, median over `points` points (readings)."""

    run: PastRun
    percent: float
    points: int


@dataclass(frozen=True)
class Series:
    """Campaigns in the order of time with their control chart: of an adapter or drive of a bench, under `what`."""

    bench: str
    point: str
    what: str
    levels: tuple[CampaignLevel, ...]
    control: Control


def series_of(runs: Sequence[PastRun]) -> tuple[Series, ...]:
    """A series for every bench, adapter and baseline drop that at least two campaigns have points in common for.

    The baseline is what should not change: it is compared with itself, point by point, as log-ratios to the point's
    median over the campaigns.
    """
    points: defaultdict[tuple[str, str, str], dict[str, tuple[PastRun, dict[str, float]]]] = defaultdict(dict)
    for run in runs:
        for bench, adapter, point, value in _baselines(run):
            points[bench, adapter, run.drop("baseline")].setdefault(run.name, (run, {}))[1][point] = value
    made = []
    for (bench, adapter, drop), by_run in points.items():
        levels = _levels(list(by_run.values()))
        if len(levels) >= _FEWEST:
            control = individuals([level.percent for level in levels])
            made.append(Series(bench, adapter, f"baseline drop {drop}", tuple(levels), control))
    return tuple(sorted(made, key=lambda series: (series.bench, series.point, series.what)))


def _baselines(run: PastRun) -> Iterator[tuple[str, str, str, float]]:
    for row in read_criteria(run.verdict):
        value = row.number("reference")
        if row.against == "baseline" and row.text("metric") == _METRIC and value is not None and value > 0:
            yield (*row.key, value)


def _levels(runs: Sequence[tuple[PastRun, dict[str, float]]]) -> list[CampaignLevel]:
    seen: defaultdict[str, list[float]] = defaultdict(list)
    for _, values in runs:
        for point, value in values.items():
            seen[point].append(math.log(value))
    usual = {point: median(values) for point, values in seen.items() if len(values) >= _FEWEST}
    levels = []
    for run, values in runs:
        apart = [math.log(value) - usual[point] for point, value in values.items() if point in usual]
        if apart:
            levels.append(CampaignLevel(run, 100 * math.expm1(median(apart)), len(apart)))
    return levels


def reference_series(runs: Sequence[PastRun]) -> tuple[Series, ...]:
    """A series for every bench and reference drive that at least two campaigns have readings of.

    Only runs on benches with a reference have their samples read. A campaign's value is the mean of its readings, as
    deviation from the median campaign.
    """
    logs_by_drive: defaultdict[tuple[str, str], dict[str, tuple[PastRun, list[float]]]] = defaultdict(dict)
    for run in runs:
        for reading in run.readings():
            values = logs_by_drive[reading.bench, reading.drive].setdefault(run.name, (run, []))[1]
            values.append(math.log(reading.iops))
    made = []
    for (bench, drive), campaigns in logs_by_drive.items():
        if len(campaigns) < _FEWEST:
            continue
        usual = median(fmean(values) for _, values in campaigns.values())
        levels = tuple(
            CampaignLevel(run, 100 * math.expm1(fmean(values) - usual), len(values))
            for run, values in campaigns.values()
        )
        made.append(
            Series(bench, drive, "golden reference", levels, individuals([level.percent for level in levels]))
        )
    return tuple(made)


@dataclass(frozen=True)
class BenchChart:
    """A control chart with what it says in a sentence."""

    ident: str
    sentence: str
    chart: DrawnChart
    calm: bool


@dataclass(frozen=True)
class TrendPage:
    """trend.html."""

    title: str
    subject: tuple[Cell, ...]
    as_of: str
    counts: tuple[tuple[OutcomeBadge, ShownNumber], ...]
    waivers: Table
    signals: tuple[tuple[str, str], ...]
    runs: Table
    drops: Table
    benches: tuple[BenchChart, ...]
    untrended: str


_SOON_DAYS = 30
_MOST_TICKS = 8
_SIGNALS = {"beyond": "beyond the limits", "shift": "eighth or later in a row on one side"}
_LETTERS = {"beyond": "B", "shift": "S"}


def build_trend(folders: Sequence[Path], page: Path, *, as_of: datetime | None = None) -> Path:
    """Write the trend of the runs in `folders` to `page`; returns its path.

    Raises BadInputError when there is none, StorqualError for a damaged run.
    """
    made = trend_page(read_past(folders), page.resolve().parent, as_of=as_of or datetime.now(UTC))
    write_bytes(page, render_template("trend.html.j2", "report.css", page=made).encode())
    return page


def trend_page(runs: Sequence[PastRun], folder: Path, *, as_of: datetime) -> TrendPage:
    """The page of `runs` (in the order of time), with links that hold in `folder`."""
    series = (*reference_series(runs), *series_of(runs))
    charts = tuple(_bench(line, f"t{at}") for at, line in enumerate(series))
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
        waivers=_waivers(runs, as_of.date()),
        signals=tuple((chart.ident, chart.sentence) for chart in charts if not chart.calm),
        runs=_campaigns(runs, folder),
        drops=_drops(runs),
        benches=charts,
        untrended="" if charts else "No adapter has two campaigns of one baseline drop with points in common yet.",
    )


def shifts_of(run: PastRun) -> list[JudgedCriterion]:
    """Required criteria against the baseline that have a shift, the worst first."""
    compared = [
        row
        for row in read_criteria(run.verdict)
        if row.against == "baseline" and row.required and row.number("shift_percent") is not None
    ]
    return sorted(compared, key=lambda row: row.number("shift_percent") or 0.0)


def _campaigns(runs: Sequence[PastRun], folder: Path) -> Table:
    caption = "All campaigns, the newest first; the worst shift is that of a required criterion"
    heads = (
        *("Campaign", "Outcome", "Candidate", "Baseline", "Bench and adapters", "Suite"),
        *("Worst shift", "Measured", "Waived"),
    )
    rows = tuple(_campaign(run, folder) for run in reversed(runs))
    return Table(caption, heads, rows, dict.fromkeys(heads[-3:], NUMBER))


def _campaign(run: PastRun, folder: Path) -> tuple[Any, ...]:
    criteria, shifts = read_criteria(run.verdict), shifts_of(run)
    report = run.path / "report.html"
    href = Path(os.path.relpath(report, folder)).as_posix() if report.is_file() else ""
    covered = run.verdict.get("coverage") or {}
    accepted = with_waivers(used_waivers(run.criteria))
    adapters = ", ".join(dict.fromkeys(row.text("adapter") for row in criteria if row.text("adapter")))
    where = f"{shifts[0].text('adapter')} {shifts[0].text('point')}" if shifts else ""
    return (
        LinkedCell(run.name, href, (minute(run.created),)),
        LinkedCell(_outcome(run.outcome), notes=(accepted,) if accepted else ()),
        run.drop("candidate"),
        run.drop("baseline"),
        LinkedCell(", ".join(run.benches), notes=(adapters,) if adapters else ()),
        f"{run.suite.get('name')} {run.suite.get('profile')}",
        LinkedCell(_shift(shifts[0], run), notes=(where,)) if shifts else NONE,
        f"{covered['measured']} of {covered['planned']}" if "planned" in covered else NONE,
        count(sum(row.waived for row in criteria), f"count:waived:{run.name}"),
    )


def _outcome(word: str) -> OutcomeBadge:
    """A run without a verdict is neither good nor bad."""
    return OutcomeBadge(word, "\u2013", "skipped") if word == NOT_JUDGED else outcome(word)


def _shift(row: JudgedCriterion, run: PastRun) -> ShownNumber:
    return percent(row.number("shift_percent"), f"{run.name}:{row.source('shift_percent')}")


def _waivers(runs: Sequence[PastRun], today: date) -> Table:
    """Every waiver that a verdict used, those that end first in front."""
    used: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    last: dict[tuple[str, ...], str] = {}
    for run in runs:
        for row in read_criteria(run.verdict):
            waiver = row.fields.get("waiver")
            if isinstance(waiver, dict):
                key = tuple(str(waiver.get(name) or "") for name in ("expiry", "owner", "reason", "reference"))
                used[key][row.text("id")] = None
                last[key] = run.created[:10]
    rows = tuple(
        (
            key[0],
            _validity(key[0], today),
            *key[1:],
            LinkedCell(next(iter(covers)), notes=tuple(covers)[1:]),
            last[key],
        )
        for key, covers in sorted(used.items())
    )
    heads = ("Expires", "State", "Owner", "Reason", "Reference", "Covers", "Last used")
    return Table("What verdicts rest on, in the order in which it ends", heads, rows)


def _validity(expiry: str, today: date) -> OutcomeBadge:
    try:
        left = (date.fromisoformat(expiry[:10]) - today).days
    except ValueError:
        return OutcomeBadge("has no end", "!", "error")
    if left < 0:
        return OutcomeBadge(f"expired {-left} days ago", "\u2715", "fail")
    soon = left <= _SOON_DAYS
    return (
        OutcomeBadge(f"ends in {left} days", "\u2248", "marginal")
        if soon
        else OutcomeBadge(f"holds for {left} days", "\u2713", "pass")
    )


def _drops(runs: Sequence[PastRun]) -> Table:
    campaigns_of: defaultdict[tuple[str, str, str], list[PastRun]] = defaultdict(list)
    for run in runs:
        for adapter in dict.fromkeys(row.text("adapter") for row in shifts_of(run)):
            campaigns_of[adapter, run.drop("baseline"), run.drop("candidate")].append(run)
    rows: list[tuple[Any, ...]] = []
    for (adapter, baseline, candidate), campaigns in campaigns_of.items():
        last = campaigns[-1]
        shifts = [row for row in shifts_of(last) if row.text("adapter") == adapter]
        required = (row for row in read_criteria(last.verdict) if row.required and row.text("adapter") == adapter)
        words = {row.outcome for row in required}
        values = [row.number("shift_percent") or 0.0 for row in shifts]
        rows.append(
            (
                adapter,
                baseline,
                candidate,
                _outcome(next((word for word in WORST_FIRST if word in words), last.outcome)),
                percent(median(values), f"count:median:{last.name}:{adapter}"),
                _shift(shifts[0], last),
                count(len(shifts), f"count:points:{last.name}:{adapter}"),
                count(len(campaigns), f"count:campaigns:{adapter}:{candidate}"),
                last.created[:10],
            )
        )
    rows.sort(key=lambda row: str(row[-1]), reverse=True)
    rows.sort(key=lambda row: row[:2])
    caption = "Candidates on each adapter against one baseline, by their last campaign; shifts of required criteria"
    heads = (
        "Adapter",
        "Baseline",
        "Candidate",
        "Outcome",
        "Median shift",
        "Worst shift",
        "Criteria",
        "Campaigns",
        "Last",
    )
    return Table(caption, heads, tuple(rows))


def _bench(series: Series, ident: str) -> BenchChart:
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
    title = f"{series.bench}, {series.point}: {series.what}"
    picture = control_chart(
        ident,
        title,
        f"{title}: deviation of its IOPS from their usual level in each campaign; numbers in the table below.",
        marks,
        across,
        percent_axis(max(abs(end) for end in ends) or 1.0),
        centre=control.centre,
        limits=control.limits,
    )
    rows = tuple(
        (
            level.run.name,
            minute(level.run.created),
            percent(level.percent, f"count:level:{level.run.name}:{series.point}"),
            count(level.points, f"count:levels:{level.run.name}:{series.point}"),
            _SIGNALS.get(signal, ""),
        )
        for level, signal in zip(levels, control.signals, strict=True)
    )
    heads = ("Campaign", "Planned", "Deviation of IOPS", "Points", "Signal")
    return BenchChart(
        ident,
        _sentence(series),
        DrawnChart(title, picture, Table(title, heads, rows), wide=True),
        not any(control.signals),
    )


def _sentence(series: Series) -> str:
    name = f"{series.bench}, {series.point}"
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
