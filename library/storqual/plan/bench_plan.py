# SPDX-License-Identifier: Apache-2.0
"""The plan of one bench: its adapters under test, its points, its sessions and their batches."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storqual.inputs.drop import Drop
from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Profile, Suite, applies
from storqual.plan.arms import spec_of, switch_steps
from storqual.plan.around_launches import precondition_seconds, with_precondition, with_reference
from storqual.plan.batches import batch_file, cut, order_launches, seconds_of
from storqual.plan.budget import (
    NOTHING_KNOWN,
    BenchTime,
    Costs,
    KnownNoise,
    TimeLine,
    costs_of,
    detectable_loss,
    expected_units,
    first_part,
    once,
    provisioning,
    seconds_per_session,
    trial_seconds,
)
from storqual.plan.file_systems import ask_of, file_system_seconds, no_room
from storqual.plan.points import (
    TOGETHER,
    Placed,
    Point,
    balanced_fraction,
    drives_for,
    points_of,
    shortage,
    team,
    unseen_levels,
)
from storqual.plan.resolve import resolve
from storqual.plan.sessions import (
    Configuration,
    Design,
    Varied,
    combinations,
    configuration_name,
    design_of,
    plan_sessions,
    turn_change,
)
from storqual.plan.trials import PURPOSE, TurnPlan, batches_of_turns, hung_task_s, plan_turns
from storqual.plan.volumes import NO_VOLUMES, Layout, layouts_of, volumes_of
from storqual.run.records import PlannedPoint, PlannedSession
from storqual.run.time_left import Effort


@dataclass(frozen=True)
class Choice:
    """Which points are measured on which adapter, which are left out and why, and levels that nobody will see."""

    placed: tuple[Placed, ...]
    skipped: tuple[tuple[Placed, str], ...]
    unseen: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class BenchPlan:
    """Everything that is planned for a bench. `time` is until all points are decided, or all is measured."""

    bench: Bench
    under_test: tuple[str, ...]
    design: Design
    points: tuple[PlannedPoint, ...]
    sessions: tuple[PlannedSession, ...]
    batches: tuple[dict[str, Any], ...]
    specs: Mapping[str, dict[str, Any]]
    configurations: Mapping[str, dict[str, Any]]
    time: tuple[TimeLine, ...]
    measuring_seconds: float
    launches: int
    expected_units: int
    detectable: float
    effort: Effort
    switches: Mapping[str, Mapping[str, list[dict[str, Any]]]]
    turns: TurnPlan

    @property
    def seconds(self) -> float:
        return sum(line.seconds for line in self.time)


def adapters_under_test(
    bench: Bench, profile: Profile, suite: Suite, aliases: Sequence[str] | None, drops: Sequence[Drop] = ()
) -> list[str]:
    """The aliases under test: those asked for, else the inventory's choice, else adapters with claimed drives.

    A profile that names a number takes so many of the last kind: those first that can serve the whole suite, and of
    those different drivers before the same one again.
    """
    for chosen in (aliases, bench.under_test):
        if chosen is not None:
            return [alias for alias in bench.adapters if alias in chosen]
    claimed = [
        alias
        for alias, adapter in bench.adapters.items()
        if adapter.claimed or (suite.trials and bench.reached_by(alias))
    ]
    if profile.adapters is None:
        return claimed
    matrix = points_of(suite)
    layouts = layouts_of(bench, claimed, drops)
    lacks = {
        alias: sum(bool(reason) and not reason.startswith(TOGETHER) for reason in reasons)
        for alias in claimed
        for reasons in [[shortage(team(bench, alias, c.pattern), c.pattern, layouts[alias]) for c in matrix]]
    }
    seen: Counter[str | None] = Counter()
    again = {}
    for alias in claimed:
        again[alias] = seen[bench.adapters[alias].driver]
        seen[bench.adapters[alias].driver] += 1
    best = sorted(claimed, key=lambda alias: (lacks[alias], again[alias]))[: profile.adapters]
    return [alias for alias in claimed if alias in best]


def choose_points(
    bench: Bench,
    under_test: Sequence[str],
    suite: Suite,
    profile: Profile,
    seed: str,
    layouts: Mapping[str, Layout],
    only: Sequence[str] = (),
) -> Choice:
    """The whole matrix, the balanced fraction that the profile asks for, or the points named in `only`."""
    every = [
        Placed(
            alias,
            point,
            tuple(
                number
                for number, criterion in enumerate(suite.criteria)
                if applies(criterion, point.workload, dict(point.factors), alias)
            ),
        )
        for alias in under_test
        for point in every_point(suite)
        if not only or point.name in only
    ]
    unable = {placed: _unfit(bench, placed, profile, layouts[placed.adapter]) for placed in every}
    reasons = [(placed, unable[placed] or _shortage(bench, placed, layouts[placed.adapter])) for placed in every]
    able = [placed for placed, reason in reasons if not reason]
    count = None if only else _point_count(profile, len(under_test), len(suite.workloads))
    if count is None:
        return Choice(tuple(able), tuple((placed, reason) for placed, reason in reasons if reason), ())
    chosen = balanced_fraction(able, count, seed)
    order = {placed: number for number, placed in enumerate(able)}
    unfit = tuple((placed, reason) for placed, reason in unable.items() if reason)
    return Choice(tuple(sorted(chosen, key=order.__getitem__)), unfit, tuple(unseen_levels(able, chosen)))


def plan_bench(
    run: str,
    bench: Bench,
    under_test: Sequence[str],
    choice: Choice,
    *,
    drops: Mapping[str, Drop],
    suite: Suite,
    profile: Profile,
    seed: int,
    by_sessions: bool,
    prefix: str,
    known: KnownNoise = NOTHING_KNOWN,
    consent: tuple[str, ...] = (),
    only_trial: tuple[str, int] | None = None,
) -> BenchPlan:
    """Sessions and batches of one bench; `drops` by arm, `prefix` keeps ids of several benches apart.

    Launches come first, then trials and programs in sessions of their own; with `only_trial` one trial, so many
    times. A profile that measures until decided has only its first part planned here; the rest follows from what is
    seen. `known` is the spread of a launch and of a session's mean, as far as history knows them.
    """
    slow, instant = combinations(suite.vary)
    configurations = {
        configuration_name(arm, combination): Configuration(
            name=configuration_name(arm, combination),
            arm=arm,
            varied=combination,
            resolved=resolve(drop, bench, under_test, dict(combination)),
        )
        for arm, drop in drops.items()
        for combination in (tuple(sorted((*outer, *inner))) for outer in slow for inner in instant)
    }
    measured = dict(configurations)
    first = {arm: next(c for c in configurations.values() if c.arm == arm) for arm in drops}
    layouts = layouts_of(bench, under_test, tuple(drops.values()))
    baseline = first["baseline"].resolved if "baseline" in first else None
    design = design_of(baseline, first["candidate"].resolved, by_sessions=by_sessions)
    if not choice.placed and design.kind == "interleaved":
        design = replace(design, kind="sessions")
    costs = costs_of(bench.kind, profile)
    # without a second arm there is nothing to decide
    part = profile if design.kind == "single" else first_part(profile)
    interleaved = design.kind == "interleaved"
    sessions: list[PlannedSession] = []
    batches: list[dict[str, Any]] = []
    launched: Counter[str] = Counter()
    took, arms = BenchTime(bench, profile, costs), [configuration.resolved for configuration in first.values()]
    one_layout = all(arm.raid == arms[0].raid for arm in arms) and not any(n.startswith("raid.") for n in suite.vary)
    measuring = 0.0
    for session in plan_sessions(design, slow, part.sessions, prefix) if choice.placed else ():
        # launches of one arm are counted over the sessions of one combination of slow settings
        done = {arm: launched[f"{arm}/{session.slow}"] for arm in session.arms}
        launches = order_launches(
            session, choice.placed, part, seed=seed, done=done, quick=instant, by_batch=design.by_batch
        )
        peers = list(dict.fromkeys(launch.configuration for launch in launches))
        for arm in session.arms:
            launched[f"{arm}/{session.slow}"] += part.pairs if len(session.arms) > 1 else part.launches
        parts = list(cut(launches, profile, costs.launch, by_batch=design.by_batch))
        names = [f"{session.id}-b{number:02d}" for number in range(1, len(parts) + 1)]
        made = [
            batch_file(
                run,
                name,
                session.id,
                bench,
                launched_here,
                profile,
                peers=peers,
                configurations=configurations,
                layouts=layouts,
            )
            for name, launched_here in zip(names, parts, strict=True)
        ]
        if profile.precondition is not None and not sessions and made:
            made = with_precondition(bench, made, profile.precondition, consent)
        batches += with_reference(bench, made, len(sessions) + 1)
        sessions.append(
            PlannedSession(
                id=session.id,
                bench=bench.name,
                arm=session.arms[0],
                configuration=_start_of(session.arms[0], session.slow, instant),
                change=session.change,
                boot=session.boot,
                arms=session.arms,
                batches=tuple(names),
            )
        )
        took.add_session(
            session.change if sessions[1:] else "none",
            [seconds_of(launched_here, profile, costs.launch) for launched_here in parts],
        )
        if not sessions[1:] or design.kind == "sessions":
            resolved, kept = first[session.arms[0]].resolved, one_layout and bool(sessions[1:])
            took.add_lines(provisioning(bench, resolved, session.change, costs, kept=kept))
        patterns = [[launch.placed.point.pattern for launch in launched_here] for launched_here in parts]
        made_systems = sum(file_system_seconds(bench, each, profile) for each in patterns)
        took.add("creating file systems", made_systems, "their sizes and the write rate of a drive")
        took.add_change("instant", len(parts) if design.by_batch else 0, "switching arms between batches")
        measuring += sum(launch.seconds(profile) for launched_here in parts for launch in launched_here)
    turns = plan_turns(
        suite, profile, bench, under_test, drops, seed=seed, prefix=prefix, after=len(sessions), only=only_trial
    )
    for arm in dict.fromkeys(arm for _, arm in turns.sessions):
        configurations.setdefault(arm, Configuration(arm, arm, (), resolve(drops[arm], bench, under_test)))
    tried = BenchTime(bench, profile, costs)
    turn_batches = list(batches_of_turns(run, suite, turns, bench))
    sessions += _turn_sessions(
        bench, turns, turn_batches, configurations, turn_change(design, suite.vary), tried, first=not sessions
    )
    # what is planned here is the first part of what it will take
    noise = known.launch if interleaved else known.session
    expected, factor = _expected(bench, design, profile, part, noise) if choice.placed else (0, 1.0)
    conditioned = precondition_seconds(bench, under_test, profile.precondition if choice.placed else None)
    preconditioning = TimeLine("preconditioning", conditioned, "write rate and the largest drive")
    around = once(bench, arms, costs)
    again = (
        seconds_per_session(bench, arms, design.change, costs, kept=one_layout) if design.kind == "sessions" else 0.0
    )
    return BenchPlan(
        bench=bench,
        under_test=tuple(under_test),
        design=design,
        points=_points(bench, choice, [c for c in configurations.values() if c.arm == next(iter(drops))], layouts),
        sessions=tuple(sessions),
        batches=(*batches, *turn_batches),
        specs={
            name: {
                **_spec(c, first, bench, under_test),
                "hung_task_s": hung_task_s(turns.trials),
                **({"nmi": True} if any(entry.ipmi for entry in bench.power) else {}),
            }
            for name, c in configurations.items()
        },
        configurations={name: {"arm": c.arm, "settings": dict(c.varied)} for name, c in configurations.items()},
        time=took.lines(factor, [preconditioning, *tried.lines(1.0, ()), *around]),
        measuring_seconds=factor * measuring,
        launches=sum(len(batch["turns"]) for batch in batches),
        expected_units=expected,
        detectable=detectable_loss(bench.kind, profile, interleaved=interleaved, noise=noise)
        if choice.placed
        else math.inf,
        effort=_effort(design, choice.placed, profile, costs, again, around[-1].seconds),
        switches=_switches(measured),
        turns=turns,
    )


def _turn_sessions(
    bench: Bench,
    turns: TurnPlan,
    batches: Sequence[Mapping[str, Any]],
    configurations: Mapping[str, Configuration],
    change: str,
    took: BenchTime,
    *,
    first: bool,
) -> Iterator[PlannedSession]:
    """The sessions of trials and programs, each on its drop as it is; adds up what they take."""
    for name, arm in turns.sessions:
        own = tuple(str(batch["block"]) for batch in batches if batch["session"] == name)
        took.add_session("none" if first else change, ())
        took.add_lines(provisioning(bench, configurations[arm].resolved, change, took.costs))
        # sessions of one arm in one boot would be one session
        boot = "always" if change == "reboot" and not first else "if_needed"
        first = False
        yield PlannedSession(name, bench.name, arm, arm, change, boot, (arm,), own, PURPOSE)
    source = f"their loads and faults, typical of {bench.kind} benches"
    took.add("trials", trial_seconds(bench.kind, [trial.seconds for trial in turns.trials]), source)


def _expected(
    bench: Bench, design: Design, profile: Profile, part: Profile, noise: float | None
) -> tuple[int, float]:
    """How many units it is expected to take, and how much more that is than what is planned."""
    interleaved = design.kind == "interleaved"
    planned = part.pairs if interleaved else part.sessions // 2
    expected = planned
    if design.kind != "single":
        expected = expected_units(bench.kind, profile, interleaved=interleaved, noise=noise)
    return expected, max(expected / planned, 1.0)


def _shortage(bench: Bench, placed: Placed, layout: Layout) -> str:
    """Why a point's adapter (or its team) cannot serve it; empty when it can."""
    return shortage(team(bench, placed.adapter, placed.point.pattern), placed.point.pattern, layout)


