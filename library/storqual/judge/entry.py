# SPDX-License-Identifier: Apache-2.0
"""Criteria as verdict.json has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from storqual.base.formulas import Better
from storqual.judge.question import LIMITS, Judged, OddLaunch, Question, is_suspect, loss_to
from storqual.run import Check
from storqual.run.records import Launch

_ARMS = ("candidate", "baseline")
_MOST_DOUBTS = 5


@dataclass(kw_only=True, slots=True)
class VerdictEntry:
    """A criterion at one point as verdict.json has it, fields in that order; percentages, negative = worse."""

    id: str
    bench: str | None
    adapter: str | None
    point: str | None
    metric: str | None = None
    unit: str = ""
    better: Better = "higher"
    against: str
    reference: float | None = None
    reference_source: str = ""
    outcome: str
    reason: str
    candidate: float | None = None
    shift_percent: float | None = None
    loss_percent: float | None = None
    ci95_percent: list[float | None] | None = None
    margin_percent: float | None = None
    indifference_percent: float | None = None
    detectable_percent: float | None = None
    bound_percent: float | None = None
    samples: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_ARMS, 0))
    suspect: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_ARMS, 0))
    sessions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_ARMS, 0))
    ios: dict[str, int] | None = None
    unit_of_inference: str = "value"
    source: str
    required: bool
    evidence: list[str] = field(default_factory=list)
    odd_launch: dict[str, Any] | None = None
    confirmation: dict[str, Any] | None = None
    waiver: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """A fail has a loss where there is a ratio: of the arms, or of the value to the limit that it broke."""
        if self.outcome != "FAIL" or self.loss_percent is not None:
            return
        if self.shift_percent is not None:
            self.loss_percent = -self.shift_percent
        elif self.against in LIMITS and self.candidate is not None and self.reference is not None:
            self.loss_percent = _percent(loss_to(self.candidate, self.reference))

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def judged_entry(question: Question, judged: Judged, log_evidence: Sequence[str]) -> VerdictEntry:
    """A criterion that was judged; `log_evidence` is what the kernel log says about its launches."""
    metric, rule = question.metric, question.criterion
    arms = {arm: question.launches.of(arm) for arm in _ARMS}
    all_launches = {arm: question.launches.every(arm) for arm in _ARMS}
    doubts = sorted({doubt for launches in all_launches.values() for launch in launches for doubt in launch.suspect})
    return VerdictEntry(
        id=rule.id,
        bench=question.point.bench,
        adapter=question.point.adapter,
        point=question.point.point,
        metric=rule.metric,
        unit=metric.unit if metric else "",
        better=metric.better if metric else "higher",
        against=rule.against,
        reference=judged.reference,
        reference_source=rule.source,
        outcome=judged.outcome,
        reason=judged.reason,
        candidate=judged.candidate,
        shift_percent=_percent(judged.shift),
        loss_percent=_percent(judged.loss) if judged.outcome == "FAIL" else None,
        ci95_percent=[_percent(end) for end in judged.ci95] if judged.ci95 else None,
        margin_percent=_percent(judged.margin),
        indifference_percent=_percent(judged.indifference),
        detectable_percent=_percent(judged.detectable),
        bound_percent=_percent(judged.bound),
        samples={arm: len(arms[arm]) for arm in _ARMS},
        suspect={arm: sum(map(is_suspect, all_launches[arm])) for arm in _ARMS},
        sessions={arm: len({launch.session for launch in arms[arm]}) for arm in _ARMS},
        ios=None if judged.ios is None else dict(zip(("baseline", "candidate"), judged.ios, strict=True)),
        unit_of_inference=judged.unit,
        source=judged.source,
        required=rule.required,
        evidence=[*log_evidence, *doubts[:_MOST_DOUBTS]],
        odd_launch=_odd_launch(judged.odd),
        confirmation=_confirmation(question, judged.again),
    )


def check_entry(check: Check, *, required: bool) -> VerdictEntry:
    return VerdictEntry(
        id=check.id,
        bench=check.bench,
        adapter=check.adapter,
        point=check.point,
        against="check",
        outcome=check.outcome,
        reason=check.reason,
        source=check.source,
        required=required,
    )


def _odd_launch(odd: OddLaunch | None) -> dict[str, Any] | None:
    """The launch that was left out of the estimate with its partner."""
    if odd is None:
        return None
    return {
        "arm": odd.arm,
        "number": odd.number,
        "sample": odd.id,
        "of_others_percent": round(100 * odd.of_others, 2),
        "longest_io_ms": None if odd.longest_us is None else round(odd.longest_us / 1000, 3),
        "text": odd.sentence(),
    }


def _confirmation(question: Question, again: Judged | None) -> dict[str, Any] | None:
    """What the launches that measured a fail afresh say, with an interval of their own."""
    if again is None:
        return None
    return {
        "outcome": again.outcome,
        "reason": again.reason,
        "shift_percent": _percent(again.shift),
        "ci95_percent": [_percent(end) for end in again.ci95] if again.ci95 else None,
        "samples": {arm: len(question.launches.fresh.get(arm, ())) for arm in _ARMS},
    }


def with_evidence(judged: Judged, log_evidence: Sequence[str], stale: str) -> Judged:
    """Evidence against a number that would pass: what the kernel log says, or a baseline that is too old."""
    against = log_evidence[0] if log_evidence else stale
    if against and judged.outcome in ("PASS", "MARGINAL", "INCONCLUSIVE"):
        return replace(judged, outcome="ERROR", reason=against)
    return judged


def stale_baseline(launches: Sequence[Launch], moment: datetime, days: int | None) -> str:
    """Why a baseline is too old to be compared with; empty when it is not."""
    if days is None or not launches:
        return ""
    oldest = datetime.fromisoformat(min(launch.start for launch in launches))
    if moment - oldest <= timedelta(days=days):
        return ""
    return (
        f"the baseline was measured on {oldest.date().isoformat()}; the gate accepts a baseline of at "
        f"most {days} days"
    )


def log_findings_about(question: Question, findings: Mapping[str, Sequence[str]]) -> list[str]:
    """What the kernel log says of a question's launches: by launch, or by batch where none is named."""
    if not findings:
        return []
    names = {
        name
        for arm in _ARMS
        for launch in question.launches.every(arm)
        for name in (launch.id, launch.block)
        if name in findings
    }
    return sorted({line for name in names for line in findings[name]})


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 4)
