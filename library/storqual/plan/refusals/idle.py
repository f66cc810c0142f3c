# SPDX-License-Identifier: Apache-2.0
"""Benches on which nothing of a suite can be run: never booted for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from storqual.inputs.shape import did_you_mean, one_of
from storqual.inputs.suite import Suite
from storqual.plan.bench_plan import BenchPlan
from storqual.run.records import PlannedPoint


def nothing_planned(plans: Sequence[BenchPlan], suite: Suite, trial: str | None, *, named: bool) -> Iterator[str]:
    """Benches on which nothing can be run, or not the trial that is to be repeated.

    Where the benches were `named` (--limit, --adapters, --trial), those are left out as long as one has work.
    """
    busy = [plan.bench.name for plan in plans if plan.sessions]
    if trial is not None and not busy:
        ids = [ident for plan in plans for ident in plan.turns.drawn]
        yield f"--trial: no trial {trial!r} in this plan{did_you_mean(trial, ids)}; expected {one_of(ids)}"
        return
    for plan in plans:
        if plan.sessions or (busy and (named or trial is not None)):
            continue
        others = f"; to qualify the others, add --limit {','.join(busy)}" if busy else ""
        yield f"{plan.bench.name}: {idle_because(plan, suite)}{others}"


def idle_because(plan: BenchPlan, suite: Suite) -> str:
    reasons = [*skipped_reasons(plan.points), *plan.turns.left_out]
    listed = [*(trial.adapters for trial in suite.trials), *(one.adapters for one in suite.programs.values())]
    named = dict.fromkeys(alias for aliases in listed for alias in aliases)
    if not reasons and named:
        reasons = [f"its trials and programs are for {' and '.join(named)}"]
    why = f": {'; '.join(reasons)}" if reasons else ""
    return f"nothing of suite {suite.name} can be run on this bench{why}"


def skipped_reasons(points: Iterable[PlannedPoint]) -> list[str]:
    """Why points are skipped, adapter by adapter: `mraid: 5 points: needs 1 drive, ...`."""
    counts = Counter((point.adapter, point.skipped) for point in points if point.skipped)
    return [f"{alias}: {count} point{'s' * (count != 1)}: {why}" for (alias, why), count in counts.items()]
