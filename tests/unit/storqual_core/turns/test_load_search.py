# SPDX-License-Identifier: Apache-2.0
"""The load at a latency cap, against a device whose answer is known: fixed service time, so many served at once."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns.launch import MOST_STEPS, LoadStep, at_response, next_load, read_steps, response_ns

MS = 1e6


def device(load: int, *, service_ns: float, width: int, noise: float = 0.0) -> LoadStep:
    """A launch on a device that serves `width` I/Os at once, each in `service_ns`."""
    rate = min(load, width) / service_ns * 1e9 * math.exp(random.Random(load).gauss(0.0, noise))
    return LoadStep(load, rate, load / rate * 1e9)


def search(cap_ns: float, *, most: int = 4096, **kind: float) -> list[LoadStep]:
    """All launches of a search."""
    steps: list[LoadStep] = []
    load = next_load(steps, cap_ns, least=1, most=most)
    while load is not None:
        assert load not in {step.load for step in steps}, "a launch twice"
        steps.append(device(load, **kind))  # type: ignore[arg-type]
        load = next_load(steps, cap_ns, least=1, most=most)
    return steps


@pytest.mark.parametrize("cap_ms", [8, 20, 100])
@pytest.mark.parametrize(("service_ms", "width"), [(1.0, 4), (4.0, 32), (0.1, 1), (0.25, 8)])
def test_the_cap_is_where_littles_law_puts_it(cap_ms: float, service_ms: float, width: int) -> None:
    steps = search(cap_ms * MS, service_ns=service_ms * MS, width=width)
    found = at_response(steps, cap_ms * MS)
    assert found is not None
    rate = width / service_ms * 1000
    assert found[0] == pytest.approx(rate, rel=1e-9)
    assert found[1] == pytest.approx(cap_ms / 1000 * rate, rel=1e-6)
    assert len(steps) <= 13


def test_noise_of_a_percent_moves_the_answer_by_a_percent() -> None:
    steps = search(100 * MS, service_ns=MS, width=4, noise=0.01)
    found = at_response(steps, 100 * MS)
    assert found is not None
    assert found[0] == pytest.approx(4000, rel=0.03)
    assert len(steps) < MOST_STEPS


def test_a_cap_that_cannot_be_reached_ends_at_the_most() -> None:
    steps = search(100 * MS, most=64, service_ns=MS, width=4)
    assert max(step.load for step in steps) == 64
    assert at_response(steps, 100 * MS) is None


def test_a_cap_below_the_shortest_response_is_one_launch() -> None:
    steps = search(0.5 * MS, service_ns=MS, width=4)
    assert [step.load for step in steps] == [1]
    assert at_response(steps, 0.5 * MS) is None


def test_rates_at_other_response_times_are_read_off_the_same_curve() -> None:
    steps = [LoadStep(4, 4000.0, 1.0 * MS), LoadStep(8, 4400.0, 2.0 * MS), LoadStep(16, 4400.0, 4.0 * MS)]
    assert at_response(steps, 1.5 * MS) == (4200.0, 6.0)
    assert at_response(steps, 4.0 * MS) == (4400.0, 16.0)
    assert at_response(steps, 0.5 * MS) is None
    assert at_response(steps, 5.0 * MS) is None


@given(
    st.lists(st.tuples(st.floats(1.0, 1e7), st.floats(1e3, 1e10)), max_size=40),
    st.floats(1e3, 1e10),
    st.integers(1, 64),
    st.integers(64, 4096),
)
def test_any_device_whatever_it_answers_ends_the_search(
    answers: list[tuple[float, float]], cap_ns: float, least: int, most: int
) -> None:
    """Each load is tried once, inside its limits, and there are so many launches at most."""
    steps: list[LoadStep] = []
    load = next_load(steps, cap_ns, least=least, most=most)
    while load is not None:
        assert least <= load <= most
        assert load not in {step.load for step in steps}
        rate, response = answers[len(steps)] if len(steps) < len(answers) else (1000.0, load * 1e6)
        steps.append(LoadStep(load, rate, response))
        load = next_load(steps, cap_ns, least=least, most=most)
    assert len(steps) <= MOST_STEPS


def test_percentiles_of_a_launch_come_from_its_bins() -> None:
    bins = {"1000": 98, "9000": 2}
    assert response_ns(100, 116_000, bins, 0) == 1160.0
    assert response_ns(100, 116_000, bins, 980_000) == 1000.0
    assert response_ns(100, 116_000, bins, 990_000) == 9000.0
    assert response_ns(101, 116_000, bins, 990_000) is None
    assert response_ns(0, 0, {}, 0) is None


@pytest.mark.parametrize("entry", [{}, {"load": 1, "ios": 0, "runtime_ns": 1, "lat_sum_ns": 0}, {"load": "x"}])
def test_steps_that_are_none_are_an_error(entry: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        read_steps([entry], 0)
