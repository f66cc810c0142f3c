# SPDX-License-Identifier: Apache-2.0
"""A plan that fits into a budget of bench time: required criteria first, what is left out is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from storqual.inputs.suite import Suite
from storqual.plan.bench_plan import BenchPlan, Choice
from storqual.plan.fraction import Placed, balanced_fraction, unseen_levels
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_duration


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
        least = f"at least {format_duration(smallest.seconds)}, which one point is expected to take"
        raise BadInputError([f"{whole.bench.name}: found a budget of {format_duration(budget_s)}, expected {least}"])
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
