# SPDX-License-Identifier: Apache-2.0
"""Launches that still settle when they are measured."""

from __future__ import annotations

import random

import pytest

from storqual.judge.evidence import short_ramps
from storqual.judge.extract import Launch, Place


def places(transient: tuple[float, ...], *, launches: int = 24, seconds: int = 8, noise: float = 0.02) -> dict:
    """One point of bench `b` whose launches begin with these shares of their level."""
    source = random.Random(4)
    place = Place()
    for number in range(launches):
        level = 1000 * (1 + source.gauss(0, 0.05))
        shares = [*transient, *[1.0] * (seconds - len(transient))]
        rate = tuple(level * share * (1 + source.gauss(0, noise)) for share in shares)
        name = f"s01-b01/{number}"
        place.arms["baseline"].append(Launch(name, "s01", "s01-b01", str(number), "ok", (), {}, rate, None))
    return {("b", "sym", "rand_read[bs=4k]"): place}


def test_level_launches_say_nothing() -> None:
    assert short_ramps(places(())) == []
    assert short_ramps(places((), noise=0.2)) == []


@pytest.mark.parametrize(("transient", "seconds"), [((0.7,), 1), ((1.4, 1.2), 2)])
def test_a_transient_beyond_the_ramp_is_told_with_its_length(transient: tuple[float, ...], seconds: int) -> None:
    (said,) = short_ramps(places(transient))
    cut = int(said.partition("settle for ")[2].partition(" ")[0])
    # the cut may take a second that is level, never leave one that is not
    assert cut in (seconds, seconds + 1)


def test_a_transient_of_less_than_a_percent_is_none() -> None:
    assert short_ramps(places((0.995,), noise=0.002)) == []


def test_few_launches_or_short_ones_say_nothing() -> None:
    """Chance would speak."""
    assert short_ramps(places((0.5,), launches=7)) == []
    assert short_ramps(places((0.5,), seconds=3)) == []
