# SPDX-License-Identifier: Apache-2.0
"""At which one-sided level each look of a sequential test is made, so that all looks together err at most `alpha`.

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

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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


def _straight(wanted: float, xs: Floats, ys: Floats) -> float:
    """Interpolate; beyond the ends of the table the nearest two entries go on."""
    first = int(np.clip(np.searchsorted(xs, wanted) - 1, 0, len(xs) - 2))
    slope = (ys[first + 1] - ys[first]) / (xs[first + 1] - xs[first])
    return float(ys[first] + slope * (wanted - xs[first]))


def nominal_levels(rule: Rule, alpha: float, looks: Floats) -> Floats:
    """The one-sided level of each look for an error of `alpha` over all of them."""
    return np.minimum(scale(rule, alpha) * shape(rule, looks), LARGEST_LEVEL)
