# SPDX-License-Identifier: Apache-2.0
"""One criterion at one point, and its answer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from storqual.base.text import fits_name
from storqual.inputs.policy import Gate
from storqual.inputs.product import criteria_at
from storqual.inputs.suite import EffectiveCriterion, Suite
from storqual.metrics import METRICS, OF_RATES, Metric, Unavailable, Value
from storqual.run import PlannedPoint, Run, planned_session
from storqual.run.measurements import PointData, PointKey
from storqual.run.records import Launch
from storqual.statistics.comparison import Looks
from storqual.statistics.scaling import SCALED
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_percent

LIMITS = ("absolute", "published", "product")
"""What a criterion is against that has `min` or `max`."""
PointCriterion = tuple[PlannedPoint, EffectiveCriterion]

_FEWEST_SECONDS = 3
"""Seconds from which a launch is judged by its seconds; in fewer, a dip cannot be told from the level."""


PURPOSE = "confirm"


def confirming_sessions(run: Run) -> frozenset[tuple[str, str]]:
    return frozenset((session.bench, session.id) for session in run.sessions if session.purpose == PURPOSE)


@dataclass(slots=True)
class ArmLaunches:
    """The launches of one point by arm, in the order they were measured; `fresh` are those that confirm a fail.

    `whole` has those too that are no evidence because they are suspect, where there are any.
    """

    arms: dict[str, list[Launch]] = field(default_factory=lambda: defaultdict(list))
    fresh: dict[str, list[Launch]] = field(default_factory=lambda: defaultdict(list))
    whole: ArmLaunches | None = None

    def of(self, arm: str) -> Sequence[Launch]:
        return self.arms.get(arm, ())

    def every(self, arm: str) -> Sequence[Launch]:
        """The launches of `arm`, suspect ones among them."""
        return self.of(arm) if self.whole is None else self.whole.of(arm)

    def confirming(self) -> ArmLaunches | None:
        """The fresh launches by themselves; None unless both arms have some."""
        if all(self.fresh.get(arm) for arm in ("baseline", "candidate")):
            return ArmLaunches(self.fresh, whole=None if self.whole is None else ArmLaunches(self.whole.fresh))
        return None

    def clean(self, *, paired: bool) -> ArmLaunches:
        """Without the launches that ran and are suspect; `paired`: without their partners in the other arm either.

        Launches that did not run as asked stay: they spoil a point whatever else is said of them.
        """
        if not any(map(is_suspect, chain(*self.arms.values(), *self.fresh.values()))):
            return self
        return ArmLaunches(_clean(self.arms, paired=paired), _clean(self.fresh, paired=paired), whole=self)

    def beyond_rates(self) -> ArmLaunches:
        """For metrics that are no rates: launches that are suspect but for their rates are suspect."""
        if not any(launch.suspect_but_rates for launch in chain(*self.arms.values(), *self.fresh.values())):
            return self
        return ArmLaunches(_beyond_rates(self.arms), _beyond_rates(self.fresh))


def is_suspect(launch: Launch) -> bool:
    """Whether a launch ran as asked, and something is known that makes its numbers no evidence."""
    return launch.status == "ok" and bool(launch.suspect)


def _clean(arms: Mapping[str, Sequence[Launch]], *, paired: bool) -> dict[str, list[Launch]]:
    pairs = {launch.n for launches in arms.values() for launch in launches if is_suspect(launch)} if paired else set()
    return {
        arm: [
            launch
            for launch in launches
            if not is_suspect(launch) and (launch.n not in pairs or launch.status != "ok")
        ]
        for arm, launches in arms.items()
    }


def _beyond_rates(arms: Mapping[str, Sequence[Launch]]) -> dict[str, list[Launch]]:
    return {
        arm: [replace(launch, suspect=(*launch.suspect, *launch.suspect_but_rates)) for launch in launches]
        for arm, launches in arms.items()
    }


@dataclass(frozen=True)
class ScaledPoints:
    """The points of one adapter that differ in the factor `over`, by its level."""

    bench: str
    adapter: str
    name: str
    over: str
    points: Mapping[float, PlannedPoint]


def curves_of(points: Iterable[PlannedPoint]) -> list[ScaledPoints]:
    """Every curve with two levels at least; its name is a point's with `*` for the level."""
    groups: defaultdict[tuple[str, str, str, str], dict[float, PlannedPoint]] = defaultdict(dict)
    for point in points:
        for factor in SCALED:
            level = point.factors.get(factor)
            if isinstance(level, int) and not isinstance(level, bool):
                name = _starred(point.point, factor)
                groups[point.bench, point.adapter, name, factor][float(level)] = point
    return [
        ScaledPoints(*key[:3], over=key[3], points=dict(sorted(levels.items())))
        for key, levels in groups.items()
        if len(levels) > 1
    ]