def _unfit(bench: Bench, placed: Placed, profile: Profile, layout: Layout) -> str:
    """Why a bench cannot stand for what a workload is about: an emulation, or drives without room; empty: it can."""
    point = placed.point
    if point.hardware_only and bench.kind != "hardware":
        return f"needs hardware: {point.hardware_only}"
    on_volumes, whole = point.pattern.on_volumes, team(bench, placed.adapter, point.pattern)
    drives = () if on_volumes else drives_for(whole, point.pattern, layout)
    return no_room(bench, drives, ask_of(point.pattern, profile), layout if on_volumes else NO_VOLUMES)


def _effort(
    design: Design, placed: Sequence[Placed], profile: Profile, costs: Costs, provisioning_s: float, restore_s: float
) -> Effort:
    """What more of it costs, for the campaign that goes on from the plan."""
    by_session = design.kind == "sessions"
    seconds = [place.point.pattern.launch_seconds(profile, costs.launch) for place in placed]
    return Effort(
        by_session=by_session,
        launch_s=sum(seconds) / max(len(seconds), 1),
        block_s=2 * profile.idle + 1.0,
        session_s=costs.change.get(design.change, 0.0) + costs.session + provisioning_s,
        restore_s=restore_s,
        most=profile.sessions // 2 if by_session else profile.pairs,
        launches=profile.launches,
        longest_block_s=profile.block,
        budget_s=profile.budget if profile.until == "decided" else None,
    )


