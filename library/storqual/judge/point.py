# SPDX-License-Identifier: Apache-2.0
"""One criterion at one point: from samples to an outcome, with the sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import stats

from storqual.judge.decision import Decision, History, decide
from storqual.metrics import METRICS, Metric, Unavailable, Value
from storqual.model.suite import EffectiveCriterion
from storqual.store import Sample

__all__ = ["Arms", "Judged", "judge_point"]

_SERIES_FROM = 5
"""Seconds from which a launch is judged by its per-second values (robust to dips); shorter ones by their mean."""


@dataclass(frozen=True)
class Arms:
    """The samples of one point by arm, as they were measured; `by_session`: changing arms cost a session."""

    baseline: Sequence[Sample]
    candidate: Sequence[Sample]
    by_session: bool
    peers: Mapping[str, Sequence[Sample]] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """An outcome with its numbers; percent fields are None where they mean nothing."""

    outcome: str
    reason: str
    candidate: float | None = None
    reference: float | None = None
    shift: float | None = None
    ci95: tuple[float, float] | None = None
    margin: float | None = None
    indifference: float | None = None
    detectable: float | None = None
    unit_of_inference: str = "value"
    source: str = ""


def judge_point(criterion: EffectiveCriterion, arms: Arms, history: History | None = None) -> Judged:
    """Judge `criterion` from finished samples; what is missing or unusable is an ERROR, never a PASS."""
    metric = METRICS.get(criterion.metric)
    if metric is None:
        return Judged("ERROR", f"there is no metric called {criterion.metric!r}")
    broken = _broken(arms, criterion.against)
    if broken:
        return Judged("ERROR", broken)
    candidate = [metric.value(sample) for sample in arms.candidate]
    baseline = [metric.value(sample) for sample in arms.baseline]
    missing = [found for found in [*candidate, *baseline] if isinstance(found, Unavailable)]
    if missing:
        # an informative figure that cannot be had is not there; a required one is an error
        return Judged(
            "ERROR" if criterion.required else "SKIPPED", f"{metric.label} is unavailable: {missing[0].reason}"
        )
    values = [found.value for found in candidate if isinstance(found, Value)]
    references = [found.value for found in baseline if isinstance(found, Value)]
    sources = sorted({found.source for found in [*candidate, *baseline] if isinstance(found, Value)})
    if len(sources) > 1:
        return Judged("ERROR", f"{metric.label} comes from different sources: {', '.join(sources)}")
    if criterion.against == "baseline":
        return _against_baseline(criterion, metric, arms, values, references, history, "".join(sources))
    if criterion.against == "absolute":
        return _against_limits(criterion, metric, values, "".join(sources))
    if criterion.against == "peers":
        return _against_peers(criterion, metric, arms, values)
    return Judged("ERROR", f"a criterion against {criterion.against!r} has no reference in this run")


def _broken(arms: Arms, against: str) -> str:
    """Why these samples cannot be judged; empty when they can."""
    needed = {"candidate": arms.candidate} | ({"baseline": arms.baseline} if against == "baseline" else {})
    for arm, samples in needed.items():
        if not samples:
            return f"the {arm} has no sample at this point"
        for sample in samples:
            if sample.status != "ok":
                why = sample.suspect[0] if sample.suspect else "no reason was recorded"
                return f"{arm} launch {sample.id} was {sample.status.replace('_', ' ')}: {why}"
    return ""


def _against_baseline(
    criterion: EffectiveCriterion,
    metric: Metric,
    arms: Arms,
    values: Sequence[float],
    references: Sequence[float],
    history: History | None,
    source: str,
) -> Judged:
    if metric.kind == "count":
        return Judged("ERROR", f"{metric.label} is a count: give it a limit (min, max) instead of a baseline")
    if min(*values, *references) <= 0:
        if not criterion.required:
            return Judged("SKIPPED", f"{metric.label} is not above the idle bench's own in some launch")
        return Judged("ERROR", f"{metric.label} is zero or negative in some launch: a ratio means nothing")
    launches = [
        _launches(metric, samples, found)
        for samples, found in ((arms.baseline, references), (arms.candidate, values))
    ]
    sessions = [
        [sample.session for sample in samples] if arms.by_session else None
        for samples in (arms.baseline, arms.candidate)
    ]
    decision = decide(
        launches[0],
        launches[1],
        margin=criterion.margin,
        indifference=criterion.indifference,
        alpha=criterion.alpha,
        better=metric.better,
        baseline_sessions=sessions[0],
        candidate_sessions=sessions[1],
        history=history,
    )
    outcome, reason = _in_words(decision, criterion, metric, "session" if arms.by_session else "pair")
    return Judged(
        outcome,
        reason,
        candidate=float(np.mean(values)),
        reference=float(np.mean(references)),
        shift=_finite(decision.shift),
        ci95=None if _finite(decision.ci95[0]) is None or _finite(decision.ci95[1]) is None else decision.ci95,
        margin=criterion.margin,
        indifference=criterion.indifference,
        detectable=_finite(decision.detectable),
        unit_of_inference="session" if arms.by_session else "pair",
        source=source,
    )


def _launches(metric: Metric, samples: Sequence[Sample], values: Sequence[float]) -> list[Sequence[float] | float]:
    """Per-second values where the metric has them and the launch is long enough, else its one value."""
    listed: list[Sequence[float] | float] = []
    for sample, value in zip(samples, values, strict=True):
        series = sample.series.get("iops", ()) if metric.name == "iops" else ()
        listed.append(list(series) if len(series) >= _SERIES_FROM else value)
    return listed


def _in_words(decision: Decision, criterion: EffectiveCriterion, metric: Metric, unit: str) -> tuple[str, str]:
    """Outcome and sentence of a decision: a pass near its limit is MARGINAL."""
    shift, low = 100 * decision.shift, 100 * decision.ci95[0]
    margin = 100 * criterion.margin
    if decision.outcome == "fail":
        return "FAIL", (
            f"{metric.label} is {abs(shift):.1f} % worse; a loss above {100 * criterion.indifference:g} % is shown "
            f"(interval {low:.1f} to {100 * decision.ci95[1]:.1f} %)"
        )
    if decision.outcome == "pass":
        if criterion.marginal is not None and decision.ci95[0] + criterion.margin < criterion.marginal:
            return "MARGINAL", f"no worse than the margin of {margin:g} %, but the interval reaches to {low:.1f} %"
        return "PASS", f"shown to be no more than {margin:g} % worse (shift {shift:+.1f} %)"
    wanted = (
        f"about {decision.pairs_wanted} more {unit}s{' of each arm' if unit == 'session' else ''} would decide it"
    )
    return "INCONCLUSIVE", (
        f"undecided when the measuring ended: shift {shift:+.1f} %, "
        f"a loss of {100 * decision.detectable:.1f} % could have been seen; {wanted}"
    )


def _against_limits(criterion: EffectiveCriterion, metric: Metric, values: Sequence[float], source: str) -> Judged:
    """Limits of a specification: the interval of the mean must be within them; of a count, every sample."""
    low = -math.inf if criterion.min is None else criterion.min
    high = math.inf if criterion.max is None else criterion.max
    middle = float(np.mean(values))
    limits = " and ".join(
        words
        for words in (f"at least {low:g}" if low > -math.inf else "", f"at most {high:g}" if high < math.inf else "")
        if words
    )
    reference = criterion.min if criterion.min is not None else criterion.max
    said = f"{metric.label} is {middle:g} {metric.unit}, {limits} {metric.unit} is asked"

    def judged(outcome: str, reason: str) -> Judged:
        return Judged(outcome, reason, candidate=middle, reference=reference, source=source)

    if metric.kind == "count":
        worst = [value for value in values if not low <= value <= high]
        return judged("FAIL" if worst else "PASS", said)
    if len(values) < 2:
        return judged("INCONCLUSIVE", f"{said}; one sample has no interval")
    half = float(stats.t.ppf(1 - criterion.alpha, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    bottom, top = middle - half, middle + half
    said += f" (interval {bottom:.4g} to {top:.4g})"
    if bottom >= low and top <= high:
        near = (
            criterion.marginal is not None
            and min(
                (bottom - low) / abs(low) if math.isfinite(low) and low else math.inf,
                (high - top) / abs(high) if math.isfinite(high) and high else math.inf,
            )
            < criterion.marginal
        )
        return judged("MARGINAL" if near else "PASS", said)
    return judged("FAIL" if top < low or bottom > high else "INCONCLUSIVE", said)


def _against_peers(criterion: EffectiveCriterion, metric: Metric, arms: Arms, values: Sequence[float]) -> Judged:
    """This adapter against the mean of the others at the same point, session by session, inside one arm."""
    sign = 1.0 if metric.better == "higher" else -1.0
    others = [metric.value(sample) for samples in arms.peers.values() for sample in samples if sample.status == "ok"]
    known = [found.value for found in others if isinstance(found, Value) and found.value > 0]
    if not known or min(values) <= 0:
        return Judged("ERROR" if criterion.required else "SKIPPED", "no other adapter was measured at this point")
    level = float(np.mean(known))
    ratios = [sign * math.log(value / level) for value in values]
    shift = math.expm1(float(np.mean(ratios)))
    numbers: dict[str, Any] = {
        "candidate": float(np.mean(values)),
        "reference": level,
        "shift": shift,
        "margin": criterion.margin,
    }
    if len(ratios) < 2:
        return Judged("INCONCLUSIVE", "one sample has no interval", **numbers)
    half = float(stats.t.ppf(0.975, len(ratios) - 1) * np.std(ratios, ddof=1) / math.sqrt(len(ratios)))
    interval = (math.expm1(float(np.mean(ratios)) - half), math.expm1(float(np.mean(ratios)) + half))
    said = f"{metric.label} is {100 * shift:+.1f} % from the mean of {len(arms.peers)} peers"
    outcome: Literal["PASS", "FAIL", "INCONCLUSIVE"] = (
        "PASS" if interval[0] > -criterion.margin else "FAIL" if interval[1] < -criterion.margin else "INCONCLUSIVE"
    )
    return Judged(outcome, said, ci95=interval, **numbers)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
