# SPDX-License-Identifier: Apache-2.0
"""Simulated benches: per-second IOPS of launches with the kinds of noise that drives and benches have.

AR(1) seconds, dips like garbage collection (1 % of seconds begin one, 10 to 30 % deep, 1 to 3 s long), a level
effect per launch, a slow drift that both arms share, a start-up transient of which the ramp is cut, and, where an arm
has its own boots, a level effect per session. All is drawn from one generator: a seed gives the same benches again.
"""

from dataclasses import dataclass

import numpy as np

from storqual.plan.budget import FIRST_PAIRS

__all__ = ["NOISES", "Bench", "Noise", "QuietBench", "SettlingBench", "simulate"]

LEVEL = 1000.0
DIP_RATE = 0.01
DIP_DEPTHS = (0.1, 0.3)
DIP_SECONDS = (1, 3)
LAUNCH_EFFECT = 0.005
DRIFT_PER_SECOND = 0.005 / 600.0
TRANSIENT = 0.10
TRANSIENT_TAU = 0.7
RAMP_SECONDS = 1.0
LAUNCH_COST = 1.35
"""Seconds per launch beyond those measured: one of ramp, 0.35 of start and stop."""


@dataclass(frozen=True)
class Noise:
    """Ranges of the coefficient of variation of seconds and of their lag-1 correlation; drawn anew for each bench."""

    name: str
    variation: tuple[float, float]
    correlation: tuple[float, float]


NOISES = {
    noise.name: noise
    for noise in (
        Noise("calm", (0.02, 0.02), (0.5, 0.5)),
        Noise("middle", (0.035, 0.035), (0.65, 0.65)),
        Noise("mixed", (0.02, 0.05), (0.5, 0.8)),
        Noise("rough", (0.05, 0.05), (0.8, 0.8)),
    )
}


@dataclass(frozen=True)
class Bench:
    """What is simulated: a noise, the candidate's true change, how launches are laid out."""

    noise: Noise
    effect: float = 0.0
    pairs: int = 48
    seconds: int = 5
    sessions: int = 0
    """Sessions per arm, A B B A ...; 0: arms interleaved launch by launch. `pairs` is then launches per session."""
    session_effect: float = 0.0
    dips: float = 1.0
    """Factor of the candidate's dips."""

    @property
    def launches(self) -> int:
        return self.pairs * max(self.sessions, 1)

    def simulate(self, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of both arms; axes (trial, launch, second)."""
        return simulate(self, trials, rng)


@dataclass(frozen=True)
class QuietBench(Bench):
    """A bench without dips and drift: launches that repeat within `level`."""

    noise: Noise = NOISES["calm"]
    level: float = 0.003
    odd: float = 0.0
    """What the third launch of the candidate loses as a whole."""

    def simulate(self, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of both arms; axes (trial, launch, second)."""
        shape = (2, trials, self.pairs, self.seconds)
        # so that the mean of a launch varies by `level`: a part of it as a whole, a part by its seconds
        values = 1.0 + 0.8 * self.level * rng.standard_normal((*shape[:3], 1))
        values = LEVEL * values * (1.0 + 0.6 * self.level * np.sqrt(self.seconds) * rng.standard_normal(shape))
        values[1, :, 2] *= 1.0 - self.odd
        return values[0], values[1] * (1.0 + self.effect)


@dataclass(frozen=True)
class SettlingBench(Bench):
    """A driver that starts `transient` too fast, for two seconds beyond the ramp, at every launch.

    `longer`: launches after the first look have a ramp that cuts it, those before keep it.
    """

    transient: float = 0.3
    longer: bool = False

    def simulate(self, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of both arms; axes (trial, launch, second)."""
        arms = simulate(self, trials, rng)
        for arm in arms:
            arm[:, : FIRST_PAIRS if self.longer else None, :2] *= 1.0 + self.transient
        return arms


def simulate(bench: Bench, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of both arms; axes (trial, launch, second)."""
    shape = (trials, bench.launches, bench.seconds)
    variation = rng.uniform(*bench.noise.variation, trials)[:, None, None]
    correlation = rng.uniform(*bench.noise.correlation, trials)[:, None]
    slope = rng.choice((-DRIFT_PER_SECOND, DRIFT_PER_SECOND), trials)[:, None, None]
    arms = []
    for arm in range(2):
        values = 1.0 + variation * _autoregressive(shape, correlation, rng)
        values *= _dips(shape, DIP_RATE * (bench.dips if arm else 1.0), rng)
        values *= 1.0 + LAUNCH_EFFECT * rng.standard_normal((*shape[:2], 1))
        transient = rng.uniform(-TRANSIENT, TRANSIENT, (*shape[:2], 1))
        values *= 1.0 + transient * np.exp(-(RAMP_SECONDS + np.arange(bench.seconds)) / TRANSIENT_TAU)
        start = _places(bench, arm) * (bench.seconds + LAUNCH_COST)
        values *= 1.0 + slope * (start[None, :, None] + np.arange(bench.seconds))
        if bench.sessions and bench.session_effect:
            boots = 1.0 + bench.session_effect * rng.standard_normal((trials, bench.sessions))
            values *= np.repeat(boots, bench.pairs, axis=1)[:, :, None]
        arms.append(LEVEL * np.maximum(values, 0.01))
    return arms[0], arms[1] * (1.0 + bench.effect)


def _autoregressive(shape: tuple[int, int, int], correlation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Standard normal seconds with a lag-1 correlation; each launch starts afresh."""
    values = rng.standard_normal(shape)
    fresh = np.sqrt(1.0 - correlation**2)
    for second in range(1, shape[2]):
        values[:, :, second] = correlation * values[:, :, second - 1] + fresh * values[:, :, second]
    return values


def _dips(shape: tuple[int, int, int], rate: float, rng: np.random.Generator) -> np.ndarray:
    """Factors of seconds; a dip may have begun before the launch."""
    longest = DIP_SECONDS[1]
    wide = (shape[0], shape[1], shape[2] + longest - 1)
    begins = rng.random(wide) < rate
    depth = rng.uniform(*DIP_DEPTHS, wide)
    length = rng.integers(DIP_SECONDS[0], longest + 1, wide)
    factors = np.ones(wide)
    for late in range(longest):
        held = begins & (length > late)
        kept = np.where(held, 1.0 - depth, 1.0)
        shifted = np.ones(wide)
        shifted[:, :, late:] = kept[:, :, : wide[2] - late]
        factors = np.minimum(factors, shifted)
    return factors[:, :, longest - 1 :]


def _places(bench: Bench, arm: int) -> np.ndarray:
    """When each launch of an arm comes, as a number in the order A B B A."""
    if bench.sessions:
        number = np.arange(bench.sessions)
        session = 2 * number + np.where(number % 2 == 0, arm, 1 - arm)
        return (session[:, None] * bench.pairs + np.arange(bench.pairs)).ravel().astype(float)
    number = np.arange(bench.pairs)
    return (2 * number + np.where(number % 2 == 0, arm, 1 - arm)).astype(float)
