# SPDX-License-Identifier: Apache-2.0
"""A comparison of two arms at one point: the levels of its looks, the decision, the estimate, what it still needs.

A gate looks at its data after each pair. A test at 5 % per look would err far more often than 5 %. Here look n is
made at the level `scale(alpha) * shape(n)`: the shape says how the error is spread over looks, the scale is what
makes the sum right. Both are spent against Student's t of the look, which does not depend on the size of the noise,
so the error holds for every bench. The scale was found by simulation of the very statistic that is used
(`python -m tests.error_rates.calibrate`, seed and paths recorded there) and stands in the tables below.

Shapes, chosen once by trials over calm to rough noise:

- `pass`: n^-0.3, with the first looks held back as (n/8)^1.5, because they know their own noise least; beyond 48
  pairs, the horizon of a usual budget, falling as n^-1.5, so that a campaign that goes on for ever still errs at most
  alpha.
- `fail`: (n/48)^0.3, with the first looks held back as (n/6)^1.5. Early looks fail only the glaring. A steeper rise,
  (n/48)^1.5, spares an unchanged candidate one fail in five hundred, which confirmation on fresh data catches anyway,
  and costs a candidate that lost 5 % a sixth more bench time.
- `session_pass`, `session_fail`: the same idea for boot sessions, which come by the handful: level up to 6 per arm.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.base.formulas import Better
from storqual.statistics.estimates import CI_SIDE
from storqual.statistics.launches import Odd

Rule = Literal["pass", "fail", "session_pass", "session_fail"]
Floats = NDArray[np.float64]

PAIR_HORIZON = 48
SESSION_HORIZON = 6
LARGEST_LEVEL = 0.4

LEVELS: Mapping[Rule, tuple[tuple[float, float], ...]] = {
    "pass": (
        (0.0001, 9.16e-06),
        (0.0005, 5.84e-05),
        (0.001, 0.00012),
        (0.005, 0.000755),
        (0.01, 0.00169),
        (0.025, 0.00509),
        (0.05, 0.0122),
        (0.1, 0.0304),
        (0.2, 0.0804),
    ),
    "fail": (
        (0.0001, 4.61e-06),
        (0.0005, 2.95e-05),
        (0.001, 6.3e-05),
        (0.005, 0.000392),
        (0.01, 0.000892),
        (0.025, 0.0027),
        (0.05, 0.00637),
        (0.1, 0.0158),
        (0.2, 0.0417),
    ),
    "session_pass": (
        (0.0001, 1.35e-05),
        (0.0005, 8.89e-05),
        (0.001, 0.000175),
        (0.005, 0.000945),
        (0.01, 0.00203),
        (0.025, 0.00578),
        (0.05, 0.0131),
        (0.1, 0.0306),
        (0.2, 0.0745),
    ),
    "session_fail": (
        (0.0001, 1.84e-05),
        (0.0005, 0.000129),
        (0.001, 0.00026),
        (0.005, 0.00145),
        (0.01, 0.00314),
        (0.025, 0.00892),
        (0.05, 0.0202),
        (0.1, 0.0472),
        (0.2, 0.114),
    ),
}
"""(alpha, scale) of each rule, from 1,000,000 paths of 400 pairs, or of 40 sessions per arm."""


def shape(rule: Rule, looks: Floats) -> Floats:
    """The share of each look: `looks` are numbers of pairs, or of sessions per arm. Look 1 has none: no variance."""
    n = np.asarray(looks, dtype=np.float64)
    horizon = SESSION_HORIZON if rule.startswith("session") else PAIR_HORIZON
    inside = np.minimum(n, horizon)
    tail = np.where(n > horizon, (horizon / n) ** (2.0 if rule.startswith("session") else 1.5), 1.0)
    if rule == "pass":
        share = np.minimum(1.0, (n / 8) ** 1.5) * inside**-0.3
    elif rule == "fail":
        share = np.minimum(1.0, (n / 6) ** 1.5) * (inside / horizon) ** 0.3
    elif rule == "session_pass":
        share = np.ones_like(n)
    else:
        share = (inside / horizon) ** 1.5
    return np.where(n < 2, 0.0, share * tail)


def scale(rule: Rule, alpha: float) -> float:
    """The factor of `shape` for an error of `alpha` over all looks; between table entries straight in logarithms."""
    alphas, scales = np.log(np.array(LEVELS[rule])).T
    return float(np.exp(_straight(float(np.log(alpha)), alphas, scales)))


def alpha_of(rule: Rule, level: float, look: float) -> float:
    """The error over all looks at which a look would have crossed the rule that reached this level."""
    share = float(shape(rule, np.array([look]))[0])
    smallest = level / share if share > 0 else 1.0
    alphas, scales = np.log(np.array(LEVELS[rule])).T
    return float(np.exp(min(0.0, _straight(float(np.log(max(smallest, 1e-300))), scales, alphas))))


def _straight(x: float, xs: Floats, ys: Floats) -> float:
    """Interpolate; beyond the ends of the table the nearest two entries go on."""
    first = int(np.clip(np.searchsorted(xs, x) - 1, 0, len(xs) - 2))
    slope = (ys[first + 1] - ys[first]) / (xs[first + 1] - xs[first])
    return float(ys[first] + slope * (x - xs[first]))


def nominal_levels(rule: Rule, alpha: float, looks: Floats) -> Floats:
    """The one-sided level of each look for an error of `alpha` over all of them."""
    return np.minimum(scale(rule, alpha) * shape(rule, looks), LARGEST_LEVEL)


Outcome = Literal["pass", "fail", "inconclusive"]
Unit = Literal["pair", "session"]
Looks = Literal["every", "last"]

FAIL_SHARE = 0.8
"""The share of alpha that the fail rule spends: a fail is measured again, so a false one costs twice its launches."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Logarithms of what the gate tests: `margin` and `indifference` are <= 0, losses are negative."""

    margin: float
    indifference: float
    alpha: float
    better: Better

    @property
    def sign(self) -> float:
        """What makes a log-ratio of the metric negative where it is worse."""
        return 1.0 if self.better == "higher" else -1.0


