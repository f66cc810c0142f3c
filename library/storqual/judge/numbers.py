# SPDX-License-Identifier: Apache-2.0
"""Numbers as they stand in a reason: digits that a reader needs, and the metric's unit."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from storqual.base.text import plural
from storqual.judge.question import Judged, Question, Unit
from storqual.metrics import Metric
from storqual.run import Run
from storqual.run.time_left import effort_of
from storqual.statistics.comparison import as_fraction
from storqual.statistics.counts import benjamini_hochberg, holm, overall_shift
from storqual_core.kit.quantities import format_duration, format_percent


def amount(value: float, metric: Metric) -> str:
    """`1234 IOPS`, `0 per TB`: four significant digits, no exponent for what people read."""
    unit = f"per {metric.unit[2:]}" if metric.unit.startswith("1/") else metric.unit
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f} {unit}"


def as_change(low: float, high: float | None = None) -> str:
    """A change in words: `4 % worse`; an interval: `3 % to 5 % worse`, `2 % worse to 1 % better`.

    Negative is worse, whichever way the metric goes: a sign would be read as more or less.
    """
    if high is None or low == high:
        size = format_percent(abs(low))
        return "no change" if size == "0 %" else f"{size} {_way(low)}"
    if (low < 0) == (high < 0) and low and high:
        near, far = sorted((abs(low), abs(high)))
        return f"{format_percent(near)} to {format_percent(far)} {_way(low)}"
    return f"{as_change(low)} to {as_change(high)}"


def _way(change: float) -> str:
    return "worse" if change < 0 else "better"


def rests_on(arms: Mapping[str, Sequence[Unit]]) -> str:
    """`; based on 6,012 I/Os of 5 launches`, the arms after the first in brackets; empty for no percentile."""
    counts = []
    for units in arms.values():
        if not units or any(unit.ios is None for unit in units):
            return ""
        launches = sum(unit.launches for unit in units)
        merged = f", merged into {plural(len(units), 'value')}" if launches > len(units) else ""
        ios = sum(unit.ios or 0 for unit in units)
        counts.append(f"{ios:,} I/Os of {plural(launches, 'launch')}{merged}")
    other_arms = "".join(f" ({arm}: {text})" for arm, text in zip(list(arms)[1:], counts[1:], strict=True))
    return f"; based on {counts[0]}{other_arms}"


def with_time_needed(run: Run, question: Question, judged: Judged) -> Judged:
    """An undecided answer with the time that its further pairs or sessions take on that bench, where known."""
    if judged.outcome != "INCONCLUSIVE" or not judged.further_units:
        return judged
    effort = effort_of(run, question.point.bench)
    if effort is None:
        return judged
    needed = format_duration(judged.further_units * effort.unit_seconds())
    return replace(judged, reason=f"{judged.reason} ({needed} of bench time)")


FALSE_SHARE = 0.10


def corrected(questions: Sequence[Question], answers: Sequence[Judged]) -> list[Judged]:
    """Answers in which a FAIL that chance explains, given how many criteria there are, is undecided."""
    remaining = list(answers)
    for required in (True, False):
        members = [
            index
            for index, question in enumerate(questions)
            if question.criterion.required is required
            and question.criterion.against == "baseline"
            and answers[index].outcome not in ("ERROR", "SKIPPED")
        ]
        probabilities = [answers[index].loss_p for index in members]
        if required:
            alpha = min((questions[index].criterion.alpha for index in members), default=0.05)
            stands = holm(probabilities, alpha)
        else:
            stands = benjamini_hochberg(probabilities, FALSE_SHARE)
        for index, significant in zip(members, stands, strict=True):
            if answers[index].outcome == "FAIL" and not significant:
                count = plural(len(members), "criterion").replace("criterions", "criteria")
                reason = (
                    f"{answers[index].reason}; among {count} one such result may be chance, so it has to be "
                    "measured again"
                )
                remaining[index] = replace(answers[index], outcome="INCONCLUSIVE", reason=reason)
    return remaining


def overall_findings(questions: Sequence[Question], answers: Sequence[Judged]) -> list[dict[str, Any]]:
    """The shift of each metric over all points of an adapter, with its interval; negative = worse, in percent."""
    groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        answer = answers[index]
        if question.criterion.against == "baseline" and answer.error is not None and answer.shift is not None:
            groups[(question.point.bench, question.point.adapter, question.criterion.metric)].append(index)
    findings = []
    for (bench, adapter, name), members in groups.items():
        metric = questions[members[0]].metric
        if metric is None:
            continue
        logs = [_log(answers[index].shift, metric.better) for index in members]
        overall = overall_shift(logs, [answers[index].error or 0.0 for index in members])
        if overall is None:
            continue
        shift, low, high = (as_fraction(end, metric.better) for end in (overall.shift, overall.low, overall.high))
        findings.append(
            {
                "bench": bench,
                "adapter": adapter,
                "metric": name,
                "points": overall.points,
                "shift_percent": round(100 * shift, 4),
                "ci95_percent": [round(100 * low, 4), round(100 * high, 4)],
            }
        )
    return findings


def _log(shift: float | None, better: str) -> float:
    value = shift or 0.0
    return math.log1p(value) if better == "higher" else -math.log1p(-value)
