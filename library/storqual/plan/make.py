# SPDX-License-Identifier: Apache-2.0
"""From what a user names to a planned campaign: read everything, complain about everything, then plan."""

import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.policy import signature_warnings
from storqual.inputs.shape import did_you_mean, raise_all
from storqual.inputs.suite import Profile, Suite
from storqual.inputs.yaml_file import read_yaml
from storqual.metrics.processor import PROCESSOR
from storqual.plan.bench_plan import BenchPlan, Choice, adapters_under_test, choose_points, every_point, plan_bench
from storqual.plan.budget import NOTHING_KNOWN, known_noise, sized, within
from storqual.plan.document import input_files, run_document
from storqual.plan.inputs import PlanInputs, PlanRequest, read_all
from storqual.plan.points import Placed, balanced_fraction, points_of, unseen_levels
from storqual.plan.refusals.launches import idle_because, launch_problems, nothing_planned
from storqual.plan.refusals.suites import criterion_problems, unjudged_criteria
from storqual.plan.refusals.together import cross_problems
from storqual.plan.refusals.undecidable import undecidable
from storqual.plan.resolve import narrowed
from storqual.plan.settable import settable, unasked
from storqual.plan.volumes import layouts_of
from storqual.run import InputFile, Run, append_event, create_run, new_run_id, read_run
from storqual.run.evidence import plan_findings, strange_batches
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_duration, format_percent

_SEEDS = 1 << 31


@dataclass(frozen=True)
class PlannedCampaign:
    """A planned campaign, nothing written yet: run.json without the store's own fields, inputs, batches.

    `left_out` says which benches and adapters of the lab have no part in it, and why; `unsigned` are the warnings
    that nobody could sign the run.
    """

    run: str
    document: dict[str, Any]
    inputs: dict[str, InputFile]
    batches: tuple[dict[str, Any], ...]
    benches: tuple[BenchPlan, ...]
    warnings: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    unsigned: tuple[str, ...] = ()


