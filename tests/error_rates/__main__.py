# SPDX-License-Identifier: Apache-2.0
"""`make benchmark`: error rates and bench seconds of the gate, from simulated benches with recorded seeds.

python -m tests.error_rates                        # 1,000 trials a cell, some minutes
python -m tests.error_rates --trials 200           # a first look; STORQUAL_BENCHMARK_TRIALS does the same
"""

from __future__ import annotations

import argparse
import os
import time

from storqual.judge import History
from tests.error_rates.large_run import judging_cost
from tests.error_rates.other_noise import OTHERS, OtherBench
from tests.error_rates.simulator import NOISES, Bench
from tests.error_rates.trials import Cell, run_pairs, run_sessions

SEED = 4
EFFECTS = (0.0, -0.01, -0.03, -0.05, -0.08)
DESIGNS = ((2, 15), (3, 10), (4, 8), (6, 6), (8, 4), (12, 4))
SESSION_EFFECT = 0.01
FULL = 1000
HEADER = (
    f"{'noise':<24}{'effect':>7}{'pass %':>8}{'FAIL %':>8}{'fail once %':>12}{'open %':>8}"
    f"{'bench s':>9}{'once s':>8}{'wanted':>8}"
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=int(os.environ.get("STORQUAL_BENCHMARK_TRIALS", "1000")))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", choices=PARTS, default=None)
    options = parser.parse_args()
    began = time.monotonic()
    print(
        f"storqual gate: margin 3 %, indifference 1 %, alpha 5 %; {options.trials} trials a cell, seed {options.seed}"
    )
    print("pass and FAIL: after confirmation of fails on fresh data; fail once: the first decision alone; open: not")
    print("decided within the launches; wanted: median of further pairs (sessions per arm) that those ask for.")
    for name, part in PARTS.items():
        if options.only in (None, name):
            part(options.trials, options.seed)
    print(f"\n{time.monotonic() - began:.0f} s of this machine")


def _pairs(trials: int, seed: int) -> None:
    _head("interleaved pairs of 5 s, at most 48; a launch costs 1.35 s more")
    for noise in NOISES.values():
        for effect in EFFECTS:
            _row(noise.name, effect, run_pairs(Bench(noise, effect), trials, seed))


def _history(trials: int, seed: int) -> None:
    _head("the same with noise history: 21 earlier A/A pairs of mixed noise")
    for effect in (0.0, -0.03, -0.05):
        cell = run_pairs(Bench(NOISES["middle"], effect), trials, seed, history=History(sd_pair=0.039, df_pair=20))
        _row("middle, with history", effect, cell)


def _short(trials: int, seed: int) -> None:
    _head("launches of 2 s, at most 96 pairs; a launch costs 1.35 s more")
    for name in ("calm", "mixed", "rough"):
        for effect in (0.0, -0.03, -0.05):
            _row(f"{name}, 2 s", effect, run_pairs(Bench(NOISES[name], effect, pairs=96, seconds=2), trials, seed))


def _dips(trials: int, seed: int) -> None:
    _head("the candidate dips more often: by the decision on the mean alone (dips are a criterion of their own)")
    for factor in (3.0, 10.0):
        _row(f"mixed, {factor:.0f} x dips", 0.0, run_pairs(Bench(NOISES["mixed"], dips=factor), trials, seed))


def _others(trials: int, seed: int) -> None:
    _head("noise of other kinds than the gate was designed on; pairs of 5 s, at most 48")
    for name in OTHERS:
        for effect in (0.0, -0.03, -0.05):
            _row(name, effect, run_pairs(OtherBench(effect=effect, other=name), trials, seed))


def _sessions(trials: int, seed: int) -> None:
    _head("each arm in boot sessions of its own, session effect 1 %, middle noise; boots not counted in seconds")
    for sessions, launches in DESIGNS:
        for effect in (0.0, -0.03, -0.05):
            bench = Bench(NOISES["middle"], effect, pairs=launches, sessions=sessions, session_effect=SESSION_EFFECT)
            _row(f"{sessions} sessions x {launches}", effect, run_sessions(bench, trials, seed))
    bench = Bench(NOISES["middle"], pairs=30, sessions=1, session_effect=SESSION_EFFECT)
    _row("1 session x 30", 0.0, run_sessions(bench, trials, seed))


def _matrix(trials: int, seed: int) -> None:
    count = max(1, trials // 5)
    print(f"\nmatrices of 200 points, mixed noise, fails confirmed on fresh data; {count} matrices")
    cells = [run_pairs(Bench(NOISES["mixed"]), 200, seed + number) for number in range(count)]
    print(f"  with any FAIL, all unchanged: {sum(cell.fail > 0 for cell in cells)} of {count}")
    lost = run_pairs(Bench(NOISES["mixed"], -0.05), count, seed)
    print(f"  the one point that lost 5 % is found in {lost.fail:.0f} %, passed in {lost.passed:.0f} %")


def _cost(trials: int, seed: int) -> None:
    del seed
    print("\njudging large runs, one launch in each of two sessions")
    print(f"{'samples':>10}{'processor s':>13}{'clock s':>9}{'MB':>7}{'us / sample':>13}")
    for benches, points in ((2, 250), (20, 250), (200, 250))[: 3 if trials >= FULL else 2]:
        cost = judging_cost(benches, points)
        each = 1e6 * cost.processor_s / cost.samples
        print(f"{cost.samples:>10}{cost.processor_s:>13.1f}{cost.clock_s:>9.1f}{cost.megabytes:>7.0f}{each:>13.0f}")


def _head(title: str) -> None:
    print(f"\n{title}\n{HEADER}", flush=True)


def _row(name: str, effect: float, cell: Cell) -> None:
    print(
        f"{name:<24}{100 * effect:>6.0f}%{cell.passed:>8.1f}{cell.fail:>8.1f}{cell.raw_fail:>12.1f}"
        f"{cell.undecided:>8.1f}{cell.seconds:>9.0f}{cell.raw_seconds:>8.0f}{cell.pairs_wanted:>8.0f}",
        flush=True,
    )


PARTS = {
    "pairs": _pairs,
    "history": _history,
    "short": _short,
    "dips": _dips,
    "others": _others,
    "sessions": _sessions,
    "matrix": _matrix,
    "cost": _cost,
}

if __name__ == "__main__":
    main()
