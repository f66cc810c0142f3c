# SPDX-License-Identifier: Apache-2.0
"""From what a user names to a planned campaign: read everything, complain about everything, then plan."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from storqual.model.inventory import Bench
from storqual.model.shape import raise_all
from storqual.model.suite import Profile
from storqual.plan.bench_plan import BenchPlan, Choice, adapters_under_test, choose_cells, plan_bench
from storqual.plan.budget import NOTHING_KNOWN, sized, within
from storqual.plan.checks import criterion_problems, think_time_problems
from storqual.plan.document import input_files, run_document
from storqual.plan.inputs import cross_problems, read_all
from storqual.plan.known_noise import known_noise
from storqual.plan.points import cells
from storqual.plan.request import PlanRequest
from storqual.plan.volumes import layouts_of
from storqual.plan.within import plan_within
from storqual.store import InputFile, new_run_id

__all__ = ["Campaign", "make_plan"]

_SEEDS = 1 << 31


@dataclass(frozen=True)
class Campaign:
    """A planned campaign, nothing written yet: run.json without the store's own fields, inputs, blocks."""

    run: str
    document: dict[str, Any]
    inputs: dict[str, InputFile]
    blocks: tuple[dict[str, Any], ...]
    benches: tuple[BenchPlan, ...]
    warnings: tuple[str, ...]


def make_plan(request: PlanRequest) -> Campaign:
    """Plan a campaign. Raises BadInputError with the problems of all files; touches no bench, writes nothing."""
    read = read_all(request)
    raise_all(read.problems)
    assert read.inventory is not None and read.suite is not None and read.suite_path is not None  # noqa: S101, PT018
    benches = list(read.inventory.benches.values())
    profile_name = read.suite.profile_name(request.profile)
    declared = read.suite.profiles[profile_name]
    wanted = within(request.budget, declared, compared="baseline" in read.drops)
    profile = sized(wanted, [bench.kind for bench in benches])
    whole, suite = read.suite, read.suite.under(declared)
    read.suite = suite
    arms = {arm: file.drop for arm, file in read.drops.items()}
    drops = tuple(arms.values())
    chosen = [
        (bench.model_copy(update={"under_test": tuple(aliases)}), aliases)
        for bench in benches
        for aliases in [adapters_under_test(bench, profile, suite, request.adapters, drops)]
    ]
    raise_all(cross_problems(read, chosen))
    choices = [
        choose_cells(
            bench, aliases, suite, profile, f"{suite.name}/{profile_name}", layouts_of(bench, aliases, drops)
        )
        for bench, aliases in chosen
    ]
    placed = [cell for choice in choices for cell in choice.placed]
    measured = set(cells(suite))
    left_out = [cell for cell in cells(whole) if cell not in measured]
    problems = list(criterion_problems(suite, read.suite_path, placed, left_out))
    problems += think_time_problems(suite, read.suite_path, profile_name, profile.ramp)
    for choice in choices:
        unseen = ", ".join(f"{name} {level}" for name, level in choice.unseen if name != "criterion")
        if unseen:
            told = f"found profile {profile_name} with {profile.cells} cells, which never show {unseen}"
            problems.append(f"{read.suite_path}: {told}, expected more cells")
    raise_all(problems)
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
            suite=suite,
            profile=profile,
            seed=seed,
            by_sessions=request.by_sessions,
            prefix="s" if len(chosen) == 1 else f"{_plain(bench.name)}-s",
            known=known.get(bench.name, NOTHING_KNOWN),
            consent=tuple(request.consent),
        )

    plans = tuple(
        planned(bench, aliases, choice)
        if request.budget is None
        else plan_within(
            request.budget, choice, suite, f"{suite.name}/{profile_name}", partial(planned, bench, aliases)
        )
        for (bench, aliases), choice in zip(chosen, choices, strict=True)
    )
    warnings = _warnings(plans, profile)
    inputs = input_files(request, read, plans)
    named = (profile_name, profile)
    return Campaign(
        run=run,
        document=run_document(request, read, plans, inputs, named=named, seed=seed, warnings=warnings),
        inputs=inputs,
        blocks=tuple(block for plan in plans for block in plan.blocks),
        benches=plans,
        warnings=warnings,
    )


def _plain(bench: str) -> str:
    """A bench's name as part of an id: `.` parts a session from its next attempt."""
    return "".join(character if character.isalnum() else "_" for character in bench)


def _warnings(plans: Sequence[BenchPlan], profile: Profile) -> tuple[str, ...]:
    """What the plan cannot do, said before a bench is touched."""
    warnings = []
    for plan in plans:
        if plan.detectable > profile.margin and plan.design.kind != "single":
            size = "no loss at all" if math.isinf(plan.detectable) else f"losses from {plan.detectable:.1%}"
            warnings.append(
                f"{plan.bench.name}: at the noise expected, this plan sees {size}; the margin is {profile.margin:.1%}"
            )
        if plan.design.identical:
            warnings.append(
                f"{plan.bench.name}: both arms declare the same; this campaign compares a drop with itself"
            )
        left_out = [point for point in plan.points if point.skipped.startswith("outside the budget")]
        if left_out:
            of = sum(not point.skipped for point in plan.points) + len(left_out)
            warnings.append(f"{plan.bench.name}: {len(left_out)} of {of} points are outside the budget")
        if profile.budget is not None and plan.seconds > profile.budget:
            told = f"a plan of {plan.seconds:.0f} s, expected at most {profile.budget:.0f} s"
            warnings.append(f"{plan.bench.name}: found {told}")
    return tuple(warnings)
