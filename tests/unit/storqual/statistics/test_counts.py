# SPDX-License-Identifier: Apache-2.0
"""Counts in two arms."""

from __future__ import annotations

import numpy as np
import pytest

from storqual.statistics.counts import compare_counts


def compare(baseline: float, candidate: float, exposure: tuple[float, float] = (20.0, 20.0)) -> str:
    """The outcome at a margin of 20 %."""
    return compare_counts(baseline, candidate, exposure, margin=0.2, alpha=0.05).outcome


@pytest.mark.parametrize(
    ("baseline", "candidate", "outcome"),
    [
        (0, 0, "pass"),
        (5, 0, "pass"),
        (0, 4, "inconclusive"),
        (0, 5, "fail"),
        (2, 12, "fail"),
        (3, 3, "inconclusive"),
        (400, 400, "pass"),
        (400, 500, "fail"),
    ],
)
def test_counts_are_compared_exactly(baseline: int, candidate: int, outcome: str) -> None:
    assert compare(baseline, candidate) == outcome


def test_exposure_counts() -> None:
    assert compare_counts(1, 10, (10.0, 100.0), margin=0.2, alpha=0.05).ratio == pytest.approx(1.0)


def test_chance_alone_fails_in_five_of_a_hundred_at_most() -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(4.0, (2000, 2))
    failed = np.mean([compare(int(a), int(b)) == "fail" for a, b in counts])
    assert failed <= 0.05
