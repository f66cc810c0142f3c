# SPDX-License-Identifier: Apache-2.0
"""Campaigns on simulated benches: what the gate says, after how many launches, with fails confirmed on fresh data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from storqual.judge.decision import History, analyse, limits_for
from storqual.statistics.noise import Prior
from storqual.statistics.pairs import analyse_pairs
from tests.error_rates.simulator import LAUNCH_COST, Bench

STAGES = (6, 12, 24, 48)
"""Pairs after which decided trials leave: the first crossing is absorbing, so what comes later changes nothing."""


@dataclass(frozen=True)
class Cell:
    """Shares of trials in percent: `fail` needs two independent fails, `raw_fail` is the first one alone."""

    passed: float
    fail: float
    raw_fail: float
    undecided: float
    seconds: float
    """Mean bench seconds of both arms, confirmation included."""
    raw_seconds: float
    pairs_wanted: float
    """Median of `pairs_wanted` of what stayed undecided; 0 without any."""


def run_pairs(
    bench: Bench, trials: int, seed: int, *, history: History | None = None, cost: float = LAUNCH_COST
) -> Cell:
    """Interleaved pairs until decided or `bench.pairs` are used up; a fail is measured afresh."""
    rng = np.random.default_rng(seed)
    first = _decide(bench, trials, rng, history)
    failed = np.flatnonzero(first.outcome == "fail")
    second = _decide(bench, len(failed), rng, history)
    outcome = first.outcome.copy()
    # two fails make a fail; anything else after a fail is not decided
    outcome[failed] = np.where(second.outcome == "fail", "fail", "inconclusive")
    used = first.pairs.astype(float)
    used[failed] += second.pairs
    seconds = 2 * (bench.seconds + cost)
    return Cell(
        passed=100 * float(np.mean(outcome == "pass")),
        fail=100 * float(np.mean(outcome == "fail")),
        raw_fail=100 * float(np.mean(first.outcome == "fail")),
        undecided=100 * float(np.mean(first.outcome == "inconclusive")),
        seconds=float(used.mean()) * seconds,
        raw_seconds=float(first.pairs.mean()) * seconds,
        pairs_wanted=float(np.median(first.wanted[first.outcome == "inconclusive"]))
        if np.any(first.outcome == "inconclusive")
        else 0.0,
    )


@dataclass(frozen=True)
class _Outcomes:
    outcome: np.ndarray
    pairs: np.ndarray
    wanted: np.ndarray


def _decide(bench: Bench, trials: int, rng: np.random.Generator, history: History | None) -> _Outcomes:
    outcome = np.full(trials, "inconclusive", dtype=object)
    pairs = np.full(trials, bench.pairs)
    wanted = np.zeros(trials, dtype=int)
    if not trials:
        return _Outcomes(outcome, pairs, wanted)
    baseline, candidate = bench.simulate(trials, rng)
    limits = limits_for(0.03, 0.01, 0.05, "higher")
    prior: Prior | None = history.pair() if history else None
    left = np.arange(trials)
    for stage in sorted({min(stage, bench.pairs) for stage in (*STAGES, bench.pairs)}):
        found = analyse_pairs(baseline[left, :stage], candidate[left, :stage], limits, prior=prior)
        for index, analysis in zip(left.tolist(), found, strict=True):
            outcome[index], wanted[index] = analysis.outcome, analysis.wanted
            if analysis.outcome != "inconclusive":
                pairs[index] = analysis.units
        left = left[[analysis.outcome == "inconclusive" for analysis in found]]
        if not left.size:
            break
    return _Outcomes(outcome, pairs, wanted)


def run_sessions(bench: Bench, trials: int, seed: int, *, cost: float = LAUNCH_COST) -> Cell:
    """Arms in sessions of their own, a look after each session of both arms; fails are measured afresh."""
    rng = np.random.default_rng(seed)
    first = _decide_sessions(bench, trials, rng)
    failed = np.flatnonzero(first.outcome == "fail")
    second = _decide_sessions(bench, len(failed), rng)
    outcome = first.outcome.copy()
    outcome[failed] = np.where(second.outcome == "fail", "fail", "inconclusive")
    used = first.pairs.astype(float)
    used[failed] += second.pairs
    seconds = 2 * bench.pairs * (bench.seconds + cost)
    waiting = first.wanted[first.outcome == "inconclusive"]
    return Cell(
        passed=100 * float(np.mean(outcome == "pass")),
        fail=100 * float(np.mean(outcome == "fail")),
        raw_fail=100 * float(np.mean(first.outcome == "fail")),
        undecided=100 * float(np.mean(first.outcome == "inconclusive")),
        seconds=float(used.mean()) * seconds,
        raw_seconds=float(first.pairs.mean()) * seconds,
        pairs_wanted=float(np.median(waiting)) if waiting.size else 0.0,
    )


def _decide_sessions(bench: Bench, trials: int, rng: np.random.Generator) -> _Outcomes:
    outcome = np.full(trials, "inconclusive", dtype=object)
    sessions = np.full(trials, bench.sessions)
    wanted = np.zeros(trials, dtype=int)
    if not trials:
        return _Outcomes(outcome, sessions, wanted)
    baseline, candidate = bench.simulate(trials, rng)
    ids = [[f"{arm}{number // bench.pairs}" for number in range(bench.launches)] for arm in "ab"]
    for index in range(trials):
        analysis = analyse(
            baseline[index].tolist(), candidate[index].tolist(), baseline_sessions=ids[0], candidate_sessions=ids[1]
        )
        outcome[index], wanted[index] = analysis.outcome, analysis.wanted
        if analysis.outcome != "inconclusive":
            sessions[index] = analysis.units
    return _Outcomes(outcome, sessions, wanted)