def make_plan(request: PlanRequest) -> PlannedCampaign:
    """Plan a campaign. Raises BadInputError with the problems of all files; touches no bench, writes nothing."""
    read = read_all(request)
    raise_all(read.problems)
    assert read.inventory is not None and read.suite is not None and read.suite_path is not None  # noqa: S101, PT018
    benches = list(read.inventory.benches.values())
    profile_name = read.suite.profile_name(request.profile)
    declared = read.suite.profiles[profile_name]
    wanted = within(request.budget, declared, compared="baseline" in read.drops)
    profile = sized(wanted, [bench.kind for bench in benches])
    whole, suite = read.suite, _part_of(read.suite.under(profile_name), request)
    read.suite = suite
    named = request.limit is not None or request.adapters is not None
    left_out = [] if request.adapters is None else [alias for alias in read.aliases if alias not in request.adapters]
    arms = {arm: narrowed(file.drop, left_out) for arm, file in read.drops.items()}
    drops = tuple(arms.values())
    chosen = [
        (bench.model_copy(update={"under_test": tuple(aliases)}), aliases)
        for bench in benches
        if request.adapters is None or set(request.adapters) & set(bench.adapters)
        for aliases in [adapters_under_test(bench, profile, suite, request.adapters, drops)]
    ]
    raise_all([*cross_problems(read, chosen, profile_name, left_out), *_point_problems(request, suite)])
    settings = {bench.name: settable(suite, bench, aliases, read.facts[0]) for bench, aliases in chosen}
    choices = [
        choose_points(
            bench,
            aliases,
            settings[bench.name][0],
            profile,
            f"{suite.name}/{profile_name}",
            layouts_of(bench, aliases, drops),
            request.points,
        )
        for bench, aliases in chosen
    ]
    placed = [point for choice in choices for point in choice.placed]
    measured = {point for point in points_of(suite) if not request.points or point.name in request.points}
    outside = [point for point in points_of(whole) if point not in measured and suite.workloads]
    skipped = [entry for choice in choices for entry in choice.skipped]
    absent = [alias for alias in read.aliases if alias not in {alias for _, listed in chosen for alias in listed}]
    problems = list(criterion_problems(suite, read.suite_path, placed, skipped, outside, absent if named else ()))
    problems += launch_problems(suite, read.suite_path, chosen, read.facts[0])
    raise_all([*problems, *_unseen(choices, read.suite_path, f"the {profile.cells} cells of profile {profile_name}")])
    seed = secrets.randbelow(_SEEDS) if request.seed is None else request.seed
    run = request.run or new_run_id(str(suite.name))
    known = {} if read.history is None else known_noise(read.history)

    def planned(bench: Bench, aliases: Sequence[str], choice: Choice) -> BenchPlan:
        return plan_bench(
            run,
            bench,
            aliases,
            choice,
            drops=arms,
            suite=settings[bench.name][0],
            profile=profile,
            seed=seed,
            by_sessions=request.by_sessions,
            prefix="s" if len(chosen) == 1 else f"{_plain(bench.name)}-s",
            known=known.get(bench.name, NOTHING_KNOWN),
            consent=tuple(request.consent),
            only_trial=None if request.trial is None else (request.trial, request.repeat),
        )

    plans = tuple(
        planned(bench, aliases, choice)
        if request.budget is None
        else plan_within(
            request.budget,
            choice,
            settings[bench.name][0],
            f"{suite.name}/{profile_name}",
            partial(planned, bench, aliases),
        )
        for (bench, aliases), choice in zip(chosen, choices, strict=True)
    )
    unjudged = () if named else unjudged_criteria(suite, read.suite_path, placed, skipped)
    raise_all([*nothing_planned(plans, suite, request.trial, named=named), *unjudged])
    idle = {plan.bench.name: idle_because(plan, suite) for plan in plans if not plan.sessions}
    plans = tuple(plan for plan in plans if plan.sessions)
    document = read_yaml(read.suite_path)
    raise_all(
        f"{read.suite_path}:{document.line(('criteria', number))}: {sentence}"
        for plan in plans
        for number, sentence in undecidable(plan, suite, profile)
    )
    not_varied = {name: notes for name, (_, notes) in settings.items() if notes}
    fixed = [
        f"{bench}: {name} is not varied: {why}" for bench, notes in not_varied.items() for name, why in notes.items()
    ]
    fixed += unasked(suite) if request.facts is None else ()
    asked_for = (arms["candidate"].name, str(suite.name), [plan.bench.name for plan in plans])
    unsigned = tuple(signature_warnings(request.inventories, read.gate_path, *asked_for))
    warnings = (
        *read.warnings,
        *_warnings(plans, profile),
        *_emulated_time(plans, suite),
        *fixed,
        *_alone(request),
        *unsigned,
    )
    inputs = input_files(request, read, plans)
    return PlannedCampaign(
        run=run,
        document=run_document(
            request,
            read,
            plans,
            inputs,
            named=(profile_name, profile),
            seed=seed,
            warnings=warnings,
            not_varied=not_varied,
        ),
        inputs=inputs,
        batches=tuple(batch for plan in plans for batch in plan.batches),
        benches=plans,
        warnings=warnings,
        left_out=tuple(_absences(request, read, chosen, idle, profile_name)),
        unsigned=unsigned,
    )


def _absences(
    request: PlanRequest,
    read: PlanInputs,
    chosen: Sequence[tuple[Bench, Sequence[str]]],
    idle: Mapping[str, str],
    profile: str,
) -> Iterator[str]:
    """Benches of the lab without a part in the campaign, adapters that are not under test, each with the reason."""
    here = read.inventory.benches if read.inventory is not None else {}
    for bench in read.everywhere:
        if bench.name not in here:
            yield f"bench {bench.name}: --limit {request.limit} leaves it out"
        elif bench.name not in {other.name for other, _ in chosen}:
            yield f"bench {bench.name}: it has no adapter {' or '.join(request.adapters or ())}"
        elif bench.name in idle:
            yield f"bench {bench.name}: {idle[bench.name]}"
    for bench, aliases in chosen:
        if bench.name in idle:
            continue
        untested = [alias for alias in bench.adapters if alias not in aliases]
        if request.adapters is not None:
            reason = f"--adapters {','.join(request.adapters)}"
        elif here[bench.name].under_test is not None:
            reason = "storqual_under_test of the inventory"
        else:
            reason = f"profile {profile} takes {len(aliases)} of them"
        for alias in untested:
            free = request.adapters is None and not bench.reached_by(alias)
            yield f"adapter {alias} of {bench.name}: {'it has no claimed drive' if free else reason}"


def _part_of(suite: Suite, request: PlanRequest) -> Suite:
    if request.trial is not None:
        return suite.only("trials")
    return suite.only("workloads") if request.points else suite


def _unseen(choices: Sequence[Choice], path: Path, cells: str) -> Iterator[str]:
    """Levels that no chosen point of a bench has."""
    for choice in choices:
        unseen = ", ".join(f"{name} {level}" for name, level in choice.unseen if name != "criterion")
        if unseen:
            yield f"{path}: {cells} never cover {unseen}; raise `cells`"