def limits_for(margin: float, indifference: float, alpha: float, better: Better) -> Limits:
    """Margin and indifference (fractions) as logarithms of losses. Raises ValueError when they make no sense."""
    if better not in ("higher", "lower"):
        raise ValueError(f"better is {better!r}, expected 'higher' or 'lower'")
    if not 0 <= indifference < margin < 1:
        raise ValueError(
            f"found indifference {indifference!r} and margin {margin!r}, expected 0 <= indifference < margin < 1"
        )
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha!r}, expected more than 0 and less than 0.5")
    if better == "higher":
        return Limits(math.log1p(-margin), math.log1p(-indifference), alpha, "higher")
    return Limits(-math.log1p(margin), -math.log1p(indifference), alpha, "lower")


def as_fraction(log_ratio: float, better: Better) -> float:
    """A log-ratio as a change of the baseline; a latency that rises by 5 % is -0.05."""
    if math.isnan(log_ratio):
        return math.nan
    if better == "higher":
        return math.expm1(min(log_ratio, 700.0)) if log_ratio < np.inf else math.inf
    return -math.expm1(min(-log_ratio, 700.0)) if log_ratio > -np.inf else -math.inf


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """One point's test at its last look: log-ratios, and the same as fractions of the baseline; negative = worse.

    `log_low` and `log_high` hold over all looks together (95 %). `log_bound` is the one-sided lower bound at the
    pass level, the one that a pass rests on. `log_detectable` is the loss that these launches find with power 0.8.
    `lost` says that a loss of more than the indifference is shown, also where the outcome is a pass. `loss_p` is the
    smallest alpha at which these data would have failed: what corrections for many points work on. `units` is how
    many pairs (or sessions per arm) the estimate uses, `further_units` how many more a decision will take at this
    noise and shift (0 when decided), `sd` the standard deviation of one unit (a pair's log-ratio, a session's mean),
    `df` its degrees of freedom. `missing` says in words what keeps the test from deciding, `odd` which launch was
    left out with its partner.
    """

    outcome: Outcome
    better: Better
    unit: Unit
    log_shift: float
    log_low: float
    log_high: float
    log_bound: float
    log_detectable: float
    further_units: int
    loss_p: float
    units: int
    sd: float
    df: float
    robust: bool
    lost: bool = False
    missing: str = ""
    odd: Odd | None = None

    @property
    def shift(self) -> float:
        return as_fraction(self.log_shift, self.better)

    @property
    def ci95(self) -> tuple[float, float]:
        return as_fraction(self.log_low, self.better), as_fraction(self.log_high, self.better)

    @property
    def bound(self) -> float:
        """The change that a pass excludes is below this one."""
        return as_fraction(self.log_bound, self.better)

    @property
    def detectable(self) -> float:
        """The size of the loss that would be found: positive."""
        return -as_fraction(self.log_detectable, self.better)

    @property
    def error(self) -> float:
        return self.sd * math.sqrt((2.0 if self.unit == "session" else 1.0) / max(self.units, 1))


@dataclass(frozen=True, slots=True)
class Spent:
    """One-sided levels of each look: of the pass rule, the fail rule, and one side of the interval."""

    to_pass: Floats
    to_fail: Floats
    aside: Floats

    def quantiles(self, df: Floats) -> tuple[Floats, Floats, Floats]:
        """How many standard errors each bound lies from the estimate; infinite where nothing is known."""
        return _quantile(self.to_pass, df), _quantile(self.to_fail, df), _quantile(self.aside, df)