def values_at(
    curve: ScaledPoints, launches_at: Mapping[PointKey, ArmLaunches], metric: Metric, arm: str
) -> dict[float, Sequence[float]]:
    """Values of an arm by level: one for each session where there are several, else one for each launch.

    A level whose launches cannot answer is left out: a curve is about what was measured.
    """
    values_by_level: dict[float, Sequence[float]] = {}
    for level, point in curve.points.items():
        launches = launches_at.get(point.key, ArmLaunches()).of(arm)
        units = units_of(launches, metric) if all(launch.status == "ok" for launch in launches) else "not all ran"
        if isinstance(units, str) or not units or min(unit.value for unit in units) <= 0:
            continue
        means = list(session_means(units).values())
        values_by_level[level] = means if len(means) > 1 else [unit.value for unit in units]
    return values_by_level


def _starred(point: str, factor: str) -> str:
    """`seq_read[bs=64k,drives=4]` with drives as `*`."""
    head, _, inside = point.rstrip("]").partition("[")
    parts = [f"{factor}=*" if part.partition("=")[0] == factor else part for part in inside.split(",")]
    return f"{head}[{','.join(parts)}]"


@dataclass(frozen=True, slots=True)
class Question:
    """A criterion at a point, with the launches that can answer it. `by_session`: an arm change costs a session."""

    point: PlannedPoint
    criterion: EffectiveCriterion
    launches: ArmLaunches
    by_session: bool
    peers: tuple[tuple[str, ArmLaunches], ...] = ()
    excused: str = ""
    """Why this bench cannot stand for what the criterion is about."""
    curve: ScaledPoints | None = None
    """For a criterion on scaling: the points that differ from this one in the factor alone, ..."""
    launches_at: Mapping[PointKey, ArmLaunches] = field(default_factory=dict, repr=False)
    """... and where their launches are."""

    @property
    def metric(self) -> Metric | None:
        """The metric; None for a name that is none."""
        return METRICS.get(self.criterion.metric)


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome with its numbers; fractions, negative = worse; None where a number means nothing.

    `margin` is the unacceptable loss and `indifference` the acceptable one; `bound` is the loss that a pass excludes,
    one-sided as the pass is. `loss_p` is the smallest alpha at which the loss would have been shown: corrections for
    many criteria need it.
    """

    outcome: str
    reason: str
    candidate: float | None = None
    reference: float | None = None
    shift: float | None = None
    ci95: tuple[float, float] | None = None
    margin: float | None = None
    indifference: float | None = None
    detectable: float | None = None
    unit: str = "value"
    source: str = ""
    loss_p: float = 1.0
    error: float | None = None
    """Standard error of the log-ratio, for the shift of all points together."""
    units: int = 0
    further_units: int = 0
    """Pairs (sessions per arm) that were used, and how many more would decide."""
    bound: float | None = None
    sd: float | None = None
    df: float = 0.0
    """Noise of one unit as a log-ratio, for fresh launches of the same point."""
    settled: bool = True
    """Whether more of the same could still change the outcome: a marginal pass may become a plain one."""
    odd: OddLaunch | None = None
    ios: tuple[int, int] | None = None
    """Of a percentile, the fewest I/Os that one value of the baseline, and of the candidate, is of."""
    again: Judged | None = None
    """The answer of the launches that measured a fail afresh."""
    loss: float | None = None
    """The loss of a fail that neither `shift` nor `candidate` against `reference` tells."""


@dataclass(frozen=True, slots=True)
class OddLaunch:
    """One launch unlike all others of its point, left out of the estimate with its partner.

    `number` counts the launches of its arm from 1; `of_others` is its value as a fraction of the mean of the others.
    """

    arm: str
    number: int
    id: str
    of_others: float
    longest_us: float | None

    def sentence(self) -> str:
        """`launch 3 of the candidate: 92.8 % of the others, longest I/O 209 ms`."""
        longest = "" if self.longest_us is None else f", longest I/O {self.longest_us / 1000:.3g} ms"
        return f"launch {self.number} of the {self.arm}: {format_percent(self.of_others)} of the others{longest}"


@dataclass(frozen=True, slots=True)
class Unit:
    """One value that a criterion is judged by: a launch, or all launches of a session where one is too short."""

    session: str
    value: float
    source: str
    seconds: tuple[float, ...] = ()
    id: str = ""
    longest_us: float | None = None
    ios: int | None = None
    """Of a percentile, how many I/Os it is of."""
    launches: int = 1
    """How many launches were merged into it."""


def missing(question: Question, reason: str) -> Judged:
    """The answer when there is no data: an error where it is required, not answered where it is informative."""
    return Judged("ERROR" if question.criterion.required else "SKIPPED", reason)


def units_of(launches: Sequence[Launch], metric: Metric) -> list[Unit] | str:
    """The values of an arm, or why there are none: a metric that one launch lacks is lacking."""
    units = []
    for launch in launches:
        value = launch.values.get(metric.name) if launch.status == "ok" else None
        if not isinstance(value, Value):
            pooled = _pooled(launches, metric)
            if pooled:
                return pooled
            why = value.reason if isinstance(value, Unavailable) else "it was not extracted"
            return f"{metric.label} is unavailable in launch {launch.id}: {why}"
        several = len(launch.seconds) >= _FEWEST_SECONDS and sum(launch.seconds) > 0
        seconds = launch.seconds if metric.series and several else ()
        units.append(
            Unit(launch.session, value.value, value.source, seconds, launch.id, launch.longest_us, value.ios)
        )
    return units


def session_means(units: Iterable[Unit], scale: Callable[[float], float] = float) -> dict[str, float]:
    """The mean of each session's values on a scale (`math.log` for ratios), in the order the sessions began."""
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for unit in units:
        sessions[unit.session].append(scale(unit.value))
    return {session: math.fsum(values) / len(values) for session, values in sessions.items()}


