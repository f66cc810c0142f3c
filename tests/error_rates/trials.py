# SPDX-License-Identifier: Apache-2.0
"""Campaigns on simulated benches: what the gate says, after how many launches, with fails confirmed on fresh data.

A campaign has `POINTS` points, each with a noise of its own; the undecided get one more pair each until all are
decided, and each is looked at after every pair. Points of a campaign lend each other their noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from storqual.judge.against_baseline import LIKELY
from storqual.judge.decision import History, decide
from storqual.statistics.comparison import further_units, limits_for
from storqual.statistics.noise import Prior
from storqual.statistics.pairs import Estimates, PairLevels, crossings, estimate, pair_levels
from tests.error_rates.simulator import LAUNCH_COST, Bench

__all__ = ["EARLIER", "POINTS", "Cell", "Outcomes", "cell_of", "gate", "run_pairs", "run_sessions"]

POINTS = 48
"""Points of a campaign: those that the suite `adapter` has for one adapter where it measures until decided."""
LIMITS = limits_for(0.03, 0.01, 0.05, "higher")
EARLIER = 21
LENT = 0.5
"""How much of its degrees of freedom a noise keeps when it is lent to fresh launches."""


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
    pairs_wanted: float = 0.0
    """Median of further pairs (sessions) of what stayed undecided; 0 without any."""
    marginal: float = 0.0
    """Share of first decisions that pass with a loss measured between the two limits."""


@dataclass(frozen=True)
class Outcomes:
    """First decisions; axis trial. `sd` and `df` are the noise that each rests on, `shift` its estimate."""

    outcome: np.ndarray
    units: np.ndarray
    marginal: np.ndarray
    wanted: np.ndarray
    sd: np.ndarray
    df: np.ndarray

    @classmethod
    def none(cls, trials: int, most: int) -> "Outcomes":
        """Nothing decided yet, all of it measured."""
        zero = np.zeros(trials)
        undecided = np.full(trials, "inconclusive", dtype=object)
        return cls(undecided, np.full(trials, most), zero.astype(bool), zero.copy(), zero.copy(), zero.copy())


def run_pairs(
    bench: Bench, trials: int, seed: int, *, with_history: bool = False, points: int = POINTS, first: int = 2
) -> Cell:
    """Interleaved pairs until decided or `bench.pairs` are used up; a fail is measured again.

    `with_history`: the noise of each point is known from `EARLIER` pairs. They are drawn in any case, so that equal
    seeds give equal launches.
    """
    rng = np.random.default_rng(seed)
    arms = replace(bench, pairs=bench.pairs + EARLIER).simulate(trials, rng)
    known: list[Prior | None] = [None] * trials
    if with_history:
        past = [arm[:, -EARLIER:] for arm in arms]
        known = [_history(past[0][trial : trial + 1], past[1][trial : trial + 1]) for trial in range(trials)]
    once = gate(arms[0][:, : bench.pairs], arms[1][:, : bench.pairs], known, points, first)
    failed = np.flatnonzero(once.outcome == "fail")
    lent = [Prior(float(once.sd[index]) ** 2, LENT * float(once.df[index])) for index in failed]
    again = Outcomes.none(0, 0)
    if failed.size:
        again = gate(*bench.simulate(len(failed), rng), lent, 1, first)
    return cell_of(once, again, 2 * (bench.seconds + LAUNCH_COST))


def _history(baseline: np.ndarray, candidate: np.ndarray) -> Prior | None:
    found = estimate([pair_levels(baseline, candidate)], [None])
    return History(sd_pair=float(found.sd[0]), df_pair=float(found.df[0])).pair()


def cell_of(once: Outcomes, again: Outcomes, unit_s: float) -> Cell:
    """Two fails make a fail; anything else after a fail is not decided."""
    failed = np.flatnonzero(once.outcome == "fail")
    outcome = once.outcome.copy()
    outcome[failed] = np.where(again.outcome == "fail", "fail", "inconclusive")
    used = once.units.astype(float)
    used[failed] += again.units
    waiting = once.wanted[once.outcome == "inconclusive"]
    return Cell(
        passed=100 * float(np.mean(outcome == "pass")),
        fail=100 * float(np.mean(outcome == "fail")),
        raw_fail=100 * float(np.mean(once.outcome == "fail")),
        undecided=100 * float(np.mean(once.outcome == "inconclusive")),
        seconds=float(used.mean()) * unit_s,
        raw_seconds=float(once.units.mean()) * unit_s,
        pairs_wanted=float(np.median(waiting)) if waiting.size else 0.0,
        marginal=100 * float(np.mean(once.marginal)),
    )


def gate(
    baseline: np.ndarray, candidate: np.ndarray, known: Sequence[Prior | None], points: int, first: int
) -> Outcomes:
    trials, most, _ = baseline.shape
    found = Outcomes.none(trials, most)
    campaigns = [_Campaign(np.arange(start, min(start + points, trials))) for start in range(0, trials, points)]
    for pairs in range(first, most + 1):
        open_ones = np.flatnonzero(found.outcome == "inconclusive")
        if not open_ones.size:
            break
        levels = pair_levels(baseline[open_ones, :pairs], candidate[open_ones, :pairs])
        place = {int(trial): row for row, trial in enumerate(open_ones)}
        for campaign in campaigns:
            campaign.look(found, levels, place, known, last=pairs == most)
    return found


class _Campaign:
    """Points that lend each other their noise; those that are decided keep the launches that they have."""

    def __init__(self, trials: np.ndarray) -> None:
        self._open = trials
        self._decided: list[tuple[np.ndarray, PairLevels]] = []

    def look(
        self, found: Outcomes, levels: PairLevels, place: dict[int, int], known: Sequence[Prior | None], *, last: bool
    ) -> None:
        """Decide what the launches so far decide."""
        if not self._open.size:
            return
        mine = _rows(levels, [place[int(trial)] for trial in self._open])
        members = [(self._open, mine), *self._decided]
        trials = np.concatenate([names for names, _ in members])
        made = estimate([one for _, one in members], [known[int(trial)] for trial in trials])
        crossed = crossings(made, [LIMITS] * len(trials))
        count = len(self._open)
        passed, failed = crossed.passed[:count], crossed.failed[:count]
        for row, trial in enumerate(self._open.tolist()):
            _note(found, trial, row, made, mine.before.shape[1], passed=passed[row], failed=failed[row], last=last)
        done = np.flatnonzero(passed | failed)
        if done.size:
            self._decided.append((self._open[done], _rows(mine, done.tolist())))
            self._open = np.delete(self._open, done)


def _note(
    found: Outcomes, trial: int, row: int, made: Estimates, pairs: int, *, passed: bool, failed: bool, last: bool
) -> None:
    found.sd[trial], found.df[trial] = made.sd[row], made.df[row]
    if passed or failed:
        found.outcome[trial] = "pass" if passed else "fail"
        found.units[trial] = pairs
        line = LIMITS.indifference
        odds = special.stdtr(made.df[row], (line - made.shift[row]) * np.sqrt(made.pairs[row]) / made.sd[row])
        found.marginal[trial] = passed and odds > LIKELY
    elif last:
        numbers = (float(one[row]) for one in (made.shift, made.sd, made.df))
        found.wanted[trial] = further_units(int(made.pairs[row]), *numbers, LIMITS, "pair", growth=1.0)


def _rows(levels: PairLevels, rows: Sequence[int]) -> PairLevels:
    chosen = (one[list(rows)] for one in (levels.before, levels.after, levels.plain, levels.robust))
    return PairLevels(*chosen, levels.sign)


def run_sessions(bench: Bench, trials: int, seed: int) -> Cell:
    """Arms in sessions of their own, a look after each session of both arms; fails are measured afresh."""
    rng = np.random.default_rng(seed)
    once = _decide_sessions(bench, trials, rng)
    failed = int(np.sum(once.outcome == "fail"))
    return cell_of(once, _decide_sessions(bench, failed, rng), 2 * bench.pairs * (bench.seconds + LAUNCH_COST))


def _decide_sessions(bench: Bench, trials: int, rng: np.random.Generator) -> Outcomes:
    found = Outcomes.none(trials, bench.sessions)
    if not trials:
        return found
    arms = bench.simulate(trials, rng)
    ids = [[f"{arm}{number // bench.pairs}" for number in range(bench.launches)] for arm in "ab"]
    for trial in range(trials):
        for sessions in range(min(2, bench.sessions), bench.sessions + 1):
            count = sessions * bench.pairs
            comparison = decide(
                arms[0][trial, :count].tolist(),
                arms[1][trial, :count].tolist(),
                baseline_sessions=ids[0][:count],
                candidate_sessions=ids[1][:count],
            )
            found.wanted[trial] = comparison.further_units
            if comparison.outcome != "inconclusive":
                found.outcome[trial], found.units[trial] = comparison.outcome, sessions
                break
    return found
