# SPDX-License-Identifier: Apache-2.0
"""Tests of numbers in reasons: as people read them."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.base.text import plural
from storqual.judge import against_baseline
from storqual.judge.numbers import amount, as_change
from storqual.metrics import METRICS
from storqual_core.kit.quantities import format_percent


@pytest.mark.parametrize(
    ("fraction", "signed", "shown"),
    [
        (0.03, False, "3 %"),
        (0.01, False, "1 %"),
        (0.0235, False, "2.35 %"),
        (0.00996, False, "0.996 %"),
        (0.0035, False, "0.35 %"),
        (-0.0055, True, "-0.55 %"),
        (0.0, True, "0 %"),
        (0.9971, True, "+99.7 %"),
        (12.5, False, "1,250 %"),
        (-1.08e22, True, "less than -10,000 %"),
        (321.0, False, "more than 10,000 %"),
        (321.0, True, "more than +10,000 %"),
        (-math.inf, True, "any %"),
        (1e-12, True, "0 %"),
    ],
)
def test_a_percentage_has_the_digits_that_a_reader_needs(fraction: float, signed: bool, shown: str) -> None:
    assert format_percent(fraction, signed=signed) == shown


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ((-0.772,), "77.2 % worse"),
        ((0.04,), "4 % better"),
        ((0.0,), "no change"),
        ((-0.05, -0.03), "3 % to 5 % worse"),
        ((0.03, 0.05), "3 % to 5 % better"),
        ((-0.02, 0.01), "2 % worse to 1 % better"),
        ((-0.02, 0.0), "2 % worse to no change"),
    ],
)
def test_a_change_is_told_as_worse_or_better_and_never_by_a_sign(ends: tuple[float, ...], sentence: str) -> None:
    """A latency that is 77.2 % more stands beside it in the table."""
    assert as_change(*ends) == sentence


@pytest.mark.parametrize(
    ("number", "word", "shown"),
    [(1, "launch", "1 launch"), (2, "launch", "2 launches"), (3, "session", "3 sessions")],
)
def test_several_are_spelt_as_several(number: int, word: str, shown: str) -> None:
    assert plural(number, word) == shown


@pytest.mark.parametrize(
    ("value", "metric", "shown"), [(0.0, "io_errors_per_tb", "0 per TB"), (1234.4, "iops", "1234 IOPS")]
)
def test_a_rate_is_told_as_one(value: float, metric: str, shown: str) -> None:
    """`per TB`, not `1/TB`."""
    assert amount(value, METRICS[metric]) == shown


@pytest.mark.parametrize(
    ("detectable", "sentence"),
    [
        (0.142, "no loss below 14.2 % would have been detected"),
        (1.0, "no loss would have been detected"),
        (1e9, "no loss would have been detected"),
        (float("inf"), "no loss would have been detected"),
        (float("nan"), "no loss would have been detected"),
    ],
)
def test_what_an_undecided_point_could_not_detect_is_a_loss_that_can_be(detectable: float, sentence: str) -> None:
    comparison: Any = SimpleNamespace(
        unit="session", units=2, further_units=3, missing="", shift=-0.01, detectable=detectable
    )
    assert f"; {sentence}; about 3 more sessions" in against_baseline._undecided(comparison)
