# SPDX-License-Identifier: Apache-2.0
"""`decide`: what it promises to those who call it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.judge import ArmComparison, History, decide

LAUNCH = st.lists(st.floats(1.0, 2000.0), min_size=1, max_size=6)
LAUNCHES = st.lists(LAUNCH, max_size=12)


def quiet(count: int, level: float = 1000.0, spread: float = 0.01, seed: int = 1) -> list[list[float]]:
    """Launches of five seconds about a level."""
    rng = np.random.default_rng(seed)
    return (level * (1.0 + rng.normal(0, spread, (count, 5)))).tolist()


def test_an_unchanged_candidate_passes() -> None:
    decision = decide(quiet(12), quiet(12, seed=2))
    assert decision.outcome == "pass"
    assert decision.ci95[0] < decision.shift < decision.ci95[1]
    assert decision.detectable > 0.01
    assert decision.further_units == 0


def test_a_slower_candidate_fails() -> None:
    decision = decide(quiet(12), quiet(12, level=930.0, seed=2))
    assert decision.outcome == "fail"
    assert decision.shift == pytest.approx(-0.07, abs=0.015)
    assert decision.further_units == 0


def test_a_slower_latency_is_negative_too() -> None:
    """Negative is worse whatever is better: 7 % more microseconds are -0.07."""
    decision = decide(quiet(12), quiet(12, level=1070.0, seed=2), better="lower")
    assert decision.outcome == "fail"
    assert decision.shift == pytest.approx(-0.07, abs=0.015)
    assert decide(quiet(12), quiet(12, level=930.0, seed=2), better="lower").outcome == "pass"


def test_an_unchanged_latency_passes() -> None:
    assert decide(quiet(12), quiet(12, seed=2), better="lower").outcome == "pass"


def test_a_faster_candidate_passes_with_a_positive_shift() -> None:
    decision = decide(quiet(12), quiet(12, level=1200.0, seed=2))
    assert decision.outcome == "pass"
    assert decision.shift > 0.15


def test_few_pairs_of_a_noisy_bench_say_how_many_are_wanted() -> None:
    decision = decide(quiet(6, spread=0.1), quiet(6, spread=0.1, seed=2))
    assert decision.outcome == "inconclusive"
    assert 3 <= decision.further_units < 500
    assert decision.detectable > 0.05


def test_a_margin_that_the_data_cannot_reach_wants_more_than_one_that_they_can() -> None:
    arms = quiet(10, spread=0.08), quiet(10, spread=0.08, seed=3)
    wide, narrow = (decide(*arms, margin=margin, indifference=0.002).further_units for margin in (0.03, 0.01))
    assert narrow > wide


@pytest.mark.parametrize("count", [0, 1])
def test_no_pair_or_one_says_nothing(count: int) -> None:
    decision = decide(quiet(count), quiet(count, seed=2))
    assert decision.outcome == "inconclusive"
    assert decision.ci95 == (-1.0, math.inf)
    assert decision.further_units >= 2


def test_an_odd_launch_is_ignored() -> None:
    baseline, candidate = quiet(9), quiet(9, seed=2)
    assert decide(baseline, candidate[:8]) == decide(baseline[:8], candidate[:8])


def test_single_values_do_for_launches() -> None:
    baseline, candidate = [1000.0, 1010.0, 990.0, 1005.0], [1001.0, 1000.0, 995.0, 1003.0]
    assert decide(baseline, candidate) == decide([[v] for v in baseline], [[v] for v in candidate])


@pytest.mark.parametrize("launch", [[], [math.nan], [1.0, math.nan], [0.0, 0.0], 0.0, [math.inf], [5.0, -1.0], -3.0])
def test_a_launch_that_says_nothing_is_refused(launch: object) -> None:
    for arms in (([[1.0], launch], [[1.0], [1.0]]), ([[1.0], [1.0]], [[1.0], launch])):
        with pytest.raises(ValueError, match="launch 1"):
            decide(*arms)  # type: ignore[arg-type]


def test_single_seconds_at_zero_are_stalls_and_stay() -> None:
    candidate = quiet(12, seed=2)
    for launch in candidate:
        launch[2] = 0.0
    assert decide(quiet(12), candidate).outcome == "fail"


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin": 0.01, "indifference": 0.01},
        {"margin": 1.0},
        {"indifference": -0.01},
        {"alpha": 0.0},
        {"alpha": 0.5},
        {"better": "best"},
        {"baseline_sessions": ["a", "b"]},
        {"baseline_sessions": ["a"], "candidate_sessions": ["b"]},
    ],
)
def test_limits_and_sessions_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        decide(quiet(2), quiet(2), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"sd_pair": -0.1}, {"sd_pair": math.nan}, {"df_pair": -1.0}, {"sd_session": math.inf}]
)
def test_a_history_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        History(**wrong)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_equal_figures_pass_and_a_tenth_less_fails(count: int) -> None:
    same, less = [[500.0] * 5] * count, [[450.0] * 5] * count
    decision = decide(same, same)
    assert decision.outcome == "pass"
    assert decision.ci95[0] < 0 < decision.ci95[1]
    assert decide(same, less).outcome == "fail"


def test_a_difference_within_rounding_is_not_shown_by_equal_figures() -> None:
    decision = decide([1000.0] * 10, [999.9] * 10, margin=0.0015, indifference=0.0)
    assert decision.outcome != "fail"


@settings(max_examples=60, deadline=None)
@given(LAUNCHES, LAUNCHES, st.floats(0.002, 0.5), st.floats(0.0, 0.9), st.booleans())
def test_the_estimate_does_not_depend_on_the_limits(
    baseline: list[list[float]], candidate: list[list[float]], margin: float, part: float, by_session: bool
) -> None:
    """The same launches have the same shift and interval, whatever loss a suite accepts."""
    sessions = {}
    if by_session:
        sessions = {
            f"{arm}_sessions": [number // 2 for number in range(len(launches))]
            for arm, launches in (("baseline", baseline), ("candidate", candidate))
        }
    usual = decide(baseline, candidate, **sessions)  # type: ignore[arg-type]
    other = decide(baseline, candidate, margin=margin, indifference=part * margin, **sessions)  # type: ignore[arg-type]
    assert (other.ci95, repr(other.shift)) == (usual.ci95, repr(usual.shift))


def test_the_last_look_has_all_launches() -> None:
    """Two quiet pairs pass; what comes after them moves the shift, the interval and, if it must, the outcome."""
    baseline, candidate = [[1000.0], [1001.0]] * 6, [[1000.0], [1001.0]] + [[950.0], [951.0]] * 5
    assert decide(baseline[:2], candidate[:2]).outcome == "pass"
    decision = decide(baseline, candidate)
    assert decision.outcome == "fail"
    assert decision.shift == pytest.approx(-0.042, abs=0.003)


@settings(max_examples=40, deadline=None)
@given(LAUNCHES, LAUNCHES, st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(baseline: list[list[float]], candidate: list[list[float]], unit: float) -> None:

    def scaled(arm: list[list[float]]) -> list[list[float]]:
        return [[value * unit for value in launch] for launch in arm]

    plain, other = decide(baseline, candidate), decide(scaled(baseline), scaled(candidate))
    assert plain.outcome == other.outcome
    assert plain.shift == pytest.approx(other.shift, rel=1e-6, abs=1e-9, nan_ok=True)


@settings(max_examples=40, deadline=None)
@given(LAUNCHES, LAUNCHES, st.sampled_from(["higher", "lower"]))
def test_every_answer_is_sound(baseline: list[list[float]], candidate: list[list[float]], better: str) -> None:
    decision: ArmComparison = decide(baseline, candidate, better=better)  # type: ignore[arg-type]
    assert decision.outcome in ("pass", "fail", "inconclusive")
    assert (decision.further_units == 0) == (decision.outcome != "inconclusive")
    assert decision.detectable > 0
    if min(len(baseline), len(candidate)):
        assert decision.ci95[0] <= decision.shift <= decision.ci95[1]


def test_a_smaller_alpha_asks_for_more() -> None:
    arms = quiet(8, spread=0.03), quiet(8, spread=0.03, seed=3)
    usual, strict = (decide(*arms, alpha=alpha) for alpha in (0.05, 0.0001))
    assert usual.outcome == "pass"
    assert strict.outcome == "inconclusive"


def test_what_is_not_given_is_what_the_contract_says() -> None:
    """Margin 3 %, indifference 1 %, alpha 5 %, more is better."""
    arms = quiet(9, spread=0.03), quiet(9, level=985.0, spread=0.03, seed=2)
    explicit = decide(*arms, margin=0.03, indifference=0.01, alpha=0.05, better="higher")
    assert decide(*arms) == explicit
    assert decide(*arms, alpha=0.1) != explicit


def test_arms_of_unequal_length_need_session_ids_of_their_own_length_only() -> None:
    baseline, candidate = quiet(8), quiet(10, seed=2)
    sessions = [
        [f"{arm}{number // 2}" for number in range(len(launches))]
        for arm, launches in enumerate((baseline, candidate))
    ]
    decision = decide(baseline, candidate, baseline_sessions=sessions[0], candidate_sessions=sessions[1])
    assert decision.outcome == "pass"
    with pytest.raises(ValueError, match="baseline_sessions: found 10, expected a session id for each of 8 launches"):
        decide(baseline, candidate, baseline_sessions=sessions[1], candidate_sessions=sessions[1])
