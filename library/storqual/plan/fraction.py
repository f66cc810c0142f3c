# SPDX-License-Identifier: Apache-2.0
"""A balanced fraction of the matrix: few points, every level seen, pairs of levels covered as far as they go."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.plan.points import Point


@dataclass(frozen=True)
class Placed:
    """A point on an adapter. `answers` are the criteria that are judged there."""

    adapter: str
    point: Point
    answers: tuple[int, ...] = ()

    @property
    def levels(self) -> tuple[tuple[str, Any], ...]:
        return (("adapter", self.adapter), *self.point.levels)


_TRIES = 8
_SMALL = 4000


def balanced_fraction(candidates: Sequence[Placed], count: int, seed: str) -> list[Placed]:
    """At most `count` of the candidates; equal arguments give an equal choice, whatever the order of the candidates.

    Greedy from several starts (one where the matrix is large): the choice that covers most pairs of levels, then the
    one that uses the levels most evenly.
    """
    pool = sorted(candidates, key=lambda placed: (placed.adapter, placed.point.name))
    tries = _TRIES if len(pool) * count <= _SMALL else 1
    return max((_greedy(pool, count, f"{seed}/{number}") for number in range(tries)), key=_merit)


def _merit(chosen: Sequence[Placed]) -> tuple[int, int, int]:
    """How good a choice is: levels on adapters, pairs of levels, evenness."""
    on_adapters = {item for placed in chosen for item in _on_adapter(placed)}
    pairs = {item for placed in chosen for item in _pairs(placed)}
    used = Counter(item for placed in chosen for item in _singles(placed))
    return (len(on_adapters), len(pairs), -sum(uses * uses for uses in used.values()))


def _greedy(candidates: Sequence[Placed], count: int, seed: str) -> list[Placed]:
    """One choice: the next point is the one that shows most levels, workloads and criteria not seen yet.

    Then most levels new to their adapter; then most pairs of levels new anywhere; then the levels used least.
    """
    pool = list(candidates)
    random.Random(seed).shuffle(pool)  # noqa: S311 - an order, not a secret
    features = [(tuple(_singles(placed)), tuple(_on_adapter(placed)), tuple(_pairs(placed))) for placed in pool]
    seen: set[Hashable] = set()
    used: Counter[Hashable] = Counter()
    chosen: list[int] = []
    left = set(range(len(pool)))

    def gain(index: int) -> tuple[int, ...]:
        singles, own, pairs = features[index]
        return (
            sum(item not in seen for item in singles),
            sum(item not in seen for item in own),
            sum(item not in seen for item in pairs),
            -sum(used[item] for item in (*singles, *own)),
            -index,
        )

    while left and len(chosen) < count:
        best = max(left, key=gain)
        left.discard(best)
        chosen.append(best)
        for items in features[best]:
            seen.update(items)
            used.update(items)
    return [pool[index] for index in chosen]


def unseen_levels(candidates: Sequence[Placed], chosen: Sequence[Placed]) -> list[tuple[str, Any]]:
    """Levels (workloads, adapters and criteria included) that the candidates have and the choice does not."""
    have = {item for placed in chosen for item in _singles(placed)}
    missing = {item for placed in candidates for item in _singles(placed)} - have
    return sorted(missing, key=str)


def _singles(placed: Placed) -> Iterator[tuple[str, Any]]:
    yield from placed.levels
    for criterion in placed.answers:
        yield ("criterion", criterion)


def _on_adapter(placed: Placed) -> Iterator[Hashable]:
    for level in placed.point.levels:
        yield (placed.adapter, level)


def _pairs(placed: Placed) -> Iterator[Hashable]:
    return itertools.combinations(placed.point.levels, 2)