def _switches(configurations: Mapping[str, Configuration]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What sets a drive to a configuration, whichever it was in before; by configuration and drive."""
    switches: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, wanted in configurations.items():
        for drive in wanted.resolved.drive:
            steps = {
                step["setting"]: step
                for other in configurations.values()
                for step in switch_steps(other.resolved, wanted.resolved, [drive])
            }
            if steps:
                switches.setdefault(name, {})[drive] = list(steps.values())
    return switches


def _point_count(profile: Profile, adapters: int, workloads: int) -> int | None:
    """How many points a bench gets: the number is for as many adapters as the profile names; fewer get a share.

    No share is too small for one point of each workload.
    """
    if profile.cells is None or profile.adapters is None or adapters >= profile.adapters:
        return profile.cells
    return max(workloads, math.ceil(profile.cells * adapters / profile.adapters))


def every_point(suite: Suite) -> list[Point]:
    return points_of(suite, _varied(suite))


def _varied(suite: Suite) -> list[dict[str, Any]]:
    slow, quick = combinations(suite.vary)
    return [dict((*outer, *inner)) for outer in slow for inner in quick]


def _start_of(arm: str, slow: Varied, quick: Sequence[Varied]) -> str:
    """The configuration that a session is provisioned to; the bench switches from there."""
    return configuration_name(arm, tuple(sorted((*slow, *quick[0]))))


def _points(
    bench: Bench, choice: Choice, configurations: Sequence[Configuration], layouts: Mapping[str, Layout]
) -> tuple[PlannedPoint, ...]:
    """Every point with its drives; those behind a volume are those of its configuration in the first arm."""
    by_varied = {configuration.varied: configuration.resolved for configuration in configurations}

    def drives(placed: Placed) -> tuple[str, ...]:
        pattern = placed.point.pattern
        if pattern.on_volumes:
            volumes = volumes_of(by_varied[placed.point.varied], placed.adapter)[: pattern.drives]
            return tuple(drive for volume in volumes for drive in volume.members)
        chosen = drives_for(team(bench, placed.adapter, pattern), pattern, layouts[placed.adapter])
        return tuple(drive.id for drive in chosen)

    listed = [(placed, "") for placed in choice.placed] + list(choice.skipped)
    return tuple(
        PlannedPoint(
            bench=bench.name,
            adapter=placed.adapter,
            point=placed.point.name,
            workload=placed.point.workload,
            factors=dict(placed.point.factors),
            drives=drives(placed),
            varied=dict(placed.point.varied),
            skipped=reason,
        )
        for placed, reason in listed
    )


def _spec(
    configuration: Configuration,
    first: Mapping[str, Configuration],
    bench: Bench,
    under_test: Sequence[str],
) -> dict[str, Any]:
    """What the roles get for a configuration, before `next` adds the session."""
    other = first.get("candidate" if configuration.arm == "baseline" else "baseline", first[configuration.arm])
    return spec_of(
        configuration.resolved,
        other.resolved,
        bench,
        under_test,
        arm=configuration.arm,
        configuration=configuration.name,
    )
