# SPDX-License-Identifier: Apache-2.0
"""What is asked of a run: every criterion at every planned point, and the launches that can answer it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storqual.inputs.effective import EffectiveCriterion
from storqual.inputs.policy import Gate
from storqual.inputs.product import criteria_at
from storqual.inputs.suite import Suite
from storqual.judge.answers import confirming_sessions
from storqual.judge.question import ArmLaunches, Question, curves_of
from storqual.metrics import METRICS
from storqual.run import PlannedPoint, Run, planned_session
from storqual.run.measurements import PointData, PointKey
from storqual.statistics.comparison import Looks
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class Asked:
    """The criteria at one planned point, with the gate's policy applied."""

    point: PlannedPoint
    criteria: tuple[EffectiveCriterion, ...]


def asked_of(run: Run, rules: Suite, policy: Gate) -> list[Asked]:
    """What a suite asks at the points of a run that were not skipped.

    Raises BadInputError for a suite without the profile that the run was planned with: by another one the margins
    would be others, and nobody would see it.
    """
    profile = rules.profile_name(run.suite.profile or None)
    points = [point for point in run.plan.points if not point.skipped]
    if points and profile not in rules.profiles:
        told = f"has no profile {profile!r}, with which {run.name} was planned, only {', '.join(rules.profiles)}"
        raise BadInputError([f"suite {rules.name}: {told}; add that profile to judge the run by this suite"])
    return [
        Asked(
            point,
            tuple(
                _by_policy(one, policy)
                for one in criteria_at(rules, point, profile, adapter_of(run, point), kind_of(run, point))
            ),
        )
        for point in points
    ]


def adapter_of(run: Run, point: PlannedPoint) -> Mapping[str, Any]:
    """The adapter of a point as the inventory describes it; empty where the run does not have it."""
    found: Mapping[str, Any] = (run.benches[point.bench].get("adapters") or {}).get(point.adapter) or {}
    return found


def kind_of(run: Run, point: PlannedPoint) -> str:
    """The kind of a point's bench."""
    return str(run.benches[point.bench].get("kind") or "hardware")


def metrics_of(asked: Sequence[Asked]) -> dict[PointKey, list[str]]:
    """Which metrics the criteria are about, by point; a name that is no metric is not among them."""
    return {
        one.point.key: list(dict.fromkeys(rule.metric for rule in one.criteria if rule.metric in METRICS))
        for one in asked
    }


def launches_of(
    points: Mapping[PointKey, PointData], confirming: Collection[tuple[str, str]]
) -> dict[PointKey, ArmLaunches]:
    """The launches of each point, those apart that were measured to confirm a fail.

    `confirming` are the sessions (bench, session) of those.
    """
    found: dict[PointKey, ArmLaunches] = {}
    for key, data in points.items():
        found[key] = ArmLaunches()
        for launch in data.every():
            fresh = (launch.bench, planned_session(launch.session)) in confirming
            (found[key].fresh if fresh else found[key].arms)[launch.arm].append(launch)
    return found


def questions_of(run: Run, asked: Sequence[Asked], points: Mapping[PointKey, PointData]) -> list[Question]:
    """Every criterion at every point, with the launches that can answer it: suspect ones are no evidence."""
    designs = run.document["plan"].get("designs") or {}
    kinds = {bench: (designs.get(bench) or {}).get("kind", run.plan.design) for bench in run.benches}
    measured = launches_of(points, confirming_sessions(run))
    launches_at = {key: launches.clean(paired=False) for key, launches in measured.items()}
    peers: defaultdict[tuple[str, str], list[tuple[str, ArmLaunches]]] = defaultdict(list)
    if any(rule.against == "peers" for one in asked for rule in one.criteria):
        for (bench, adapter, name), launches in launches_at.items():
            peers[bench, name].append((adapter, launches))
    scaled = any(rule.against == "scaling" for one in asked for rule in one.criteria)
    curves = curves_of(one.point for one in asked) if scaled else []
    on_curve = {(point.key, curve.over): curve for curve in curves for point in curve.points.values()}
    found = []
    for one in asked:
        point = one.point
        kind = kinds[point.bench]
        launches = launches_at.get(point.key) or ArmLaunches()
        paired = launches if launches.whole is None or kind == "sessions" else launches.whole.clean(paired=True)
        for rule in one.criteria:
            others = peers[point.bench, point.point] if rule.against == "peers" else []
            beside = tuple((adapter, other) for adapter, other in others if adapter != point.adapter)
            emulated = kind_of(run, point) != "hardware"
            excused = f"needs hardware: {rule.hardware_only}" if rule.hardware_only and emulated else rule.unstated
            own = paired if rule.against == "baseline" else launches
            question = Question(point, rule, own, kind == "sessions", beside, excused)
            if rule.against == "scaling":
                if point.factors.get(rule.over) != rule.linear_to:
                    # it is asked once for a curve: at the level that it names
                    continue
                question = replace(question, curve=on_curve.get((point.key, rule.over)), launches_at=launches_at)
            found.append(question)
    return found


def looks_of(run: Run) -> Looks:
    """Whether the campaign could end on what it saw. One whose size was planned beforehand has a single look."""
    return "every" if run.document["plan"].get("looks") == "every" else "last"


def optional_input(run: Run, name: str) -> Path | None:
    """An input that a run may have been planned without. Raises BadInputError for one that lies outside of it."""
    return run.input_file(name) if name in (run.document.get("inputs") or {}) else None


def required_by(policy: Gate, name: str) -> bool | None:
    """Whether the gate requires the criterion or check of that name; None where it says nothing."""
    if any(fnmatchcase(name, pattern) for pattern in policy.required):
        return True
    if any(fnmatchcase(name, pattern) for pattern in policy.informative):
        return False
    return None


def _by_policy(criterion: EffectiveCriterion, policy: Gate) -> EffectiveCriterion:
    """The gate's policy decides what is required where it says anything about a criterion."""
    required = required_by(policy, criterion.id)
    return criterion if required is None else replace(criterion, required=required)
