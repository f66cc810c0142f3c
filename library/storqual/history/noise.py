# SPDX-License-Identifier: Apache-2.0
"""How noisy points were, for the next campaign; and the control chart of a bench's golden reference drive.

The chart is one of individuals, a value per campaign: the mean of its readings. Limits come from the campaigns before
the one that is looked at. Within a campaign the readings say nothing about campaigns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from storqual.inputs import load_suite
from storqual.inputs.policy import Gate
from storqual.judge.against_baseline import pair_levels_of
from storqual.judge.asked import Asked, asked_of, metrics_of, questions_of
from storqual.judge.earlier import ReferenceReading
from storqual.judge.question import Question, Unit, units_of
from storqual.run import Run
from storqual.run.measurements import measurements_at
from storqual.statistics.estimates import individuals
from storqual.statistics.pairs import estimate

_ARMS = ("baseline", "candidate")


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of a metric at a point: `sd_pair` of a pair's log-ratio, `sd_session` of a session's mean.

    Both are about the mean of what was measured, so that a true loss of the candidate is no noise. None: not seen.
    """

    bench: str
    adapter: str
    point: str
    metric: str
    sd_pair: float | None
    df_pair: float
    sd_session: float | None
    df_session: float


def noise_of(run: Run) -> list[Noise]:
    """The noise of every criterion against the baseline that is a rate or a time, from all launches of a run."""
    asked = [
        Asked(one.point, tuple(rule for rule in one.criteria if rule.against == "baseline"))
        for one in asked_of(run, load_suite(run.input_file("suite")), Gate())
    ]
    wanted = {key: names for key, names in metrics_of(asked).items() if names}
    found = {}
    for question in questions_of(run, asked, measurements_at(run, wanted).points):
        metric = question.metric
        if metric is None or metric.kind == "count":
            continue
        arms = [units_of(question.launches.of(arm), metric) for arm in _ARMS]
        if any(isinstance(arm, str) or not arm or min(unit.value for unit in arm) <= 0 for arm in arms):
            continue
        entry = _noise(question, [list(arm) for arm in arms if not isinstance(arm, str)])
        if entry.df_pair or entry.df_session:
            found[*question.point.key, metric.name] = entry
    return list(found.values())


def pooled(entries: Iterable[Noise]) -> list[Noise]:
    """Entries of several runs as one for each point and metric: variances weighted by their degrees of freedom."""
    groups: dict[tuple[str, str, str, str], list[Noise]] = {}
    for entry in entries:
        groups.setdefault((entry.bench, entry.adapter, entry.point, entry.metric), []).append(entry)
    found = []
    for key, members in sorted(groups.items()):
        pair = _pooled([(one.sd_pair, one.df_pair) for one in members])
        session = _pooled([(one.sd_session, one.df_session) for one in members])
        found.append(Noise(*key, *pair, *session))
    return found


def _noise(question: Question, arms: Sequence[Sequence[Unit]]) -> Noise:
    if question.by_session:
        means = [_session_means(arm) for arm in arms]
        freedom = sum(len(values) - 1 for values in means)
        squares = sum(float(((values - values.mean()) ** 2).sum()) for values in means)
        sd = math.sqrt(squares / freedom) if freedom else None
        return Noise(*question.point.key, question.criterion.metric, None, 0.0, sd, float(freedom))
    # as the judge takes them: dips bounded, an odd launch left out
    found = estimate([pair_levels_of(arms[0], arms[1])], [None])
    known = float(found.df[0]) > 0
    spread = float(found.sd[0]) if known else None
    return Noise(*question.point.key, question.criterion.metric, spread, float(found.df[0]), None, 0.0)


def _session_means(units: Sequence[Unit]) -> np.ndarray:
    sessions: dict[str, list[float]] = {}
    for unit in units:
        sessions.setdefault(unit.session, []).append(math.log(unit.value))
    return np.array([np.mean(values) for values in sessions.values()])


def _pooled(parts: Sequence[tuple[float | None, float]]) -> tuple[float | None, float]:
    known = [(sd, df) for sd, df in parts if sd is not None and df > 0]
    if not known:
        return None, 0.0
    total = sum(df for _, df in known)
    return math.sqrt(sum(df * sd * sd for sd, df in known) / total), total


_SMALLEST_REACH = 0.0015
"""Half width of the limits, as a share of the centre, below which no bench is believed to repeat."""


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A campaign on the chart of its bench; limits are None while there are too few campaigns before it."""

    bench: str
    drive: str
    run: str
    moment: str
    iops: float
    readings: int
    low: float | None
    high: float | None

    @property
    def suspect(self) -> str:
        """Why the bench was out of control; empty when it was not, or nobody knows."""
        if self.low is None or self.high is None or self.low <= self.iops <= self.high:
            return ""
        return (
            f"the golden reference of {self.bench} gave {self.iops:.0f} IOPS, outside of its limits "
            f"{self.low:.0f} to {self.high:.0f}: the bench was out of control"
        )


def control_chart(readings: Iterable[ReferenceReading]) -> list[ChartPoint]:
    """The charts of all benches, oldest campaign first; a campaign that was suspect does not widen later limits."""
    campaigns: dict[tuple[str, str], dict[str, list[ReferenceReading]]] = {}
    for reading in readings:
        campaigns.setdefault((reading.bench, reading.drive), {}).setdefault(reading.run, []).append(reading)
    points = []
    for (bench, drive), runs in campaigns.items():
        good: list[float] = []
        for run, members in sorted(runs.items(), key=lambda item: min(one.moment for one in item[1])):
            value = sum(one.iops for one in members) / len(members)
            low, high = _limits(good)
            moment = min(one.moment for one in members)
            point = ChartPoint(bench, drive, run, moment, value, len(members), low, high)
            if not point.suspect:
                good.append(value)
            points.append(point)
    return points


def limits_after(readings: Iterable[ReferenceReading]) -> dict[tuple[str, str], tuple[float, float]]:
    """Limits for the next campaign, by bench and drive, where there were enough that were in control."""
    good: dict[tuple[str, str], list[float]] = {}
    for point in control_chart(readings):
        if not point.suspect:
            good.setdefault((point.bench, point.drive), []).append(point.iops)
    found = {}
    for key, values in good.items():
        low, high = _limits(values)
        if low is not None and high is not None:
            found[key] = (low, high)
    return found


def _limits(values: list[float]) -> tuple[float | None, float | None]:
    """Limits from campaigns that were in control; None while there are too few."""
    if not values:
        return None, None
    chart = individuals(values)
    if chart.limits is None:
        return None, None
    reach = max(chart.limits[1] - chart.centre, _SMALLEST_REACH * chart.centre)
    return chart.centre - reach, chart.centre + reach
