# SPDX-License-Identifier: Apache-2.0
"""Everything that shows only when inventory, drops and suite are seen together."""

from collections.abc import Sequence
from dataclasses import replace

from storqual.inputs.inventory import Bench
from storqual.plan.inputs import PlanInputs
from storqual.plan.refusals.drops import (
    arm_problems,
    bench_problems,
    drop_problems,
    file_problems,
    queue_problems,
    reference_problems,
    scheduler_problems,
)
from storqual.plan.refusals.launches import turn_problems
from storqual.plan.refusals.suites import baseline_problems, level_problems, peer_problems, vary_problems
from storqual.plan.refusals.volumes import controller_problems, member_problems, tool_problems
from storqual.plan.resolve import narrowed


def cross_problems(
    read: PlanInputs, chosen: Sequence[tuple[Bench, Sequence[str]]], profile: str, left_out: Sequence[str] = ()
) -> list[str]:
    """What shows only when the files are seen together; `profile` is the one that the suite is used under.

    `left_out` are adapters for which nothing of the drops is applied.
    """
    assert read.suite is not None and read.suite_path is not None  # noqa: S101, PT018 - read without problems
    benches = [bench for bench, _ in chosen]
    problems: list[str] = []
    for file in read.drops.values():
        problems += [*drop_problems(file, read.everywhere), *bench_problems(file, read.everywhere, benches)]
    applied = [replace(file, drop=narrowed(file.drop, left_out)) for file in read.drops.values()]
    problems += scheduler_problems(applied, chosen, read.facts[0])
    problems += queue_problems(applied, chosen, read.facts[0])
    problems += file_problems(applied, chosen)
    problems += arm_problems([(file.drop, file.path) for file in read.drops.values()])
    if "baseline" not in read.drops:
        problems += baseline_problems(read.suite, read.suite_path)
    problems += [problem for bench in benches for problem in reference_problems(bench)]
    for bench, aliases in chosen:
        unclaimed = [alias for alias in aliases if not bench.reached_by(alias)]
        problems += [
            f"{bench.name}: adapter {alias} has no claimed drive; set `claim: true` on at least one in the inventory"
            for alias in unclaimed
        ]
        if not aliases:
            others = [other.name for other, listed in chosen if listed]
            instead = f", or leave this bench out (--limit {','.join(others)})" if others else ""
            remedy = f"set `claim: true` on the drives to test in the inventory{instead}"
            problems.append(f"{bench.name}: no drive is claimed; {remedy}")
    problems += turn_problems(read)
    if not problems:
        drops = [file.drop for file in applied]
        problems += level_problems(read.suite, read.suite_path, chosen, drops, read.everywhere)
        own = read.suite.profiles[profile].vary is not None
        keys = ("profiles", profile, "vary") if own else ("vary",)
        problems += vary_problems(read.suite, read.suite_path, keys, drops)
        wrong = list(member_problems(read.suite, read.suite_path, keys, chosen, drops))
        wrong = wrong or list(tool_problems(read.suite, read.suite_path, keys, chosen, applied))
        problems += wrong or controller_problems(read.suite, read.suite_path, chosen, applied)
        problems += peer_problems(read.suite, read.suite_path, chosen)
    return problems