def _pooled(launches: Sequence[Launch], metric: Metric) -> list[Unit]:
    """One value per session from the merged histograms of its launches; empty where even those do not do."""
    sessions: dict[str, list[Launch]] = {}
    for launch in launches:
        sessions.setdefault(launch.session, []).append(launch)
    units = []
    for session, members in sessions.items():
        pool = members[0].pool
        # a launch may be left out because its partner is suspect: its I/Os are as good as those of the others
        if pool is None or pool.launches < len(members) or any(member.pool is not pool for member in members):
            return []
        value = metric.value(pool)
        if not isinstance(value, Value):
            return []
        units.append(
            Unit(session, value.value, "launches of a session merged", ios=value.ios, launches=pool.launches)
        )
    return units


def loss_to(value: float, limit: float) -> float | None:
    """By which fraction of the limit a value is beyond it; None where that is no number (a limit of 0)."""
    return finite(abs(value - limit) / abs(limit)) if limit else None


def finite(number: float) -> float | None:
    """`number`, or None where it is none."""
    return number if math.isfinite(number) else None


def planned_criteria(run: Run, rules: Suite, policy: Gate) -> list[PointCriterion]:
    """What a suite asks at the points of a run that were not skipped, with the gate's policy applied.

    Raises BadInputError for a suite without the profile that the run was planned with: by another one the margins
    would be others, and nobody would see it.
    """
    profile = rules.profile_name(run.suite.profile or None)
    points = [point for point in run.plan.points if not point.skipped]
    if points and profile not in rules.profiles:
        reason = f"has no profile {profile!r}, with which {run.name} was planned, only {', '.join(rules.profiles)}"
        raise BadInputError([f"suite {rules.name}: {reason}; add that profile to judge the run by this suite"])
    return [
        (point, _by_policy(criterion, policy))
        for point in points
        for criterion in criteria_at(rules, point, profile, adapter_of(run, point), kind_of(run, point))
    ]


def adapter_of(run: Run, point: PlannedPoint) -> Mapping[str, Any]:
    """The adapter of a point as the inventory describes it; empty where the run does not have it."""
    adapter: Mapping[str, Any] = (run.benches[point.bench].get("adapters") or {}).get(point.adapter) or {}
    return adapter


