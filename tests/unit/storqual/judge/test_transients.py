# SPDX-License-Identifier: Apache-2.0
"""Launches that still settle when they are measured."""

from __future__ import annotations

import random

import pytest

from storqual.judge.evidence import short_ramps
from storqual.judge.question import ArmLaunches, Question
from storqual.run import Launch, PlannedPoint


def questions(transient: tuple[float, ...], *, launches: int = 24, seconds: int = 8, noise: float = 0.02) -> list:
    """One point of bench `b` whose launches begin with these shares of their level."""
    source = random.Random(4)
    place = ArmLaunches()
    for number in range(launches):
        level = 1000 * (1 + source.gauss(0, 0.05))
        shares = [*transient, *[1.0] * (seconds - len(transient))]
        rate = tuple(level * share * (1 + source.gauss(0, noise)) for share in shares)
        name = f"s01-b01/{number}"
        launch = Launch(
            name, "b", "sym", "baseline", "baseline", "s01", "s01-b01", "rand_read[bs=4k]", 1, str(number), 8.0, "ok",
            (), (), seconds=rate,
        )  # fmt: skip
        place.arms["baseline"].append(launch)
    point = PlannedPoint("b", "sym", "rand_read[bs=4k]", "rand_read", {"bs": 4096}, (), {}, "")
    return [Question(point, None, place, by_session=False)]


def test_level_launches_say_nothing() -> None:
    assert short_ramps(questions(())) == []
    assert short_ramps(questions((), noise=0.2)) == []


@pytest.mark.parametrize(("transient", "seconds"), [((0.7,), 1), ((1.4, 1.2), 2)])
def test_a_transient_beyond_the_ramp_is_told_with_its_length(transient: tuple[float, ...], seconds: int) -> None:
    (said,) = short_ramps(questions(transient))
    cut = int(said.partition("settle for ")[2].partition(" ")[0])
    # the cut may take a second that is level, never leave one that is not
    assert cut in (seconds, seconds + 1)


def test_a_transient_of_less_than_a_percent_is_none() -> None:
    assert short_ramps(questions((0.995,), noise=0.002)) == []


def test_few_launches_or_short_ones_say_nothing() -> None:
    """Chance would speak."""
    assert short_ramps(questions((0.5,), launches=7)) == []
    assert short_ramps(questions((0.5,), seconds=3)) == []
