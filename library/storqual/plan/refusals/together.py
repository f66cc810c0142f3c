# SPDX-License-Identifier: Apache-2.0
"""Everything that shows only when inventory, drops and suite are seen together."""

from __future__ import annotations

from collections.abc import Sequence

from storqual.inputs.inventory import Bench
from storqual.plan.inputs import PlanInputs
from storqual.plan.refusals.drops import arm_problems, drop_problems, reference_problems, scheduler_problems
from storqual.plan.refusals.suites import baseline_problems, level_problems, peer_problems, vary_problems
from storqual.plan.refusals.trial_plans import turn_problems
from storqual.plan.refusals.volumes import member_problems, tool_problems


def cross_problems(read: PlanInputs, chosen: Sequence[tuple[Bench, Sequence[str]]], profile: str) -> list[str]:
    """What shows only when the files are seen together; `profile` is the one that the suite is used under."""
    assert read.suite is not None and read.suite_path is not None  # noqa: S101, PT018 - read without problems
    benches = [bench for bench, _ in chosen]
    problems = [problem for file in read.drops.values() for problem in drop_problems(file, benches)]
    problems += scheduler_problems(list(read.drops.values()), chosen, read.facts[0])
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
            problems.append(
                f"{bench.name}: no drive is claimed; set `claim: true` on the drives to test in the inventory"
            )
    problems += turn_problems(read)
    if not problems:
        drops = [file.drop for file in read.drops.values()]
        problems += level_problems(read.suite, read.suite_path, chosen, drops)
        own = read.suite.profiles[profile].vary is not None
        keys = ("profiles", profile, "vary") if own else ("vary",)
        problems += vary_problems(read.suite, read.suite_path, keys, drops)
        wrong = list(member_problems(read.suite, read.suite_path, keys, chosen, drops))
        files = list(read.drops.values())
        problems += wrong or tool_problems(read.suite, read.suite_path, keys, chosen, files)
        problems += peer_problems(read.suite, read.suite_path, chosen)
    return problems