def spend(unit: Unit, looks: Looks, alpha: float, at: Floats, share: float = 1.0) -> Spent:
    """The levels of looks made after `at` pairs or sessions; a single look at the end gets all of it.

    `share` is the part of all errors that these looks may spend.
    """
    total_levels = (alpha * share, FAIL_SHARE * alpha * share, CI_SIDE * share)
    if looks == "last":
        levels = [np.full(at.shape, min(level, LARGEST_LEVEL)) for level in total_levels]
        return Spent(*levels)
    passing: Rule = "pass" if unit == "pair" else "session_pass"
    failing: Rule = "fail" if unit == "pair" else "session_fail"
    rules = (passing, failing, passing)
    return Spent(*(nominal_levels(rule, level, at) for rule, level in zip(rules, total_levels, strict=True)))


def loss_probability(unit: Unit, looks: Looks, level: float, at: float) -> float:
    """The smallest alpha at which the fail rule is crossed by a look after `at` units that reaches `level`."""
    if looks == "last":
        return min(1.0, level / FAIL_SHARE)
    failing: Rule = "fail" if unit == "pair" else "session_fail"
    return min(1.0, alpha_of(failing, level, at) / FAIL_SHARE)


def _quantile(level: Floats, df: Floats) -> Floats:
    level = np.broadcast_to(level, df.shape)
    defined = (df > 0) & (level > 0)
    # stdtrit is the quantile of Student's t
    quantile = -special.stdtrit(np.where(defined, df, 1.0), np.where(defined, level, 0.25))
    quantiles: Floats = np.where(defined, quantile, np.inf)
    return quantiles


def nothing(
    unit: Unit, reason: str, better: Better, shift: float = np.nan, units: int = 0, further_units: int = 3
) -> ArmComparison:
    """A test that cannot decide because there is no measure of noise; `shift` is the estimate if there is one."""
    return ArmComparison(
        outcome="inconclusive",
        better=better,
        unit=unit,
        log_shift=shift,
        log_low=-np.inf,
        log_high=np.inf,
        log_bound=-np.inf,
        log_detectable=-np.inf,
        further_units=further_units,
        loss_p=1.0,
        units=units,
        sd=np.nan,
        df=0.0,
        robust=False,
        missing=reason,
    )


POWER = 0.8
MOST_FURTHER = 100_000
FEWEST_FURTHER = 3
NEAREST = 0.25
"""Standard errors that a limit is held to be away at least: a shift right on a limit would never be decided."""


def further_units(n: int, shift: float, sd: float, df: float, limits: Limits, unit: Unit, *, growth: float) -> int:
    """How many more pairs (sessions per arm) until `shift` is decided at noise `sd`; at least 1.

    Each unit brings `growth` degrees of freedom.
    """
    if df <= 0:
        return FEWEST_FURTHER
    per_unit = 1.0 if unit == "pair" else 2.0
    error = sd * np.sqrt(per_unit / n)
    far = np.ceil(n + 20.0 * np.geomspace(1.0, MOST_FURTHER / 20, 60))
    ahead = np.concatenate((n + np.arange(1.0, 20.0), far))
    later_df = df + growth * (ahead - n)
    later_error = sd * np.sqrt(per_unit / ahead)
    rules: tuple[Rule, Rule] = ("pass", "fail") if unit == "pair" else ("session_pass", "session_fail")
    best = MOST_FURTHER
    for rule, alpha, distance in (
        (rules[0], limits.alpha, shift - limits.margin),
        (rules[1], FAIL_SHARE * limits.alpha, limits.indifference - shift),
    ):
        reach = -special.stdtrit(later_df, nominal_levels(rule, alpha, ahead)) * later_error
        reached = np.flatnonzero(reach < max(distance, NEAREST * error))
        if reached.size:
            best = min(best, int(ahead[reached[0]]) - n)
    return max(best, 1)


def last_look(
    unit: Unit,
    limits: Limits,
    *,
    shift: float,
    sd: float,
    df: float,
    error: float,
    reach: tuple[float, float, float],
    crossed: tuple[bool, bool],
    units: int,
    growth: float,
    loss_p: float,
    robust: bool,
    odd: Odd | None = None,
) -> ArmComparison:
    """The comparison that a look gives: `reach` of the pass rule, the fail rule and the interval, in logarithms.

    `crossed` says whether the pass rule and the fail rule were, `growth` how many degrees of freedom a unit brings.
    """
    to_pass, to_fail, aside = reach
    passed, failed = crossed
    outcome: Outcome = "pass" if passed else "fail" if failed else "inconclusive"
    power = float(special.stdtrit(df, POWER)) if df > 0 else math.inf
    return ArmComparison(
        outcome=outcome,
        better=limits.better,
        unit=unit,
        log_shift=shift,
        log_low=shift - aside,
        log_high=shift + aside,
        log_bound=shift - to_pass,
        log_detectable=limits.indifference - to_fail - power * error,
        further_units=0 if passed or failed else further_units(units, shift, sd, df, limits, unit, growth=growth),
        loss_p=loss_p,
        units=units,
        sd=sd,
        df=df,
        robust=robust,
        lost=failed,
        odd=odd,
    )
