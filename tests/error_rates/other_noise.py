# SPDX-License-Identifier: Apache-2.0
"""Benches whose noise is of other kinds than the gate was designed on, to see whether its error rates hold there.

All of it is drawn along the wall clock of both arms, A B B A ..., so that what is slow is shared by neighbours:

- `wandering`: seconds correlated at 0.95 across launches (one process that nothing restarts), CV 3 %, and a random
  walk of 0.2 % per launch;
- `heavy tails`: seconds and launch levels from Student's t with 3 degrees of freedom, CV 3 % and 0.7 %;
- `outlying launches`: lognormal seconds, CV 3 %; 4 % of launches lose 5 to 25 % as a whole;
- `two levels`: each launch is in one of two states 2 % apart, by a coin; seconds CV 2 %;
- `garbage collection`: a stall of 2 s, 30 % deep, every 17 to 23 s of the clock; seconds CV 2 %.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.error_rates.simulator import LAUNCH_COST, LEVEL, NOISES, Bench, Noise

Draw = Callable[[tuple[int, int, int], np.random.Generator], np.ndarray]
"""Relative seconds of all launches of both arms in wall-clock order; axes (trial, launch, second)."""


@dataclass(frozen=True)
class OtherBench(Bench):
    """A bench with such a noise, by name; the fields of `Bench` that speak of its own noise mean nothing here."""

    noise: Noise = NOISES["calm"]
    other: str = "wandering"

    def simulate(self, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of both arms; axes (trial, launch, second)."""
        values = LEVEL * np.maximum(OTHERS[self.other]((trials, 2 * self.pairs, self.seconds), rng), 0.01)
        number = np.arange(self.pairs)
        first, second = values[:, 2 * number], values[:, 2 * number + 1]
        even = (number % 2 == 0)[None, :, None]
        return np.where(even, first, second), np.where(even, second, first) * (1.0 + self.effect)


def _wandering(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    trials, launches, seconds = shape
    correlation = 0.95
    noise = rng.standard_normal((trials, launches * seconds)) * np.sqrt(1.0 - correlation**2)
    state = rng.standard_normal(trials)
    for second in range(launches * seconds):
        state = correlation * state + noise[:, second]
        noise[:, second] = state
    walk = np.cumsum(0.002 * rng.standard_normal((trials, launches, 1)), axis=1)
    return np.exp(0.03 * noise.reshape(shape) + walk)


def _heavy_tails(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    unit = np.sqrt(3.0)
    launches = 0.007 * rng.standard_t(3, (*shape[:2], 1)) / unit
    return 1.0 + 0.03 * rng.standard_t(3, shape) / unit + launches


def _outlying(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    hurt = rng.random((*shape[:2], 1)) < 0.04
    return np.exp(0.03 * rng.standard_normal(shape)) * np.where(hurt, 1.0 - rng.uniform(0.05, 0.25, hurt.shape), 1.0)


def _two_levels(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    return 1.0 + 0.02 * rng.standard_normal(shape) + 0.02 * rng.integers(0, 2, (*shape[:2], 1))


def _collecting(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    trials, launches, seconds = shape
    clock = np.arange(launches)[:, None] * (seconds + LAUNCH_COST) + np.arange(seconds)
    period = rng.uniform(17.0, 23.0, (trials, 1, 1))
    stalled = np.mod(clock[None] + rng.uniform(0.0, 23.0, (trials, 1, 1)), period) < 2.0
    return (1.0 + 0.02 * rng.standard_normal(shape)) * np.where(stalled, 0.7, 1.0)


OTHERS: dict[str, Draw] = {
    "wandering": _wandering,
    "heavy tails": _heavy_tails,
    "outlying launches": _outlying,
    "two levels": _two_levels,
    "garbage collection": _collecting,
}
