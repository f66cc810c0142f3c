# SPDX-License-Identifier: Apache-2.0
"""Counts against the baseline: dips, stalls, errors. Nothing at all is not a small number, and has no logarithm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from storqual.judge.numbers import amount, percent
from storqual.judge.question import Judged, Question, Unit, missing, units_of
from storqual.metrics import Metric
from storqual.statistics.counts import compare_counts


def judge_counts(question: Question, metric: Metric) -> Judged:
    """Fail when the candidate has shown more; pass when it has none, or no more than the margin is shown."""
    arms: list[list[Unit]] = []
    for arm in ("baseline", "candidate"):
        found = units_of(question.place.of(arm), metric)
        if isinstance(found, str):
            return missing(question, f"{arm}: {found}")
        arms.append(found)
    rule = question.criterion
    means = [math.fsum(unit.value for unit in arm) / len(arm) for arm in arms]
    counts = [_events(arm) for arm in arms]
    # launches are the exposure: each is a trial that may show it
    exposure = (float(len(arms[0])), float(len(arms[1])))
    test = compare_counts(counts[0], counts[1], exposure, margin=rule.margin, alpha=rule.alpha)
    said = f"{metric.label}: {amount(means[1], metric)} against {amount(means[0], metric)}"
    reasons = {
        "fail": f"{said}, more than chance explains (p = {test.p:.2g})",
        "pass": f"{said}" if counts[1] else f"{said}: none was seen",
        "inconclusive": f"{said}: too few to exclude {percent(rule.margin)} more",
    }
    return Judged(
        outcome={"fail": "FAIL", "pass": "PASS", "inconclusive": "INCONCLUSIVE"}[test.outcome],
        reason=reasons[test.outcome],
        candidate=means[1],
        reference=means[0],
        margin=rule.margin,
        loss_p=test.p,
        source=arms[0][0].source,
    )


def _events(units: Sequence[Unit]) -> float:
    """How many launches had any: a launch that stalls six times is one finding, not six independent ones."""
    return float(sum(unit.value > 0 for unit in units))
