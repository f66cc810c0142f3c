# SPDX-License-Identifier: Apache-2.0
"""Criteria that the launches of a plan cannot decide, known before a bench is touched.

A percentile needs `FEWEST_BEYOND` I/Os beyond it (`metrics/latency.py`): in each launch, or else in the launches of
a session, which are then merged into one value. How fast a real drive is nobody knows before it was measured; a paced
or an emulated one and a load at a fixed rate have a rate that is declared. One value has no interval: a limit needs
at least two, whatever the metric.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.inputs.inventory import Drive
from storqual.inputs.suite import Criterion, Profile, Suite, applies
from storqual.metrics import METRICS
from storqual.metrics.latency import FEWEST_BEYOND
from storqual.plan.bench_plan import BenchPlan
from storqual.plan.budget import first_part
from storqual_core.kit.quantities import format_duration

_PERCENTILE = re.compile(r"(?:read_|write_)?latency_p([0-9.]+)_us\Z")
_LIMITS = ("absolute", "published", "product")


def fewest_ios(metric: str) -> int | None:
    """How many I/Os the percentile of that metric needs; None for a metric that is no percentile."""
    match = _PERCENTILE.match(metric)
    # the product is rounded: 1 - 0.9999 is a little less than 0.0001
    return None if match is None else math.ceil(round(FEWEST_BEYOND / (1 - float(match[1]) / 100), 6))


@dataclass(frozen=True)
class _ArmYield:
    """What an arm's launches at a point can give at most, whatever is added to the plan.

    `launch` and `session` are the I/Os of the launch and of the session with the fewest.
    """

    launch: float
    session: float
    launches: int
    sessions: int
    runtime_s: float


def undecidable(plan: BenchPlan, suite: Suite, profile: Profile) -> Iterator[tuple[int, str]]:
    """Required criteria that stay undecided whatever the drop does: number of the criterion, and a sentence."""
    made = _arm_yields(plan, profile)
    for number, criterion in suite.numbered:
        if not criterion.is_required(plan.bench.kind):
            continue
        problems = {
            f"{point.adapter}/{point.point}": problem
            for point in plan.points
            if not point.skipped and applies(criterion, point.workload, point.factors, point.adapter)
            if (problem := _problem(criterion, made.get((point.adapter, point.point), ()), plan))
        }
        if problems:
            worst = min(problems, key=lambda key: problems[key].order)
            others = f" (and at {len(problems) - 1} more points)" if len(problems) > 1 else ""
            yield number, problems[worst].sentence.format(where=f"{worst}{others}")


@dataclass(frozen=True)
class _Problem:
    """Why a criterion cannot be decided at a point, and how near it is; `{where}` stands for the points."""

    sentence: str
    order: float


def _problem(criterion: Criterion, arms: Sequence[_ArmYield], plan: BenchPlan) -> _Problem | None:
    """Why the launches of both arms (of the candidate alone, last, without a baseline) cannot decide a criterion."""
    metric, fewest = criterion.metric, fewest_ios(criterion.metric)
    counts = arms if criterion.against == "baseline" else arms[-1:]
    known = METRICS.get(metric)
    if not counts or known is None or known.kind == "count" or criterion.against == "scaling":
        return None
    least = min(counts, key=lambda made: (made.session, made.launch, made.sessions))
    if fewest is not None and least.session < fewest:
        return _Problem(
            f"{metric} needs {fewest:,} I/Os of each arm in a session, and at {{where}} the launches planned make at "
            f"most {least.session:,.0f}: lengthen `runtime`, raise `launches`, or ask for a lower percentile",
            least.session,
        )
    by_session = plan.design.kind == "sessions"
    if fewest is not None and least.launch < fewest:
        if least.sessions > 1:
            return None
        enough = format_duration(math.ceil(fewest / (least.launch / least.runtime_s)))
        return _Problem(
            f"{metric} needs {fewest:,} I/Os in each launch, and at {{where}} a launch makes at most "
            f"{least.launch:,.0f}: its launches would be merged into one value of the session, and one value has no "
            f"interval; make `runtime` {enough} or longer"
            + (", raise `sessions`," if by_session else ",")
            + " or ask for a lower percentile",
            least.launch,
        )
    if criterion.against in _LIMITS and (least.sessions if by_session else least.launches) < 2:
        what, key = ("session", "`sessions` to 4") if by_session else ("launch", f"{_key(plan)} to 2")
        return _Problem(
            f"the limit on {metric} needs at least two values, and at {{where}} one {what} of the candidate is "
            f"planned, which has no interval: raise {key} or more",
            least.launches,
        )
    return None


def _key(plan: BenchPlan) -> str:
    """The key of a profile that says how many launches a point gets where a session is not the unit."""
    return "`pairs`" if plan.design.kind == "interleaved" else "`launches`"


def _arm_yields(plan: BenchPlan, profile: Profile) -> Mapping[tuple[str, str], Sequence[_ArmYield]]:
    """What each arm can give at each point, the candidate last. A campaign that measures until decided goes on."""
    drives = {drive.id: drive for adapter in plan.bench.adapters.values() for drive in adapter.drives}
    points: defaultdict[tuple[str, str], defaultdict[str, defaultdict[str, list[tuple[float, float]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for batch in plan.batches:
        for launch in batch["turns"] if batch["spool"] == "durable" else ():
            runtime_s = float(launch["request"]["fio"]["runtime_s"])
            ios = _rate(launch, drives) * runtime_s
            points[launch["adapter"], launch["point"]][launch["arm"]][batch["session"]].append((ios, runtime_s))
    first = profile if plan.design.kind == "single" else first_part(profile)
    pairs = profile.pairs / first.pairs if plan.design.kind == "interleaved" else 1.0
    sessions = profile.sessions / first.sessions if plan.design.kind == "sessions" else 1.0
    made: dict[tuple[str, str], Sequence[_ArmYield]] = {}
    for key, arms in points.items():
        made[key] = [
            _ArmYield(
                launch=min(ios for launches in by_session.values() for ios, _ in launches),
                session=pairs * min(sum(ios for ios, _ in launches) for launches in by_session.values()),
                launches=round(pairs * sessions * sum(map(len, by_session.values()))),
                sessions=round(sessions * len(by_session)),
                runtime_s=min(runtime_s for launches in by_session.values() for _, runtime_s in launches),
            )
            for _, by_session in sorted(arms.items())
        ]
    return made


def _rate(launch: Mapping[str, Any], drives: Mapping[str, Drive]) -> float:
    """I/Os per second that a launch cannot exceed; infinite where nothing declares a rate."""
    fio = launch["request"]["fio"]
    jobs = len(launch["drives"]) * int(fio["numjobs"])
    fixed = float(fio["options"].get("rate_iops") or math.inf) * jobs
    # a volume is no drive of the inventory
    limits = (_limit(drives[name], int(fio["bs"])) if name in drives else math.inf for name in launch["drives"])
    return min(fixed, sum(limits))


def _limit(drive: Drive, block_size: int) -> float:
    """I/Os per second of a drive that is emulated with a limit; infinite for any other."""
    virtual = drive.virtual
    if virtual is None:
        return math.inf
    by_bandwidth = math.inf if virtual.bandwidth is None else virtual.bandwidth / block_size
    return min(virtual.iops or math.inf, by_bandwidth)
