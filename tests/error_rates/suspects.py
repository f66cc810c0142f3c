# SPDX-License-Identifier: Apache-2.0
"""Suspect launches: what becomes of error rates and bench seconds when they are no evidence and are measured again.

Pairs with a suspect launch are left out and measured again, until the clean ones decide or as many as planned are
clean; a pass that all launches together would make a fail decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from storqual.plan.budget import FIRST_PAIRS
from storqual.statistics.noise import Prior
from storqual.statistics.pairs import crossings, estimate, pair_levels
from tests.error_rates.simulator import LAUNCH_COST, Bench
from tests.error_rates.trials import LENT, LIMITS, POINTS, Cell, Outcomes, cell_of, gate


@dataclass(frozen=True)
class Suspects:
    """How launches become suspect: `share` of each arm (baseline, candidate), and what a suspect one loses by it."""

    name: str
    share: tuple[float, float]
    loss: float = 0.0


_TIMES = 3

KINDS = (
    Suspects("none", (0.0, 0.0)),
    Suspects("10 % of both arms, at random", (0.1, 0.1)),
    Suspects("25 % of both arms, at random", (0.25, 0.25)),
    Suspects("25 % of both arms, which lose 10 %", (0.25, 0.25), 0.1),
    Suspects("25 % of the candidate alone", (0.0, 0.25)),
    Suspects("25 % of the candidate alone, which lose 10 %", (0.0, 0.25), 0.1),
    Suspects("25 % of the candidate alone, which gain 10 %", (0.0, 0.25), -0.1),
)


def run_suspects(bench: Bench, kind: Suspects, trials: int, seed: int) -> tuple[Cell, Cell]:
    """A rule that takes suspect launches for evidence, and the gate's, on benches of the same seed."""
    known: list[Prior | None] = [None] * trials
    # as many as it takes: a campaign has at most twice as many as without suspects
    longer = replace(bench, pairs=_TIMES * bench.pairs)
    cells = []
    for rule in (_believing, _cleaning):
        rng = np.random.default_rng(seed)
        once = rule(longer, kind, trials, rng, known, POINTS)
        failed = np.flatnonzero(once.outcome == "fail")
        lent: list[Prior | None] = [Prior(float(once.sd[i]) ** 2, LENT * float(once.df[i])) for i in failed]
        again = rule(longer, kind, len(failed), rng, lent, 1) if failed.size else Outcomes.none(0, 0)
        cells.append(cell_of(once, again, 2 * (bench.seconds + LAUNCH_COST)))
    return cells[0], cells[1]


def _launches(
    bench: Bench, kind: Suspects, trials: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds of both arms, and which pairs (trial, pair) have a suspect launch."""
    arms = bench.simulate(trials, rng)
    suspect = [rng.random((trials, bench.pairs)) < share for share in kind.share]
    made = [
        arm * np.where(doubtful, 1.0 - kind.loss, 1.0)[:, :, None]
        for arm, doubtful in zip(arms, suspect, strict=True)
    ]
    return made[0], made[1], suspect[0] | suspect[1]


def _believing(
    bench: Bench, kind: Suspects, trials: int, rng: np.random.Generator, known: Sequence[Prior | None], points: int
) -> Outcomes:
    """All launches are evidence, up to as many pairs as planned."""
    before, after, _ = _launches(bench, kind, trials, rng)
    most = bench.pairs // _TIMES
    return gate(before[:, :most], after[:, :most], known, points, FIRST_PAIRS)


def _cleaning(
    bench: Bench, kind: Suspects, trials: int, rng: np.random.Generator, known: Sequence[Prior | None], points: int
) -> Outcomes:
    """Clean pairs are evidence; suspect ones cost their time, and may only take a pass away."""
    before, after, suspect = _launches(bench, kind, trials, rng)
    most = bench.pairs // _TIMES
    # each trial's clean pairs first, in their order
    order = np.argsort(suspect, axis=1, kind="stable")
    count = min(most, int((~suspect).sum(axis=1).min()))
    chosen = order[:, :count, None]
    found = gate(
        np.take_along_axis(before, chosen, 1), np.take_along_axis(after, chosen, 1), known, points, FIRST_PAIRS
    )
    # how many pairs were launched until that many clean ones were there
    used = np.take_along_axis(order, found.units[:, None] - 1, 1)[:, 0] + 1
    found.units[:] = used
    for trial in np.flatnonzero((found.outcome == "pass") & (suspect.sum(axis=1) > 0)):
        launched = int(used[trial])
        if not suspect[trial, :launched].any():
            continue
        levels = pair_levels(before[trial : trial + 1, :launched], after[trial : trial + 1, :launched])
        crossed = crossings(estimate([levels], [known[trial]]), [LIMITS])
        if crossed.failed[0]:
            found.outcome[trial] = "inconclusive"
    return found
