# SPDX-License-Identifier: Apache-2.0
"""Shewhart's individuals chart: whether a bench measures today what it always measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

FEWEST = 5
"""Values below which limits would be a guess: four moving ranges know their own middle to within a factor of two."""

_WIDTH = 3.145
"""Three sigma over the median moving range: 3 / d4 with d4 = 0.954 for two values (Wheeler and Chambers,
Understanding Statistical Process Control, table A.1). The median, because one bad campaign must not widen the limits
that it is beyond."""

_ONE_SIDE = 8
"""So many values in a row on one side of the centre are a shift (Western Electric, rule 4)."""


@dataclass(frozen=True)
class Control:
    """Centre, limits (None with too few values), and for each value its signal: `beyond`, `shift` or empty."""

    centre: float
    limits: tuple[float, float] | None
    signals: tuple[str, ...]


def individuals(values: Sequence[float]) -> Control:
    """The chart of `values` in the order of time, about their median.

    Raises ValueError for none, or for one that is not finite.
    """
    array = np.asarray(values, dtype=float)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError("a control chart needs finite values, at least one")
    centre = float(np.median(array))
    if array.size < FEWEST:
        return Control(centre, None, ("",) * array.size)
    reach = _WIDTH * float(np.median([abs(second - first) for first, second in pairwise(array)]))
    limits = (centre - reach, centre + reach)
    signals = []
    side = run = 0
    for value in array:
        now = int(np.sign(value - centre))
        run = run + 1 if now == side and now != 0 else 1
        side = now
        beyond = value < limits[0] or value > limits[1]
        signals.append("beyond" if beyond else "shift" if run >= _ONE_SIDE else "")
    return Control(centre, limits, tuple(signals))
