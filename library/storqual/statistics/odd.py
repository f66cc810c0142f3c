# SPDX-License-Identifier: Apache-2.0
"""One odd launch among the others of a point: a stall that took a launch as a whole.

A pair whose log-ratio differs from the other pairs by more than their noise explains (an externally studentised
residual, Bonferroni over the pairs) is left out, one at most: two are not odd, they are what the bench does. What is
left out must not turn a verdict, so a pass and a fail still need the plain mean of all launches on their side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

FEWEST_PAIRS = 4
"""Pairs from which one can be called odd: three others must agree."""
_LEVEL = 0.01
"""How often a point without any odd launch has one found."""


@dataclass(frozen=True, slots=True)
class Odd:
    """The launch that was left out with its partner: its arm and its place among the launches of its arm, from 0."""

    candidate: bool
    number: int


def odd_pairs(ratios: Floats, known: Floats, known_df: Floats, floor: float) -> NDArray[np.intp]:
    """The one odd pair of each point, -1 where there is none or more than one; `ratios` has axes (point, pair).

    `known` is the variance of a pair's log-ratio as history and other points know it, with its degrees of freedom.
    """
    points, count = ratios.shape
    if count < FEWEST_PAIRS:
        return np.full(points, -1)
    place, odd = _farthest(ratios, known, known_df, floor)
    for point in np.flatnonzero(odd).tolist():
        rest = np.delete(ratios[point], place[point])[None]
        odd[point] = not _farthest(rest, known[point : point + 1], known_df[point : point + 1], floor)[1][0]
    return np.where(odd, place, -1)


def _farthest(
    ratios: Floats, known: Floats, known_df: Floats, floor: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The pair that is farthest from the others of its point, and whether their noise does not explain that."""
    count = ratios.shape[1]
    others = (ratios.sum(axis=1, keepdims=True) - ratios) / (count - 1)
    squares = ((ratios - ratios.mean(axis=1, keepdims=True)) ** 2).sum(axis=1, keepdims=True)
    # what a sum of squares is without one of its terms
    left = np.maximum(squares - (ratios - others) ** 2 * (count - 1) / count, 0.0)
    df = count - 2 + known_df[:, None]
    variance = np.maximum((left + known_df[:, None] * known[:, None]) / df, floor)
    t = np.abs(ratios - others) / np.sqrt(variance * count / (count - 1))
    chance = 2.0 * count * special.stdtr(df[:, 0], -t.max(axis=1))
    return t.argmax(axis=1), chance < _LEVEL


def odd_pair(before: Floats, after: Floats, place: int) -> Odd:
    """Which launch of the odd pair it was: the one farther from the middle of its arm (logarithms of levels)."""
    far = [abs(float(arm[place] - np.median(np.delete(arm, place)))) for arm in (before, after)]
    return Odd(far[1] >= far[0], place)
