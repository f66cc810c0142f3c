# SPDX-License-Identifier: Apache-2.0
"""Adapters against each other along a factor: who leads where, by how much, and where nobody does.

Each pair of adapters is compared at each level by the ratio of means, with intervals that hold for all pairs and
levels together. A level is *equal* when its whole interval lies within the margin, else *ahead* or *behind* when the
whole interval is, else *open*. Neighbouring levels of one relation make a range, and a range makes a sentence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from storqual.analysis.estimates import Estimate, LogLevels, log_levels

__all__ = ["MARGIN", "Better", "Comparison", "LevelShift", "Range", "Relation", "compare", "leaders"]

MARGIN = 0.03
"""Two adapters are called equal where they differ by less than 3 %, shown by the whole interval."""

Relation = Literal["ahead", "behind", "equal", "open"]
Better = Literal["higher", "lower"]
Curves = Mapping[str, Mapping[float, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class LevelShift:
    """One level: `shift` is by what fraction the first is better: a ratio of values, less one."""

    at: float
    shift: Estimate
    relation: Relation


@dataclass(frozen=True, slots=True)
class Range:
    """Neighbouring levels of one relation. `least` and `most` are the ends of all their intervals together."""

    start: float
    end: float
    relation: Relation
    shifts: tuple[LevelShift, ...]

    @property
    def least(self) -> float | None:
        """The smallest shift that any interval of the range allows, as a fraction."""
        lows = [level.shift.low for level in self.shifts]
        return None if None in lows else min(low for low in lows if low is not None)

    @property
    def most(self) -> float | None:
        """The largest."""
        highs = [level.shift.high for level in self.shifts]
        return None if None in highs else max(high for high in highs if high is not None)


@dataclass(frozen=True)
class Comparison:
    """The first adapter against the second over all levels that both have."""

    first: str
    second: str
    levels: tuple[LevelShift, ...]
    better: Better = "higher"

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Neighbouring levels with one relation, in order."""
        groups = (list(group) for _, group in itertools.groupby(self.levels, key=lambda level: level.relation))
        return tuple(Range(group[0].at, group[-1].at, group[0].relation, tuple(group)) for group in groups)


def compare(curves: Curves, *, better: Better = "higher", margin: float = MARGIN) -> tuple[Comparison, ...]:
    """Every pair of adapters in `curves` (adapter -> level -> one value per launch), in the order given.

    Intervals are simultaneous over all pairs and levels (Bonferroni). Without repeated launches there are none, and
    every level is open: a single difference shows nothing. Raises ValueError for fewer than two adapters, adapters
    without a common level, a margin outside 0 to 1, and what `log_levels` refuses.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin {margin!r}, expected a fraction between 0 and 1")
    if len(curves) < 2:
        raise ValueError("a comparison needs two adapters")
    data = {name: log_levels(launches) for name, launches in curves.items()}
    pairs = list(itertools.combinations(curves, 2))
    common = {pair: sorted(set(data[pair[0]].at) & set(data[pair[1]].at)) for pair in pairs}
    for (first, second), levels in common.items():
        if not levels:
            raise ValueError(f"{first} and {second} have no level in common")
    tests = sum(map(len, common.values()))
    sign = 1.0 if better == "higher" else -1.0
    return tuple(
        Comparison(first, second, tuple(_levels(data[first], data[second], levels, sign, margin, tests)), better)
        for (first, second), levels in common.items()
    )


def _levels(
    first: LogLevels, second: LogLevels, levels: Sequence[float], sign: float, margin: float, tests: int
) -> Iterator[LevelShift]:
    noise = _together(first, second)
    for level in levels:
        here, there = first.at.index(level), second.at.index(level)
        difference = sign * (first.mean[here] - second.mean[there])
        share = 1 / first.count[here] + 1 / second.count[there]
        log_shift = noise.estimate(difference, share, tests)
        ratio = log_shift.exp()
        low, high = (None if end is None else end - 1 for end in (ratio.low, ratio.high))
        yield LevelShift(level, Estimate(ratio.value - 1, low, high), _relation(log_shift, margin))


def _together(first: LogLevels, second: LogLevels) -> LogLevels:
    """One noise for both adapters, weighted by what each knows of it."""
    df = first.df + second.df
    if not df:
        return LogLevels((), (), (), None, 0)
    squares = (first.variance or 0.0) * first.df + (second.variance or 0.0) * second.df
    return LogLevels((), (), (), squares / df, df)


def _relation(log_shift: Estimate, margin: float) -> Relation:
    if log_shift.low is None or log_shift.high is None:
        return "open"
    if -math.log1p(margin) < log_shift.low and log_shift.high < math.log1p(margin):
        return "equal"
    if log_shift.low > 0:
        return "ahead"
    return "behind" if log_shift.high < 0 else "open"


def leaders(comparisons: Sequence[Comparison]) -> dict[float, str | None]:
    """At each level the adapter that is ahead of every other there; None where nobody is shown to be."""
    names = list(dict.fromkeys(name for one in comparisons for name in (one.first, one.second)))
    levels = sorted({level.at for one in comparisons for level in one.levels})
    beaten: dict[tuple[str, float], set[str]] = {}
    for one in comparisons:
        for level in one.levels:
            if level.relation in ("ahead", "behind"):
                winner, loser = (one.first, one.second) if level.relation == "ahead" else (one.second, one.first)
                beaten.setdefault((winner, level.at), set()).add(loser)
    return {
        level: next((name for name in names if len(beaten.get((name, level), ())) == len(names) - 1), None)
        for level in levels
    }
