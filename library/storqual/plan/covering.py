# SPDX-License-Identifier: Apache-2.0
"""A covering design: rows of levels in which every pair, or every triple, of levels of different factors occurs.

Rows are made greedily: each begins with a combination that none has yet, and each further factor gets the level with
which most new combinations come in; the best of some drawn rows is taken. So the first rows cover most, and a load
that ends early has still covered most of it. Seeded: the same seed makes the same rows.
"""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product

_TRIES = {2: 4, 3: 1}
Combination = tuple[tuple[int, int], ...]
"""Factors by their index, each with the index of its level."""


def combinations_of(levels: Sequence[Sequence[str]], strength: int) -> set[Combination]:
    """Every combination of levels of so many factors."""
    return {
        tuple(zip(factors, chosen, strict=True))
        for factors in combinations(range(len(levels)), strength)
        for chosen in product(*(range(len(levels[factor])) for factor in factors))
    }


def covering(factors: Mapping[str, Sequence[str]], strength: int, seed: int) -> list[tuple[str, ...]]:
    """The rows, each with a level of every factor in the order of the mapping."""
    return list(_rows(tuple(map(tuple, factors.values())), min(strength, len(factors)), seed))


@lru_cache(maxsize=64)
def _rows(levels: Sequence[Sequence[str]], strength: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """Kept, because both arms of a trial and the parts of one design ask for the same: a plan has hundreds."""
    draw = random.Random(f"{seed}/covering")  # noqa: S311 - a drawn plan, no secret
    open_ones = combinations_of(levels, strength)
    order = sorted(open_ones)
    draw.shuffle(order)
    rows: list[tuple[int, ...]] = []
    for begin in order:
        if begin not in open_ones:
            continue
        best: tuple[int, ...] = ()
        most: set[Combination] = set()
        for _ in range(_TRIES[strength]):
            row = _row(levels, begin, open_ones, strength, draw)
            new = _combinations_in(row, strength) & open_ones
            if len(new) > len(most):
                best, most = row, new
        rows.append(best)
        open_ones -= most
    return tuple(tuple(levels[factor][level] for factor, level in enumerate(row)) for row in rows)


def _row(
    levels: Sequence[Sequence[str]],
    begin: Combination,
    open_ones: set[Combination],
    strength: int,
    draw: random.Random,
) -> tuple[int, ...]:
    chosen = dict(begin)
    others = [factor for factor in range(len(levels)) if factor not in chosen]
    draw.shuffle(others)
    for factor in others:
        known = sorted(chosen.items())
        partners = list(combinations(known, strength - 1))
        best, most = [0], -1
        for level in range(len(levels[factor])):
            count = sum(tuple(sorted((*partner, (factor, level)))) in open_ones for partner in partners)
            if count >= most:
                best, most = ([*best, level] if count == most else [level]), count
        chosen[factor] = draw.choice(best)
    return tuple(chosen[factor] for factor in range(len(levels)))


def _combinations_in(row: Sequence[int], strength: int) -> set[Combination]:
    return set(combinations(enumerate(row), strength))