def kind_of(run: Run, point: PlannedPoint) -> str:
    return str(run.benches[point.bench].get("kind") or "hardware")


def metrics_of(criteria: Iterable[PointCriterion]) -> dict[PointKey, list[str]]:
    """Which metrics the criteria are about, by point; a name that is no metric is not among them."""
    metrics: defaultdict[PointKey, list[str]] = defaultdict(list)
    for point, criterion in criteria:
        if criterion.metric in METRICS and criterion.metric not in metrics[point.key]:
            metrics[point.key].append(criterion.metric)
    return dict(metrics)


def launches_of(
    points: Mapping[PointKey, PointData], confirming: Collection[tuple[str, str]]
) -> dict[PointKey, ArmLaunches]:
    """The launches of each point, those apart that were measured to confirm a fail.

    `confirming` are the sessions (bench, session) of those.
    """
    launches_at: dict[PointKey, ArmLaunches] = {}
    for key, data in points.items():
        launches_at[key] = ArmLaunches()
        for launch in data.every():
            fresh = (launch.bench, planned_session(launch.session)) in confirming
            (launches_at[key].fresh if fresh else launches_at[key].arms)[launch.arm].append(launch)
    return launches_at


def questions_of(
    run: Run, criteria: Sequence[PointCriterion], points: Mapping[PointKey, PointData]
) -> list[Question]:
    """Every criterion at every point, with the launches that can answer it: suspect ones are no evidence."""
    designs = run.document["plan"].get("designs") or {}
    kinds = {bench: (designs.get(bench) or {}).get("kind", run.plan.design) for bench in run.benches}
    measured = launches_of(points, confirming_sessions(run))
    of_rates = {key: launches.clean(paired=False) for key, launches in measured.items()}
    of_others = {key: launches.beyond_rates().clean(paired=False) for key, launches in measured.items()}
    peers: defaultdict[tuple[str, str], list[PointKey]] = defaultdict(list)
    for key in measured:
        peers[key[0], key[2]].append(key)
    scaled = any(rule.against == "scaling" for _, rule in criteria)
    curves = curves_of(point for point in run.plan.points if not point.skipped) if scaled else []
    on_curve = {(point.key, curve.over): curve for curve in curves for point in curve.points.values()}
    questions = []
    for point, rule in criteria:
        by_session = kinds[point.bench] == "sessions"
        launches_at = of_rates if rule.metric in OF_RATES else of_others
        launches = launches_at.get(point.key) or ArmLaunches()
        paired = launches if launches.whole is None or by_session else launches.whole.clean(paired=True)
        peer_keys = peers[point.bench, point.point] if rule.against == "peers" else []
        beside = tuple((key[1], launches_at[key]) for key in peer_keys if key != point.key)
        emulated = kind_of(run, point) != "hardware"
        excused = f"needs hardware: {rule.hardware_only}" if rule.hardware_only and emulated else rule.unstated
        evidence = paired if rule.against == "baseline" else launches
        question = Question(point, rule, evidence, by_session, beside, excused)
        if rule.against == "scaling":
            if point.factors.get(rule.over) != rule.linear_to:
                # it is asked once for a curve: at the level that it names
                continue
            question = replace(question, curve=on_curve.get((point.key, rule.over)), launches_at=launches_at)
        questions.append(question)
    return questions


def looks_of(run: Run) -> Looks:
    """Whether the campaign could end on what it saw. One whose size was planned beforehand has a single look."""
    return "every" if run.document["plan"].get("looks") == "every" else "last"


def optional_input(run: Run, name: str) -> Path | None:
    """An input that a run may have been planned without. Raises BadInputError for one that lies outside of it."""
    return run.input_file(name) if name in (run.document.get("inputs") or {}) else None


def required_by(policy: Gate, name: str) -> bool | None:
    """Whether the gate requires the criterion or check of that name; None where it says nothing."""
    if any(fits_name(name, pattern) for pattern in policy.required):
        return True
    if any(fits_name(name, pattern) for pattern in policy.informative):
        return False
    return None


def _by_policy(criterion: EffectiveCriterion, policy: Gate) -> EffectiveCriterion:
    """The gate's policy decides what is required where it says anything about a criterion."""
    required = required_by(policy, criterion.id)
    return criterion if required is None else replace(criterion, required=required)
