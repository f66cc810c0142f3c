# SPDX-License-Identifier: Apache-2.0
"""Drives that were not in a steady state: their figures are kept, and said to be what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storqual.judge.question import Judged, Question
from storqual.judge.words import percent
from storqual.store import Run

__all__ = ["unsteady_benches", "with_steadiness"]


def unsteady_benches(run: Run) -> dict[str, str]:
    """Benches whose drives did not settle before the campaign, and how far they were from it, as a sentence."""
    found: dict[str, str] = {}
    for entry in run.preconditioned:
        report = entry.report.get("steady")
        if report is None:
            continue
        found.pop(entry.bench, None)
        if not report.get("steady"):
            found[entry.bench] = _sentence(report)
    return found


def with_steadiness(question: Question, judged: Judged, unsteady: Mapping[str, str]) -> Judged:
    """A pass on drives that still changed decides nothing, unless the arms alternated: then the drift cancels."""
    reason = unsteady.get(question.point.bench)
    alternated = question.criterion.against in ("baseline", "peers") and not question.by_session
    if reason is None or alternated or judged.outcome not in ("PASS", "MARGINAL"):
        return judged
    return replace(judged, outcome="INCONCLUSIVE", reason=f"{reason}; {judged.reason}")


def _sentence(report: Mapping[str, object]) -> str:
    drift, snia = report.get("drift"), report.get("snia")
    told = f"the drives were not steady after {report.get('rounds')} rounds"
    if isinstance(drift, list) and len(drift) == 3:
        change, low, high = (percent(float(value), signed=True) for value in drift)
        told += f": drift {change} ({low} to {high}) over {report.get('window_s')} s"
    if isinstance(snia, dict):
        told += f"; SNIA: range {percent(float(snia['range']))}, excursion {percent(float(snia['excursion']))}"
    return told
