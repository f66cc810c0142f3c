# SPDX-License-Identifier: Apache-2.0
"""The gate on simulated benches, a small version of `make benchmark`: fixed seeds, so never another result."""

import numpy as np
import pytest

from storqual.judge import decide
from tests.error_rates.simulator import NOISES, Bench, SettlingBench, simulate
from tests.error_rates.trials import run_pairs, run_sessions

pytestmark = pytest.mark.slow

TRIALS = 150


@pytest.mark.parametrize(
    ("noise", "effect", "passed", "failed"),
    [
        ("calm", 0.0, (99, 100), (0, 0)),
        ("mixed", 0.0, (93, 100), (0, 0)),
        ("mixed", -0.03, (0, 8), (50, 100)),
        ("mixed", -0.05, (0, 1), (95, 100)),
        ("rough", 0.0, (70, 100), (0, 0.7)),
        ("calm", -0.08, (0, 0), (99, 100)),
    ],
)
def test_pairs_are_judged_with_known_error_rates(
    noise: str, effect: float, passed: tuple[float, float], failed: tuple[float, float]
) -> None:
    cell = run_pairs(Bench(NOISES[noise], effect), TRIALS, seed=8)
    assert passed[0] <= cell.passed <= passed[1]
    assert failed[0] <= cell.fail <= failed[1]


@pytest.mark.parametrize("noise", ["calm", "mixed"])
def test_a_longer_ramp_for_the_launches_after_the_first_look_moves_no_error_rate(noise: str) -> None:
    """Both arms of a pair have the same ramp, so that the transient cancels in each ratio, and pairs can be mixed."""
    same = {
        longer: run_pairs(SettlingBench(NOISES[noise], longer=longer), TRIALS, seed=8) for longer in (False, True)
    }
    assert same[True].fail == same[False].fail == 0
    assert same[True].passed >= same[False].passed - 3
    at_margin = run_pairs(SettlingBench(NOISES[noise], -0.03, longer=True), TRIALS, seed=8)
    beyond = run_pairs(SettlingBench(NOISES[noise], -0.05, longer=True), TRIALS, seed=8)
    assert at_margin.passed <= 8
    assert beyond.passed <= 1.5
    assert beyond.fail >= 95


def test_an_unchanged_candidate_takes_less_bench_time_than_the_rule_to_beat() -> None:
    """209 s for both arms on mixed noise."""
    cell = run_pairs(Bench(NOISES["mixed"]), 300, seed=8)
    assert cell.seconds < 209


def test_sessions_are_judged_with_known_error_rates() -> None:
    """A session effect of 1 %: no wrong pass at -5 %, no false fail, and 6 x 6 decides most."""
    same = run_sessions(Bench(NOISES["middle"], pairs=6, sessions=6, session_effect=0.01), 80, seed=8)
    slow = run_sessions(Bench(NOISES["middle"], -0.05, pairs=6, sessions=6, session_effect=0.01), 80, seed=8)
    assert same.raw_fail <= 1.3
    assert same.passed >= 70
    assert slow.passed == 0
    assert slow.raw_fail >= 85


def test_the_simulator_has_the_noise_that_it_says() -> None:
    """Calm pairs of 5 s vary by about 2 % without dips: the table's numbers rest on it."""
    baseline, candidate = simulate(Bench(NOISES["calm"], pairs=40), 50, np.random.default_rng(1))
    ratios = candidate.mean(axis=2) / baseline.mean(axis=2)
    assert 0.025 < ratios.std() < 0.045
    decision = decide(baseline[0].tolist(), candidate[0].tolist())
    assert decision.outcome == "pass"
