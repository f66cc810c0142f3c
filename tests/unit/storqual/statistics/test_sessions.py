# SPDX-License-Identifier: Apache-2.0
"""Tests of the tests on sessions: one point, and many points that were measured in the same sessions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.judge.decision import History, decide
from storqual.statistics.comparison import LEVELS, ArmComparison, alpha_of, limits_for, nominal_levels, scale, shape
from storqual.statistics.sessions import ONE_SESSION, analyse_fixed_sessions, analyse_sessions, split_sessions

LIMITS = limits_for(0.03, 0.01, 0.05, "higher")


def campaign(
    seed: int, sessions: int, launches: int, *, effect: float = 0.0, boot: float = 0.01, spread: float = 0.02
) -> tuple[list[float], list[float], list[str], list[str]]:
    rng = np.random.default_rng(seed)
    levels = rng.normal(0, boot, (2, sessions, 1)) + rng.normal(0, spread, (2, sessions, launches))
    values = 1000.0 * np.exp(levels)
    values[1] *= 1.0 + effect
    ids = [[f"{arm}{number}" for number in range(sessions) for _ in range(launches)] for arm in "bc"]
    return values[0].ravel().tolist(), values[1].ravel().tolist(), ids[0], ids[1]


def judged(seed: int, sessions: int, launches: int, **shape: float) -> ArmComparison:
    baseline, candidate, before, after = campaign(seed, sessions, launches, **shape)
    return decide(baseline, candidate, baseline_sessions=before, candidate_sessions=after)


@pytest.mark.parametrize("sessions", [3, 6])
def test_a_session_effect_does_not_pass_a_loss_of_the_margin(sessions: int) -> None:
    """Wrong passes stay below 5 % (two standard errors allowed) though boots differ by 1 %."""
    outcomes = [judged(seed, sessions, 6, effect=-0.03).outcome for seed in range(400)]
    assert outcomes.count("pass") / 4 <= 5.0 + 2.2


def test_a_session_effect_does_not_fail_an_unchanged_candidate() -> None:
    outcomes = [judged(seed, 6, 6).outcome for seed in range(400)]
    assert outcomes.count("fail") <= 2
    assert outcomes.count("pass") >= 280


def test_launches_treated_as_pairs_would_be_wrong_here() -> None:
    passes = 0
    for seed in range(200):
        baseline, candidate, _, _ = campaign(seed, 1, 30, effect=-0.03, boot=0.012)
        passes += decide(baseline, candidate).outcome == "pass"
    assert passes / 2 > 10


def test_a_look_has_of_its_last_session_what_the_sessions_before_it_had() -> None:
    """The launches that came after the look, to measure something else, are no evidence of it."""
    usual = campaign(3, 3, 4)
    more = [[*values, 2000.0, 2000.0] for values in usual[:2]]
    named = [[*names, names[-1], names[-1]] for names in usual[2:]]
    short, long = (
        decide(sessions[0], sessions[1], baseline_sessions=sessions[2], candidate_sessions=sessions[3])
        for sessions in (usual, [*more, *named])
    )
    assert long.log_shift == short.log_shift
    assert long.sd == short.sd


def test_one_session_per_arm_is_never_decided() -> None:
    comparison = judged(1, 1, 1000, effect=-0.2)
    assert comparison.outcome == "inconclusive"
    assert comparison.ci95 == (-1.0, np.inf)
    assert comparison.further_units >= 1


def test_history_that_bounds_the_session_effect_decides_one_session() -> None:
    baseline, candidate, before, after = campaign(2, 1, 20, boot=0.0, spread=0.005)
    history = History(sd_session=0.001, df_session=20)
    comparison = decide(baseline, candidate, baseline_sessions=before, candidate_sessions=after, history=history)
    assert comparison.outcome == "pass"


def test_history_with_a_large_session_effect_does_not() -> None:
    baseline, candidate, before, after = campaign(2, 1, 20, boot=0.0, spread=0.005)
    history = History(sd_session=0.03, df_session=20)
    comparison = decide(baseline, candidate, baseline_sessions=before, candidate_sessions=after, history=history)
    assert comparison.outcome == "inconclusive"


def test_two_quiet_sessions_per_arm_decide_a_wide_margin() -> None:
    """What the quick profile rests on: one launch in each of 2 + 2 boots."""
    sessions = {"baseline_sessions": ["s1", "s4"], "candidate_sessions": ["s2", "s3"]}
    for candidate, outcome in (([1001.0, 999.0], "pass"), ([801.0, 799.0], "fail")):
        comparison = decide([1000.0, 1003.0], candidate, margin=0.08, indifference=0.02, **sessions)
        assert comparison.outcome == outcome


def test_launches_of_a_session_under_way_change_nothing() -> None:
    """Looks come at complete sessions, which can be told without knowing the future."""
    baseline, candidate, before, after = campaign(2, 8, 4, effect=0.0, boot=0.004, spread=0.008)
    complete = decide(baseline[:16], candidate[:16], baseline_sessions=before[:16], candidate_sessions=after[:16])
    under_way = decide(baseline[:18], candidate[:18], baseline_sessions=before[:18], candidate_sessions=after[:18])
    assert under_way == complete
    assert (
        decide(baseline[:20], candidate[:20], baseline_sessions=before[:20], candidate_sessions=after[:20])
        != complete
    )


def test_a_session_that_lost_launches_is_complete_when_the_next_one_began() -> None:
    launches = np.ones((9, 1))
    split = split_sessions(launches, ["a"] * 4 + ["b"] * 2 + ["c"] * 3)
    assert [(len(session.launches), session.open) for session in split] == [(4, False), (2, False), (3, False)]
    split = split_sessions(launches[:5], ["a"] * 4 + ["b"])
    assert [session.open for session in split] == [False, True]


def test_the_first_session_is_open_until_another_begins() -> None:
    only = split_sessions(np.ones((5, 1)), ["a"] * 5)
    assert [session.open for session in only] == [True]
    comparison = analyse_sessions(only, only, LIMITS)
    assert comparison.missing


def arm(levels: np.ndarray) -> np.ndarray:
    """One point; log-levels have axes (session, launch)."""
    return 1000.0 * np.exp(levels)[None, :, :, None]


def test_one_boot_of_each_arm_decides_nothing_whatever_the_loss() -> None:
    launches = np.random.default_rng(1).normal(0.0, 0.001, (1, 40))
    (comparison,) = analyse_fixed_sessions(arm(launches), arm(launches - 0.2), [LIMITS])
    assert (comparison.outcome, comparison.missing, comparison.units) == ("inconclusive", ONE_SESSION, 1)
    assert comparison.log_shift == pytest.approx(-0.2)


def test_the_means_of_both_arms_cost_two_degrees_of_freedom() -> None:
    levels = np.random.default_rng(2).normal(0.0, 0.01, (2, 4, 1))
    (comparison,) = analyse_fixed_sessions(arm(levels[0]), arm(levels[1]), [LIMITS])
    assert comparison.df == 4 + 4 - 2
    before, after = levels.mean(axis=2)
    pooled = (before.var(ddof=1) + after.var(ddof=1)) / 2
    assert comparison.sd == pytest.approx(np.sqrt(pooled))


def test_sessions_that_agree_by_chance_are_no_steadier_than_the_launches_they_are_made_of() -> None:
    """The same four launches, in another order, in each of four sessions: means agree to the last digit."""
    launches = np.array([-0.06, -0.02, 0.02, 0.06])
    levels = np.stack([np.roll(launches, turn) for turn in range(4)])
    (comparison,) = analyse_fixed_sessions(arm(levels), arm(levels - 0.02), [LIMITS])
    within = launches.std(ddof=1) / np.sqrt(len(launches))
    assert comparison.sd == pytest.approx(within, rel=1e-6)
    assert comparison.outcome == "inconclusive"


RULES = sorted(LEVELS)


@pytest.mark.parametrize("rule", RULES)
def test_the_table_is_hit_exactly(rule: str) -> None:
    for alpha, expected in LEVELS[rule]:
        assert scale(rule, alpha) == pytest.approx(expected)


@given(st.sampled_from(RULES), st.floats(1e-6, 0.4))
def test_a_larger_error_buys_higher_levels(rule: str, alpha: float) -> None:
    assert scale(rule, alpha) < scale(rule, alpha * 1.1)
    assert float(nominal_levels(rule, min(alpha, 0.2), np.arange(1.0, 500.0)).max()) <= alpha


@given(st.sampled_from(RULES), st.floats(1e-4, 0.2), st.integers(2, 60))
def test_the_error_of_a_level_is_found_back(rule: str, alpha: float, look: int) -> None:
    """`alpha_of` is the inverse of the levels."""
    level = float(nominal_levels(rule, alpha, np.array([float(look)]))[0])
    assert alpha_of(rule, level, float(look)) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_the_first_look_spends_nothing(rule: str) -> None:
    assert shape(rule, np.array([1.0]))[0] == 0.0
    assert np.all(shape(rule, np.arange(2.0, 300.0)) > 0)


def test_looks_without_end_spend_little() -> None:
    """Behind the horizon levels fall faster than 1 / n, so that their sum is finite."""
    late = shape("pass", np.arange(49.0, 100_000.0)).sum()
    assert late < 2 * 48 * float(shape("pass", np.array([48.0]))[0]) + 1
