# SPDX-License-Identifier: Apache-2.0
"""Is a curve linear as far as a criterion says: each level gives its share of what the first gives."""

from __future__ import annotations

from storqual.judge.question import Judged, Question, missing, values_at
from storqual.metrics import Metric
from storqual.statistics.estimates import Estimate
from storqual.statistics.scaling import scaling, scaling_sentences


def judge_against_scaling(question: Question, metric: Metric) -> Judged:
    """Pass when the candidate is shown to be linear up to the level, fail when a level before is shown not to be."""
    rule, curve = question.criterion, question.curve
    if curve is None or rule.linear_to is None:
        return missing(question, f"there is no other level of {rule.over} at this point")
    values = values_at(curve, question.places, metric, "candidate")
    limit = float(rule.linear_to)
    if limit not in values or min(values) >= limit:
        return missing(question, f"{metric.label} was not measured at {rule.over} {limit:g} and at fewer")
    found = scaling({level: values[level] for level in values if level <= limit}, tolerance=rule.margin)
    last = found.levels[-1]
    outcome = "INCONCLUSIVE"
    if found.broken_at is not None:
        outcome = "FAIL"
    elif found.linear_to >= limit:
        outcome = "PASS"
    return Judged(
        outcome=outcome,
        reason=" ".join(scaling_sentences(found, rule.over, metric.unit)),
        candidate=last.value.value,
        reference=found.levels[0].value.value * limit / found.levels[0].at,
        shift=last.efficiency.value - 1,
        ci95=_interval(last.efficiency),
        margin=rule.margin,
        unit="launch",
        units=min(map(len, values.values())),
    )


def _interval(estimate: Estimate) -> tuple[float, float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low - 1, estimate.high - 1
