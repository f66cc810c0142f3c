# SPDX-License-Identifier: Apache-2.0
"""How noisy the points of a run were: spreads of log-ratios with degrees of freedom, for the next campaign."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from storqual.inputs import load_suite
from storqual.inputs.policy import Gate
from storqual.judge.asked import Asked, asked_of, metrics_of, questions_of
from storqual.judge.question import Question, Unit, units_of
from storqual.run import Run
from storqual.run.measurements import measurements_at

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
        arms = [units_of(question.place.of(arm), metric) for arm in _ARMS]
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
    count = min(map(len, arms))
    before, after = (np.log([unit.value for unit in arm[:count]]) for arm in arms)
    spread = float(np.std(after - before, ddof=1)) if count > 1 else None
    return Noise(*question.point.key, question.criterion.metric, spread, float(count - 1), None, 0.0)


def _session_means(units: Sequence[Unit]) -> np.ndarray:
    sessions: dict[str, list[float]] = {}
    for unit in units:
        sessions.setdefault(unit.session, []).append(math.log(unit.value))
    return np.array([np.mean(values) for values in sessions.values()])


def _pooled(parts: Sequence[tuple[float | None, float]]) -> tuple[float | None, float]:
    """Standard deviation and degrees of freedom of several."""
    known = [(sd, df) for sd, df in parts if sd is not None and df > 0]
    if not known:
        return None, 0.0
    total = sum(df for _, df in known)
    return math.sqrt(sum(df * sd * sd for sd, df in known) / total), total
