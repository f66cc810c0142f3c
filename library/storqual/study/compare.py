# SPDX-License-Identifier: Apache-2.0
"""Adapters against each other along a factor: who leads where, by how much, and where nobody does.

Each pair of adapters is compared at each level by the ratio of means, with intervals that hold for all pairs and
levels together. A level is *equal* when its whole interval lies within the margin, else *ahead* or *behind* when the
whole interval is, else *open*. Neighbouring levels of one relation make a range, and a range makes a sentence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from storqual.base.formulas import Better
from storqual.statistics.estimates import Estimate, LogLevels, log_estimate, log_levels

MARGIN = 0.03
"""Two adapters are called equal where they differ by less than 3 %, shown by the whole interval."""

Relation = Literal["ahead", "behind", "equal", "open"]
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
class SubjectComparison:
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


def compare(curves: Curves, *, better: Better = "higher") -> tuple[SubjectComparison, ...]:
    """Every pair of adapters in `curves` (adapter -> level -> one value per launch), in the order given.

    Intervals are simultaneous over all pairs and levels (Bonferroni). Without repeated launches there are none, and
    every level is open: a single difference shows nothing. Raises ValueError for fewer than two adapters, adapters
    without a common level, and what `log_levels` refuses.
    """
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
        SubjectComparison(first, second, tuple(_levels(data[first], data[second], levels, sign, tests)), better)
        for (first, second), levels in common.items()
    )


def _levels(
    first: LogLevels, second: LogLevels, levels: Sequence[float], sign: float, tests: int
) -> Iterator[LevelShift]:
    noise = _together(first, second)
    for level in levels:
        here, there = first.at.index(level), second.at.index(level)
        difference = sign * (first.mean[here] - second.mean[there])
        share = 1 / first.count[here] + 1 / second.count[there]
        log_shift = noise.estimate(difference, share, tests)
        ratio = log_shift.exp()
        low, high = (None if end is None else end - 1 for end in (ratio.low, ratio.high))
        yield LevelShift(level, Estimate(ratio.value - 1, low, high), relation_of(log_shift, MARGIN))


def _together(first: LogLevels, second: LogLevels) -> LogLevels:
    """One noise for both adapters, weighted by what each knows of it."""
    df = first.df + second.df
    if not df:
        return LogLevels((), (), (), None, 0)
    squares = (first.variance or 0.0) * first.df + (second.variance or 0.0) * second.df
    return LogLevels((), (), (), squares / df, df)


def relation_of(log_shift: Estimate, margin: float) -> Relation:
    """What the interval of a logarithmic shift shows; nothing (`open`) without one."""
    if log_shift.low is None or log_shift.high is None:
        return "open"
    if -math.log1p(margin) < log_shift.low and log_shift.high < math.log1p(margin):
        return "equal"
    if log_shift.low > 0:
        return "ahead"
    return "behind" if log_shift.high < 0 else "open"


def leaders(comparisons: Sequence[SubjectComparison]) -> dict[float, str | None]:
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


Shown = Callable[[float], str]
_TENFOLD = 10.0


def comparison_sentences(
    comparison: SubjectComparison, measure: str, *, at: Shown = lambda level: f"{level:g}"
) -> list[str]:
    """One sentence per range, such as "sym gives 12.1 to 14.8 % more IOPS than mpt from 512 to 4k (interval ...)".

    `measure` is what is compared (`IOPS`, `CPU per I/O`), `at` writes a level (a block size as `4k`).
    """
    return [_sentence(comparison, one, measure, at) for one in comparison.ranges]


def _sentence(comparison: SubjectComparison, one: Range, measure: str, at: Shown) -> str:
    first, second, where = comparison.first, comparison.second, span(one.start, one.end, at)
    if one.relation == "equal":
        return f"{first} and {second} are equal in {measure} within {100 * MARGIN:g} % {where}."
    if one.least is None or one.most is None or (one.relation == "open" and reaches_tenfold(one.least, one.most)):
        lacking = "have too few launches, or launches that vary too much,"
        return f"{first} and {second} {lacking} {where}: nothing can be said about the difference in {measure}."
    if one.relation == "open":
        ends = f"{_signed(one.least)} to {_signed(one.most)}"
        return (
            f"No difference between {first} and {second} in {measure} is shown {where}: {first} may be {ends} better."
        )
    shifts = [level.shift.value for level in one.shifts]
    low, high = one.least, one.most
    winner, loser = first, second
    if one.relation == "behind":
        winner, loser = second, first
        shifts, low, high = [_turned(shift) for shift in shifts], _turned(one.most), _turned(one.least)
    smallest, largest = (f"{100 * value:.1f}" for value in (min(shifts), max(shifts)))
    size = f"{smallest} %" if smallest == largest else f"{smallest} to {largest} %"
    sure = f"(interval {100 * low:.1f} to {100 * high:.1f} %)"
    if comparison.better == "higher":
        return f"{winner} gives {size} more {measure} than {loser} {where} {sure}."
    return f"{loser} takes {size} more {measure} than {winner} {where} {sure}."


def reaches_tenfold(least: float, most: float) -> bool:
    """Whether an interval reaches tenfold to one side: its ends would be read as if they said something."""
    return max(1 + most, 1 / max(1 + least, 1e-9)) > _TENFOLD


def _turned(shift: float) -> float:
    """By what the second is better, from by what the first is."""
    return 1 / (1 + shift) - 1


def _signed(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"


def span(start: float, end: float, at: Shown) -> str:
    """`at 4k`, or `from 512 to 4k`."""
    return f"at {at(start)}" if start == end else f"from {at(start)} to {at(end)}"


def leader_sentence(
    comparisons: Sequence[SubjectComparison], measure: str, *, at: Shown = lambda level: f"{level:g}"
) -> str:
    """Who leads where, such as "In IOPS sym leads from 512 to 2k; none is shown to lead from 4k to 64k."."""
    found = leaders(comparisons)
    parts = []
    for name, group in itertools.groupby(found, key=lambda level: found[level]):
        levels = list(group)
        where = span(levels[0], levels[-1], at)
        parts.append(f"{name} leads {where}" if name else f"none is shown to lead {where}")
    return f"In {measure} {'; '.join(parts)}."


@dataclass(frozen=True)
class LoadResponse:
    """Loads and responses of one adapter, rising in load; a curve that bends back is cut at its highest load."""

    load: LogLevels
    response: LogLevels
    order: tuple[int, ...]
    """Places of the levels in ascending order of load."""


def curve(launches: Mapping[float, Sequence[tuple[float, float]]]) -> LoadResponse:
    """A curve from `launches`: level -> (load, response) of each launch. Raises ValueError as `log_levels` does."""
    load = log_levels({level: [one for one, _ in pairs] for level, pairs in launches.items()})
    response = log_levels({level: [other for _, other in pairs] for level, pairs in launches.items()})
    rising: list[int] = []
    for place in range(len(load.at)):
        if not rising or load.mean[place] > load.mean[rising[-1]]:
            rising.append(place)
    return LoadResponse(load, response, tuple(rising))


def common_loads(first: LoadResponse, second: LoadResponse) -> tuple[float, float] | None:
    """The lowest and the highest load that both reached; None when there is none."""
    low = max(one.load.mean[one.order[0]] for one in (first, second))
    high = min(one.load.mean[one.order[-1]] for one in (first, second))
    return (math.exp(low), math.exp(high)) if low <= high else None


def response_at(one: LoadResponse, load: float) -> Estimate:
    """The response at `load`, between the two levels around it. Raises ValueError outside the curve."""
    estimate, _ = _log_response(one, math.log(load))
    return estimate.exp()


def shift_at_equal_load(first: LoadResponse, second: LoadResponse, load: float) -> Estimate:
    """What the first's response is above the second's at `load`, as a fraction. Raises ValueError outside either."""
    (here, of_here), (there, of_there) = (_log_response(one, math.log(load)) for one in (first, second))
    difference = here.value - there.value
    if of_here is None or of_there is None:
        return Estimate(math.expm1(difference), None, None)
    df = _satterthwaite((of_here, first.response.df), (of_there, second.response.df))
    half = LogLevels((), (), (), 1.0, df).quantile() * math.sqrt(of_here + of_there)
    ratio = log_estimate(difference, half).exp()
    ends = [None if end is None else end - 1 for end in (ratio.low, ratio.high)]
    return Estimate(math.expm1(difference), *ends)


def _log_response(one: LoadResponse, load: float) -> tuple[Estimate, float | None]:
    """Logarithm of the response and its variance: the response's own, and the load's by the slope."""
    loads = [one.load.mean[place] for place in one.order]
    slack = 1e-9
    if not loads[0] - slack <= load <= loads[-1] + slack:
        lowest, highest = math.exp(loads[0]), math.exp(loads[-1])
        raise ValueError(f"load {math.exp(load):g} is outside the curve, {lowest:g} to {highest:g}")
    right = next((place for place, value in enumerate(loads) if value >= load), len(loads) - 1)
    left = max(0, right - 1)
    width = loads[right] - loads[left]
    weight = 1.0 if not width else min(1.0, max(0.0, (load - loads[left]) / width))
    ends = [(one.order[left], 1 - weight), (one.order[right], weight)]
    value = sum(share * one.response.mean[place] for place, share in ends)
    if one.response.variance is None or one.load.variance is None:
        return Estimate(value, None, None), None
    rise = one.response.mean[one.order[right]] - one.response.mean[one.order[left]]
    slope = rise / width if width else 0.0
    noise = one.response.variance + slope**2 * one.load.variance
    variance = noise * sum(share**2 / one.response.count[place] for place, share in ends)
    half = one.response.quantile() * math.sqrt(variance)
    return log_estimate(value, half), variance


def _satterthwaite(*parts: tuple[float, int]) -> int:
    """Degrees of freedom of a sum of variances, rounded down; at least those of the poorest part."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return min(df for _, df in parts)
    return max(
        min(df for _, df in parts), int(total**2 / sum(variance**2 / df for variance, df in parts if variance))
    )
