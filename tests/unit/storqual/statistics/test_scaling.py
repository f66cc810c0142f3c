# SPDX-License-Identifier: Apache-2.0
"""Tests of scaling: a planted knee is found, a straight line is called straight, nothing is overstated."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.statistics.scaling import scaling, scaling_sentences

DEPTHS = (1, 2, 4, 8, 16, 32)
Launches = Mapping[float, Sequence[float]]


def measured(
    curve: Callable[[float], float],
    levels: Sequence[float] = DEPTHS,
    *,
    noise: float = 0.0,
    launches: int = 1,
    seed: int = 1,
) -> Launches:
    random = np.random.default_rng([7, seed])
    return {level: list(curve(level) * np.exp(random.normal(0, noise, launches))) for level in levels}


def knee_at(knee: float, rate: float = 1000.0) -> Callable[[float], float]:
    """A queue of fixed service time: depth over service time until the knee, then flat."""
    return lambda level: min(level, knee) * rate


@given(st.floats(1.5, 28), st.floats(1, 1e6))
def test_a_planted_knee_is_found_exactly(knee: float, rate: float) -> None:
    result = scaling(measured(knee_at(knee, rate)))
    assert result.shape == "knee"
    assert result.knee is not None
    assert result.plateau is not None
    assert result.knee.value == pytest.approx(knee)
    assert result.plateau.value == pytest.approx(knee * rate)
    assert result.linear_to == max(level for level in DEPTHS if level <= knee / 0.95 * (1 + 1e-9))


@given(st.floats(1e-3, 1e9), st.sampled_from((0.0, 0.005, 0.01)), st.integers(1, 50))
def test_a_straight_line_is_called_straight(rate: float, noise: float, seed: int) -> None:
    result = scaling(measured(lambda level: level * rate, noise=noise, launches=4, seed=seed))
    assert (result.shape, result.knee) == ("straight", None)
    assert result.linear_to == 32


def test_a_plateau_from_the_start_is_called_flat() -> None:
    result = scaling(measured(lambda _: 1000.0, noise=0.01, launches=4))
    assert (result.shape, result.linear_to, result.broken_at) == ("flat", 1, 2)
    assert "More commands make no difference." in scaling_sentences(result, "commands")


def test_a_curve_without_a_corner_is_called_gradual() -> None:
    result = scaling(measured(lambda level: level / (1 + level / 8), noise=0.005, launches=4))
    assert result.shape == "gradual"
    assert any("no sharp knee" in sentence for sentence in scaling_sentences(result, "commands"))


def test_the_intervals_of_a_noisy_knee_hold_it() -> None:
    """In 95 of 100 curves with 1 % noise, give or take chance; and the efficiency's interval too."""
    held = kept = 0
    trials = 400
    for seed in range(trials):
        result = scaling(measured(knee_at(6), noise=0.01, launches=3, seed=seed))
        assert result.knee is not None
        low, high = result.knee.low, result.knee.high
        assert low is not None
        assert high is not None
        held += low <= 6 <= high
        efficiency = result.levels[3].efficiency
        assert efficiency.low is not None
        assert efficiency.high is not None
        kept += efficiency.low <= 6 / 8 <= efficiency.high
    assert 0.92 * trials <= held <= 0.98 * trials
    assert 0.92 * trials <= kept <= 0.98 * trials


def test_noise_that_hides_the_answer_leaves_it_open() -> None:
    """Two launches with 5 % noise at 96 % of linear: neither linear nor broken."""
    result = scaling({1: [100, 104], 2: [192, 199], 4: [360, 392]})
    assert (result.linear_to, result.broken_at) == (1, None)
    assert scaling_sentences(result, "ports")[0].endswith("These launches do not decide it at 2, 4.")


HP_READS = {
    "superdome": (192, 383, 572, 766, 956, 1147, 1336, 1524),
    "rp8400": (191, 382, 572, 762, 954, 1144, 1334, 1523),
    "rp7400": (191, 381, 571, 712, 710, 899, 1001, 1026),
}


def ports(values: Sequence[float]) -> Launches:
    """A published curve: one value per port."""
    return {level: [value] for level, value in enumerate(values, start=1)}


@pytest.mark.parametrize("system", ["superdome", "rp8400"])
def test_the_published_linear_scaling_is_confirmed(system: str) -> None:
    """HP A6826A, chart 3a: linear up to four cards."""
    result = scaling(ports(HP_READS[system]))
    assert (result.shape, result.linear_to, result.broken_at) == ("straight", 8, None)
    sentences = scaling_sentences(result, "ports", "MB/s")
    assert sentences == ["Linear over the whole range, from 1 to 8 ports (at least 95 % of linear everywhere)."]


def test_the_published_limit_of_the_rp7400_is_found() -> None:
    """HP A6826A, chart 3a: linear up to three ports, not four; the fourth adds three quarters of one."""
    result = scaling(ports(HP_READS["rp7400"]))
    assert (result.linear_to, result.broken_at) == (3, 4)
    fourth = result.levels[3]
    assert fourth.efficiency.value == pytest.approx(712 / 764)
    assert fourth.added is not None
    assert fourth.added.value == pytest.approx(141 / 191)
    assert scaling_sentences(result, "ports", "MB/s")[:2] == [
        "Linear up to 3 ports (at least 95 % of linear).",
        "At 4 ports there is 93.2 % of linear; each of the ports added last gives 73.8 % of what one gives alone.",
    ]


def test_what_is_added_is_per_unit_between_levels() -> None:
    """From 2 to 4 drives there are two more."""
    result = scaling({1: [100, 100.1], 2: [200, 200.2], 4: [300, 300.3]})
    assert result.levels[0].added is None
    assert [level.added.value for level in result.levels[1:] if level.added] == pytest.approx([1.0, 0.5], abs=1e-3)


@pytest.mark.parametrize(
    ("launches", "tolerance"),
    [
        ({}, 0.05),
        ({1: [1.0]}, 0.05),
        ({0: [1.0], 1: [2.0]}, 0.05),
        ({1: [1.0], 2: []}, 0.05),
        ({1: [1.0], 2: [0.0]}, 0.05),
        ({1: [1.0], 2: [float("nan")]}, 0.05),
        ({1: [1.0], 2: [2.0]}, 0.0),
        ({1: [1.0], 2: [2.0]}, 1.0),
    ],
)
def test_what_cannot_be_analysed_is_refused(launches: Launches, tolerance: float) -> None:
    with pytest.raises(ValueError, match=r".+"):
        scaling(launches, tolerance=tolerance)
