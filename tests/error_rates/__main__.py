# SPDX-License-Identifier: Apache-2.0
"""`make benchmark`: error rates and bench seconds of the gate, from simulated benches with recorded seeds.

python -m tests.error_rates                        # 1,000 trials a cell, more than half an hour
python -m tests.error_rates --trials 200           # a first look; STORQUAL_BENCHMARK_TRIALS does the same
"""

import argparse
import os
import time
from dataclasses import replace

from storqual.plan.budget import FIRST_PAIRS
from tests.error_rates.large_run import judging_cost
from tests.error_rates.other_noise import OTHERS, OtherBench
from tests.error_rates.simulator import NOISES, Bench, QuietBench
from tests.error_rates.suspects import KINDS, run_suspects
from tests.error_rates.trials import EARLIER, POINTS, Cell, run_pairs, run_sessions

SEED = 4
EFFECTS = (0.0, -0.01, -0.02, -0.03, -0.05)
DESIGNS = ((2, 15), (3, 10), (4, 8), (6, 6), (8, 4), (12, 4))
SESSION_EFFECT = 0.01
QUIET = (0.001, 0.003, 0.01)
FULL = 1000
FEW = 3
"""Points of a small campaign: fewer than lend each other their noise."""
HEADER = (
    f"{'noise':<24}{'effect':>7}{'pass %':>8}{'FAIL %':>8}{'fail once %':>12}{'open %':>8}{'marginal %':>11}"
    f"{'bench s':>9}{'once s':>8}{'wanted':>8}"
)
VERSUS = f"{'noise':<11}{'effect':>7} |" + 2 * (
    f"{'pass %':>8}{'FAIL %':>8}{'open %':>8}{'marg. %':>8}{'bench s':>8} |"
)


def main() -> None:
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
    print("decided within the launches; marginal: passes that lost more than the indifference, by odds of 2 to 1;")
    print("wanted: median of further pairs (sessions per arm) that those that are open ask for.")
    for name, part in PARTS.items():
        if options.only in (None, name):
            part(options.trials, options.seed)
    print(f"\n{time.monotonic() - began:.0f} s of this machine")


def _pairs(trials: int, seed: int) -> None:
    """The gate in a lab's first campaign, and with the noise of an earlier one."""
    print(f"\ninterleaved pairs of 5 s, at most 48, campaigns of {POINTS} points; a launch costs 1.35 s more")
    heads = ("first campaign", f"after {EARLIER} earlier pairs")
    print(" " * 19 + "".join(f"| {head:<40}" for head in heads) + f"|\n{VERSUS}")
    quiet = [(f"quiet {100 * level:g} %", QuietBench(level=level)) for level in QUIET]
    for name, unchanged in [*quiet, *((noise.name, Bench(noise)) for noise in NOISES.values())]:
        for effect in EFFECTS:
            bench = replace(unchanged, effect=effect)
            cells = [
                run_pairs(bench, trials, seed, first=FIRST_PAIRS),
                run_pairs(bench, trials, seed, first=FIRST_PAIRS, with_history=True),
            ]
            told = "".join(
                f"{c.passed:>8.1f}{c.fail:>8.1f}{c.undecided:>8.1f}{c.marginal:>8.1f}{c.seconds:>8.0f} |"
                for c in cells
            )
            print(f"{name:<11}{100 * effect:>6.0f}% |{told}", flush=True)


def _few(trials: int, seed: int) -> None:
    """Too few points to know one another's noise: what an earlier campaign lends them."""
    _head(f"campaigns of {FEW} points: their own noise alone, and that of {EARLIER} earlier pairs of each point")
    for name in ("calm", "mixed"):
        for effect in (0.0, -0.03, -0.05):
            for lent in (False, True):
                cell = run_pairs(
                    Bench(NOISES[name], effect), trials, seed, with_history=lent, points=FEW, first=FIRST_PAIRS
                )
                _row(f"{name}, lent" if lent else name, effect, cell)


def _odd(trials: int, seed: int) -> None:
    print("\nthe third launch of the candidate loses 7 % as a whole at each unchanged point; launch noise 0.3 %")
    bench = QuietBench(level=0.003, odd=0.07)
    cell = run_pairs(bench, trials, seed, first=FIRST_PAIRS)
    print(f"  pass {cell.passed:.1f} %, FAIL {cell.fail:.1f} %, {cell.seconds:.0f} bench s", flush=True)


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


def _suspects(trials: int, seed: int) -> None:
    print(
        "\nsuspect launches: taken for evidence, and (now) no evidence and measured again; pairs of 5 s, at most 48"
    )
    heads = ("taken for evidence", "no evidence")
    print(
        " " * 65 + "".join(f"| {head:<40}" for head in heads) + f"|\n{'noise':<11}{'suspect':<47}{'effect':>7} |",
        end="",
    )
    print(2 * f"{'pass %':>8}{'FAIL %':>8}{'open %':>8}{'marg. %':>8}{'bench s':>8} |")
    benches = {"0.3 %": QuietBench(level=0.003), "calm": Bench(NOISES["calm"]), "mixed": Bench(NOISES["mixed"])}
    for name, unchanged in benches.items():
        for kind in KINDS:
            for effect in (0.0, -0.03, -0.05):
                cells = run_suspects(replace(unchanged, effect=effect), kind, trials, seed)
                told = "".join(
                    f"{c.passed:>8.1f}{c.fail:>8.1f}{c.undecided:>8.1f}{c.marginal:>8.1f}{c.seconds:>8.0f} |"
                    for c in cells
                )
                print(f"{name:<11}{kind.name:<47}{100 * effect:>6.0f}% |{told}", flush=True)


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
    cells = [run_pairs(Bench(NOISES["mixed"]), 200, seed + number, points=200) for number in range(count)]
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
        f"{cell.undecided:>8.1f}{cell.marginal:>11.1f}{cell.seconds:>9.0f}{cell.raw_seconds:>8.0f}{cell.pairs_wanted:>8.0f}",
        flush=True,
    )


PARTS = {
    "pairs": _pairs,
    "few": _few,
    "odd": _odd,
    "short": _short,
    "dips": _dips,
    "others": _others,
    "suspects": _suspects,
    "sessions": _sessions,
    "matrix": _matrix,
    "cost": _cost,
}

if __name__ == "__main__":
    main()