def _point_problems(request: PlanRequest, suite: Suite) -> list[str]:
    """Points asked for that the suite does not have under this profile."""
    known = [point.name for point in every_point(suite)] if request.points else []
    return [
        f"--point: suite {suite.name} has no point {name!r}{did_you_mean(name, known)}; "
        "write it as the report names it"
        for name in request.points
        if name not in known
    ]


def _alone(request: PlanRequest) -> list[str]:
    """A campaign of points by name is none of its suite: everybody who reads it must know."""
    if not request.points:
        return []
    return [f"only {', '.join(request.points)} is measured, as asked by --point"]


def _plain(bench: str) -> str:
    """A bench's name as part of an id: `.` parts a session from its next attempt."""
    return "".join(character if character.isalnum() else "_" for character in bench)


def _warnings(plans: Sequence[BenchPlan], profile: Profile) -> tuple[str, ...]:
    """What the plan cannot do, said before a bench is touched."""
    warnings = []
    for plan in plans:
        if plan.launches and plan.detectable > profile.margin and plan.design.kind != "single":
            size = (
                "cannot detect any loss"
                if math.isinf(plan.detectable)
                else f"detects losses of {format_percent(plan.detectable)} or more"
            )
            warnings.append(
                f"{plan.bench.name}: at the expected noise this plan {size}; "
                f"the margin is {format_percent(profile.margin)}"
            )
        if plan.bench.kind == "hardware" and plan.bench.console_way is None:
            warnings.append(
                f"{plan.bench.name}: no console is declared (`storqual_console`): what its kernel says when it"
                " panics, hangs or does not boot cannot be shown, but for what pstore keeps over a reboot"
            )
        if plan.design.identical:
            warnings.append(
                f"{plan.bench.name}: both arms declare the same; this campaign compares a drop with itself, "
                "which shows how repeatable the bench is, and nothing about a new drop"
            )
        left_out = [point for point in plan.points if point.skipped.startswith("outside the budget")]
        if left_out:
            of = sum(not point.skipped for point in plan.points) + len(left_out)
            warnings.append(f"{plan.bench.name}: {len(left_out)} of {of} points are outside the budget")
        if profile.budget is not None and plan.seconds > profile.budget:
            took, more, most = map(format_duration, (plan.seconds, plan.seconds - profile.budget, profile.budget))
            warnings.append(
                f"{plan.bench.name}: the plan takes {took} of bench time, {more} more than the budget of {most}; "
                "raise the budget, or choose fewer points (cells, --adapters, --point) or a shorter runtime"
            )
    return tuple(warnings)


def _emulated_time(plans: Sequence[BenchPlan], suite: Suite) -> Iterator[str]:
    times = {metric.name: metric.label for metric in PROCESSOR if "cpu" in metric.name}
    rests = {
        times[entry.metric] for entry in suite.criteria if entry.metric in times and entry.is_required("virtual")
    }
    for plan in plans:
        if rests and plan.bench.virtual is not None and plan.bench.virtual.clock == "host":
            yield (
                f"{plan.bench.name}: {', '.join(sorted(rests))} is that of the emulator here and follows the load of "
                "this machine; a bench with clock: instructions measures it (inventories/virtual_rate)"
            )


def _idle_drives(plan: BenchPlan) -> dict[str, list[str]]:
    """By adapter the claimed drives that nothing takes; none where nothing is launched."""
    if not plan.launches:
        return {}
    used = {drive for point in plan.points if not point.skipped for drive in point.drives}
    used |= {trial.drive for trial in plan.turns.trials} | {program.drive for program in plan.turns.programs}
    volumes = [volume for spec in plan.specs.values() for volume in spec["raid"]]
    used |= {drive for volume in volumes for drive in (*volume["members"], *volume.get("hot_spares", ()))}
    adapters = {alias: plan.bench.adapters[alias].claimed for alias in plan.under_test}
    idle = {alias: [drive.id for drive in claimed if drive.id not in used] for alias, claimed in adapters.items()}
    return {alias: drives for alias, drives in idle.items() if drives}


