# SPDX-License-Identifier: Apache-2.0
"""A workload against its baseline or a limit: a hand-written suite's own threshold, the judge's own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from storqual.checks.seen import NotJudgedError
from storqual.inputs.effective import EffectiveCriterion
from storqual.inputs.fields import limit_value
from storqual.judge.answers import answer, confirm
from storqual.judge.asked import Asked, looks_of, metrics_of, questions_of
from storqual.judge.family import corrected
from storqual.judge.question import Judged
from storqual.metrics import METRICS
from storqual.run import PlannedPoint, Run
from storqual.run.measurements import measurements_at


@dataclass(frozen=True)
class Threshold:
    """What is asked of a metric: no loss of `margin` (a fraction) against the baseline, or limits with units."""

    metric: str
    margin: float | None = None
    least: str | None = None
    most: str | None = None

    def criterion(self, plan: Mapping[str, object]) -> EffectiveCriterion:
        """The judge's form of it. Raises ValueError for a limit in a unit that does not fit."""
        margin = self.margin if self.margin is not None else _fraction(plan, "margin", 0.03)
        return EffectiveCriterion(
            id=self.metric,
            metric=self.metric,
            against="absolute" if self.least or self.most else "baseline",
            margin=margin,
            indifference=min(_fraction(plan, "indifference", 0.01), margin / 2),
            marginal=None,
            alpha=_fraction(plan, "alpha", 0.05),
            min=None if self.least is None else limit_value(self.least, self.metric),
            max=None if self.most is None else limit_value(self.most, self.metric),
            required=True,
            source="a hand-written suite",
        )


def _fraction(plan: Mapping[str, object], name: str, otherwise: float) -> float:
    value = plan.get(name)
    return float(value) if isinstance(value, (int, float)) else otherwise


def judge_points(
    run: Run, bench: str, workload: str, threshold: Threshold, *, adapter: str = "*"
) -> Iterator[tuple[PlannedPoint, Judged]]:
    """Every planned point of `workload` (a workload or point name, `*` and `?` allowed) with its answer.

    Raises NotJudgedError for a metric that does not exist and a workload that was not planned.
    """
    if threshold.metric not in METRICS:
        raise NotJudgedError(f"there is no metric {threshold.metric!r}; known are {', '.join(sorted(METRICS))}")
    points = [
        point
        for point in run.plan.points
        if point.bench == bench
        and not point.skipped
        and fnmatchcase(point.adapter, adapter)
        and any(_fits(name, workload) for name in (point.workload, point.point))
    ]
    if not points:
        raise NotJudgedError(f"no planned point on {bench} is {workload!r} of adapter {adapter!r}")
    criterion = threshold.criterion(run.plan.fields)
    asked = [Asked(point, (criterion,)) for point in points]
    questions = questions_of(run, asked, measurements_at(run, metrics_of(asked)).points)
    looks = looks_of(run)
    judged = corrected(questions, confirm(questions, answer(questions, looks, {}), looks, {}))
    return zip(points, judged, strict=True)


def _fits(name: str, pattern: str) -> bool:
    """A point's name has brackets, which would be a set of letters to fnmatch."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))
