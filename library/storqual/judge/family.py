# SPDX-License-Identifier: Apache-2.0
"""Many criteria at once: what a single FAIL among hundreds means, and what all points say together.

PASS needs no correction: a campaign passes only when every required criterion passes, so each is tested at its own
alpha. FAIL is the other way round: one is enough, so among two hundred unchanged points some would fail by chance.
A required FAIL therefore stands when it survives Holm's correction over the required criteria of the run (or was
confirmed on fresh data); an informative one when it survives Benjamini and Hochberg's at ten percent.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from storqual.judge.numbers import plural
from storqual.judge.question import Judged, Question
from storqual.statistics.comparison import as_fraction
from storqual.statistics.counts import benjamini_hochberg, holm, overall_shift

FALSE_SHARE = 0.10


def corrected(questions: Sequence[Question], answers: Sequence[Judged]) -> list[Judged]:
    """Answers in which a FAIL that chance explains, given how many criteria there are, is undecided."""
    found = list(answers)
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
        for index, kept in zip(members, stands, strict=True):
            if answers[index].outcome == "FAIL" and not kept:
                count = plural(len(members), "criterion").replace("criterions", "criteria")
                reason = (
                    f"{answers[index].reason}; among {count} one such result may be chance, so it has to be "
                    "measured again"
                )
                found[index] = replace(answers[index], outcome="INCONCLUSIVE", reason=reason)
    return found


def overall_findings(questions: Sequence[Question], answers: Sequence[Judged]) -> list[dict[str, Any]]:
    """The shift of each metric over all points of an adapter, with its interval; negative = worse, in percent."""
    groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        answer = answers[index]
        if question.criterion.against == "baseline" and answer.error is not None and answer.shift is not None:
            groups[(question.point.bench, question.point.adapter, question.criterion.metric)].append(index)
    found = []
    for (bench, adapter, name), members in groups.items():
        metric = questions[members[0]].metric
        if metric is None:
            continue
        logs = [_log(answers[index].shift, metric.better) for index in members]
        overall = overall_shift(logs, [answers[index].error or 0.0 for index in members])
        if overall is None:
            continue
        shift, low, high = (as_fraction(end, metric.better) for end in (overall.shift, overall.low, overall.high))
        found.append(
            {
                "bench": bench,
                "adapter": adapter,
                "metric": name,
                "points": overall.points,
                "shift_percent": round(100 * shift, 4),
                "ci95_percent": [round(100 * low, 4), round(100 * high, 4)],
            }
        )
    return found


def _log(shift: float | None, better: str) -> float:
    """The log-ratio of a shift; negative = worse."""
    value = shift or 0.0
    return math.log1p(value) if better == "higher" else -math.log1p(-value)
