# SPDX-License-Identifier: Apache-2.0
"""Find the scales in `statistics.comparison`: simulate the gate's own statistic on equal arms, print the table.

    python -m tests.error_rates.calibrate            # about ten minutes; prints what stands in LEVELS
    python -m tests.error_rates.calibrate --paths 100000

A path is a campaign without any effect that never stops. For each look its one-sided level is computed; a rule with
scale s errs on a path when some level falls below s * shape. So the scale for alpha is the alpha-quantile over paths
of the smallest level / shape. The noise cancels in Student's t, so one simulation serves every bench.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from scipy import special

from storqual.statistics.comparison import Rule, shape
from storqual.statistics.noise import pair_variance

ALPHAS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2)
SEED = 20261121
PAIRS = 400
SESSIONS = 40
CHUNK = 10_000
NEVER = 1e9
RULES: tuple[tuple[Rule, Rule], ...] = (("pass", "fail"), ("session_pass", "session_fail"))


def pair_levels(rng: np.random.Generator, paths: int, pairs: int) -> np.ndarray:
    """One-sided levels of the looks of `paths` campaigns of interleaved pairs."""
    baseline, candidate = rng.standard_normal((2, paths, pairs))
    d, p = candidate - baseline, candidate + baseline
    n = np.arange(1, pairs + 1)
    total = np.cumsum(d, axis=1)
    ss = np.cumsum(d * d, axis=1) - total * total / n
    steps = np.zeros((paths, pairs))
    steps[:, 1:] = np.diff(p, axis=1) ** 2 / 2
    variance, df = pair_variance(ss, np.cumsum(steps, axis=1), tuple(range(1, pairs + 1)))
    with np.errstate(invalid="ignore", divide="ignore"):
        t = total / np.sqrt(n * variance)
    levels = special.stdtr(df, -t)
    levels[:, 0] = 1.0
    return levels


def session_levels(rng: np.random.Generator, paths: int, sessions: int) -> np.ndarray:
    """One-sided levels of the looks of `paths` campaigns, each look after one more session in both arms."""
    values = rng.standard_normal((2, paths, sessions))
    j = np.arange(1, sessions + 1)
    means = np.cumsum(values, axis=2) / j
    ss = (np.cumsum(values**2, axis=2) - j * means**2).sum(axis=0)
    df = np.maximum(2 * j - 2, 1)
    levels = special.stdtr(df, -(means[1] - means[0]) / np.sqrt(np.maximum(ss, 1e-12) / df * 2 / j))
    levels[:, 0] = 1.0
    return levels


def smallest(rules: Sequence[Rule], paths: int, seed: int) -> dict[Rule, np.ndarray]:
    """The smallest level / shape of each path, for rules with the same unit."""
    rng = np.random.default_rng(seed)
    sessions = rules[0].startswith("session")
    looks = SESSIONS if sessions else PAIRS
    weights = {}
    for rule in rules:
        with np.errstate(divide="ignore"):
            weights[rule] = 1.0 / shape(rule, np.arange(1, looks + 1, dtype=float))
        weights[rule][0] = NEVER
    found: dict[Rule, list[np.ndarray]] = {rule: [] for rule in rules}
    for start in range(0, paths, CHUNK):
        size = min(CHUNK, paths - start)
        levels = (session_levels if sessions else pair_levels)(rng, size, looks)
        for rule in rules:
            found[rule].append((levels * weights[rule]).min(axis=1))
    return {rule: np.concatenate(parts) for rule, parts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    for rules in RULES:
        for rule, found in smallest(rules, options.paths, options.seed).items():
            entries = ", ".join(f"({alpha:g}, {np.quantile(found, alpha):.3g})" for alpha in ALPHAS)
            print(f'    "{rule}": ({entries}),', flush=True)


if __name__ == "__main__":
    main()