@dataclass(frozen=True)
class Planned:
    """A planned campaign. `path` is None when nothing was written (`--dry-run`)."""

    campaign: PlannedCampaign
    path: Path | None

    def to_json(self) -> dict[str, Any]:
        campaign, plan = self.campaign, self.campaign.document["plan"]
        points, detectable = plan["points"], plan["detectable"]
        return {
            "run": campaign.run,
            "path": None if self.path is None else str(self.path),
            "suite": campaign.document["suite"],
            "seed": plan["seed"],
            "points": sum(not point["skipped"] for point in points),
            "skipped": sum(bool(point["skipped"]) for point in points),
            "skipped_points": [
                {name: point[name] for name in ("bench", "adapter", "point")} | {"reason": point["skipped"]}
                for point in points
                if point["skipped"]
            ],
            "sessions": len(plan["sessions"]),
            "launches": plan["launch_count"],
            "trials": plan.get("trials", []),
            "external": plan.get("external", []),
            "left_out": [*campaign.left_out, *plan.get("left_out", [])],
            "expected_seconds": plan["expected_seconds"],
            "until": "decided" if plan["looks"] == "every" else "planned",
            "unit": "pairs" if plan["design"] == "interleaved" else "sessions of each arm",
            "expected_units": plan["expected_units"],
            "most_units": max(bench.effort.most for bench in campaign.benches),
            "detectable_percent": None if detectable is None else round(100 * detectable, 3),
            "margin_percent": None if "margin" not in plan else round(100 * plan["margin"], 3),
            "warnings": list(campaign.warnings),
            "advice": plan["advice"],
            "benches": {
                bench.bench.name: {
                    "adapters": list(bench.under_test),
                    "design": bench.design.kind,
                    "change": bench.design.change,
                    "sessions": [f"{session.id} {'/'.join(session.arms)}" for session in bench.sessions],
                    "expected_seconds": round(bench.seconds, 1),
                    "bench_time": [line.to_json() for line in bench.time],
                    "idle_drives": _idle_drives(bench),
                }
                for bench in campaign.benches
            },
        }


def plan_run(request: PlanRequest, runs: Path, *, write: bool = True) -> Planned:
    """Plan, and write `runs/<run-id>/` when `write`. Raises BadInputError with every problem of every file."""
    campaign = make_plan(request)
    path = None
    if write:
        path = create_run(runs, campaign.run, campaign.document, inputs=campaign.inputs, batches=campaign.batches)
    return Planned(campaign, path)


def check_resume(path: Path, *, record: bool = True) -> Run:
    """Open a run to go on with it, and `record` that. Raises BadInputError with what is not as it was planned."""
    run = read_run(path)
    raise_all([*run.verify_inputs(), *(f"{path}/{problem}" for problem in plan_findings(run))])
    raise_all(f"{path}/{problem}" for problem in strange_batches(run))
    if record:
        append_event(path, "resumed", {})
    return read_run(path)


def plan_within(
    budget_s: float, choice: Choice, suite: Suite, seed: str, plan: Callable[[Choice], BenchPlan]
) -> BenchPlan:
    """The plan of as many points of `choice` as are expected to be decided in `budget_s` seconds.

    Cells with a required criterion come first, then the others; of each as many as fit, in balance. Raises
    BadInputError when the time is not enough for a single one.
    """
    whole = plan(choice)
    if whole.seconds <= budget_s:
        return whole
    fits: BenchPlan | None = None
    smallest = whole
    few, many = 0, len(choice.placed)
    while many - few > 1:
        count = (few + many) // 2
        smallest = plan(_fewer(choice, count, suite, seed, budget_s))
        if smallest.seconds <= budget_s:
            fits, few = smallest, count
        else:
            many = count
    if fits is None:
        what = "one point alone is" if choice.placed else "its trials alone are"
        least = f"{what} expected to take {format_duration(smallest.seconds)}"
        budget = f"{whole.bench.name}: the budget of {format_duration(budget_s)} is too small"
        raise BadInputError([f"{budget}: {least}; raise --budget"])
    return fits


def _fewer(choice: Choice, count: int, suite: Suite, seed: str, budget_s: float) -> Choice:
    """So many points of a choice; the others are skipped, with the budget as the reason."""
    required = [point for point in choice.placed if any(suite.criteria[number].required for number in point.answers)]
    others = [point for point in choice.placed if point not in required]
    chosen = balanced_fraction(required, count, seed)
    if count > len(chosen):
        chosen = [*chosen, *balanced_fraction(others, count - len(chosen), seed)]
    order: dict[Placed, int] = {point: number for number, point in enumerate(choice.placed)}
    kept = tuple(sorted(chosen, key=order.__getitem__))
    reason = f"outside the budget of {format_duration(budget_s)}"
    left_out = tuple((point, reason) for point in choice.placed if point not in kept)
    return replace(
        choice, placed=kept, skipped=(*choice.skipped, *left_out), unseen=tuple(unseen_levels(choice.placed, kept))
    )
