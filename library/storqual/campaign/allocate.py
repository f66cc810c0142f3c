# SPDX-License-Identifier: Apache-2.0
"""Which points get the next pairs: those whose decision is nearest, as far as time goes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["SHORTEST_BLOCK_S", "Want", "allocate", "funded"]

Key = TypeVar("Key", bound=Hashable)

SHORTEST_BLOCK_S = 30.0
"""Asking what to do next costs a bench some seconds: a block shorter than this is not worth asking for."""


@dataclass(frozen=True)
class Want(Generic[Key]):
    """A point that is not decided: about `units` more pairs will decide it, and it may have `left` more."""

    key: Key
    units: int
    left: int


def funded(wants: Sequence[Want[Key]], unit_s: float, left_s: float) -> list[Want[Key]]:
    """The wants that the time left is spent on, nearest decision first; `unit_s` is one pair at one point.

    With time for all of them that is all. With less, most points are decided by finishing those that need least; the
    nearest is always among them, because what it will take is an estimate.
    """
    ordered = sorted((want for want in wants if want.left > 0), key=lambda want: want.units)
    chosen: list[Want[Key]] = []
    spent = 0.0
    for want in ordered:
        spent += min(want.units, want.left) * unit_s
        if chosen and spent > left_s:
            break
        chosen.append(want)
    return chosen


def allocate(wants: Sequence[Want[Key]], *, unit_s: float, longest_s: float, left_s: float) -> dict[Key, int]:
    """Pairs for each point in the next block; empty when the time left (`left_s`) is not enough for one.

    A pair beyond a point's decision is wasted, so nobody gets more than half of what it will probably take, and a
    block is no longer than worth asking for; but each funded point gets a pair where the longest block has room.
    """
    chosen = funded(wants, unit_s, left_s)
    room = int(min(longest_s, left_s) / unit_s)
    if left_s >= unit_s > longest_s:
        room = 1
    enough = math.ceil(SHORTEST_BLOCK_S / unit_s)
    given: dict[Key, int] = {}
    while room > 0:
        hungry = [want for want in chosen if given.get(want.key, 0) < min(want.left, math.ceil(want.units / 2))]
        if not hungry or (given and sum(given.values()) >= enough):
            break
        for want in hungry[:room]:
            given[want.key] = given.get(want.key, 0) + 1
        room -= len(hungry[:room])
    return given
