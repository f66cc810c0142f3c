# SPDX-License-Identifier: Apache-2.0
"""A plan that takes longer than its profile allows says by how much, and what to do."""

from __future__ import annotations

from pathlib import Path

from storqual.plan.make import make_plan
from tests.support.make_lab import SMALL_SUITE, make_lab


def test_a_plan_over_its_budget_says_how_long_it_takes_and_what_to_do(tmp_path: Path) -> None:
    tight = SMALL_SUITE.replace("quick: {cells: 8,", "quick: {budget: 30s, cells: 8,")
    warnings = make_plan(make_lab(tmp_path, suite=tight, profile="quick")).warnings
    (told,) = [warning for warning in warnings if "budget" in warning]
    assert "of bench time" in told
    assert "more than the budget of 30 s; raise the budget, or choose fewer points" in told
    assert not any("budget" in one for one in make_plan(make_lab(tmp_path / "other", profile="quick")).warnings)
