# SPDX-License-Identifier: Apache-2.0
"""Launches that still settle when they are measured."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.judge.evidence import NOTHING, settling, short_ramps
from storqual.judge.question import ArmLaunches, Question
from storqual.run import Launch, PlannedPoint


def questions(transient: tuple[float, ...], *, launches: int = 24, seconds: int = 8, noise: float = 0.02) -> list:
    """One point of bench `b` whose launches begin with these shares of their level."""
    source = random.Random(4)
    arms = ArmLaunches()
    for number in range(launches):
        level = 1000 * (1 + source.gauss(0, 0.05))
        shares = [*transient, *[1.0] * (seconds - len(transient))]
        rate = tuple(level * share * (1 + source.gauss(0, noise)) for share in shares)
        name = f"s01-b01/{number}"
        launch = Launch(
            name, "b", "sym", "baseline", "baseline", "s01", "s01-b01", "rand_read[bs=4k]", 1, str(number), 8.0, "ok",
            (), (), seconds=rate,
        )  # fmt: skip
        arms.arms["baseline"].append(launch)
    point = PlannedPoint("b", "sym", "rand_read[bs=4k]", "rand_read", {"bs": 4096}, (), {}, "")
    return [Question(point, None, arms, by_session=False)]


def test_level_launches_say_nothing() -> None:
    assert short_ramps(questions(())) == []
    assert short_ramps(questions((), noise=0.2)) == []


@pytest.mark.parametrize(("transient", "seconds"), [((0.7,), 1), ((1.4, 1.2), 2)])
def test_a_transient_beyond_the_ramp_is_told_with_its_length(transient: tuple[float, ...], seconds: int) -> None:
    (sentence,) = short_ramps(questions(transient))
    cut = int(sentence.partition("launches take ")[2].partition(" ")[0])
    # the cut may take a second that is level, never leave one that is not
    assert cut in (seconds, seconds + 1)


def test_a_transient_of_less_than_a_percent_is_none() -> None:
    assert short_ramps(questions((0.995,), noise=0.002)) == []


def test_few_launches_or_short_ones_say_nothing() -> None:
    """Chance would speak."""
    assert short_ramps(questions((0.5,), launches=7)) == []
    assert short_ramps(questions((0.5,), seconds=3)) == []


def test_a_point_gets_its_own_length_where_it_has_launches_enough() -> None:
    (level,), (steep,) = questions(()), questions((1.4, 1.2))
    other = PlannedPoint("b", "sym", "rand_read[bs=8k]", "rand_read", {"bs": 8192}, (), {}, "")
    settlings = settling([level, Question(other, None, steep.launches, by_session=False)])
    assert set(settlings) == {other.key}
    assert settlings[other.key].every_s in (2.0, 3.0)
    assert settlings[other.key].first_s == 0.0


def test_a_point_with_few_launches_is_judged_by_those_of_its_workload() -> None:
    (few,), (many,) = questions((0.7,), launches=4), questions((0.7,))
    other = PlannedPoint("b", "sym", "rand_read[bs=8k]", "rand_read", {"bs": 8192}, (), {}, "")
    elsewhere = PlannedPoint("b", "sym", "seq_read[bs=8k]", "seq_read", {"bs": 8192}, (), {}, "")
    settlings = settling([Question(other, None, few.launches, by_session=False), many])
    assert settlings[other.key].every_s >= 1
    assert settling([Question(elsewhere, None, few.launches, by_session=False), many]).keys() == {many.point.key}


@pytest.mark.parametrize(("first", "expected"), [(0.9, 8.0), (1.0, 0.0)])
def test_the_first_launch_after_a_boot_that_runs_otherwise_gets_a_ramp_of_its_own(
    first: float, expected: float
) -> None:
    (question,) = questions((), noise=0.005)
    launches = question.launches.arms["baseline"]
    level = 1000.0
    for number, launch in enumerate(launches):
        scale = level / (sum(launch.seconds) / 8) * (first if number % 4 == 0 else 1.0)
        seconds = tuple(value * scale for value in launch.seconds)
        launches[number] = replace(launch, session=f"s{number // 4:02d}", n=number + 1, seconds=seconds)
    settlings = settling([replace(question, by_session=True)])
    assert settlings.get(question.point.key, NOTHING).first_s == expected


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_level_noise_gets_no_longer_ramp_of_more_than_half_a_launch(seed: int) -> None:
    """Whatever chance shows, what is added stays below half of what is measured."""
    source = random.Random(seed)
    (question,) = questions((), launches=8)
    launches = question.launches.arms["baseline"]
    for number, launch in enumerate(launches):
        launches[number] = replace(launch, seconds=tuple(source.uniform(1.0, 1000.0) for _ in range(8)))
    assert settling([question]).get(question.point.key, NOTHING).every_s <= 4
