# SPDX-License-Identifier: Apache-2.0
"""Estimates with intervals from a few launches: levels of a factor, means, quantiles, control charts of a bench."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from scipy import special

from storqual.statistics.noise import TELLS_NOTHING

CONFIDENCE = 0.95
CI_SIDE = 0.025


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the ends of its 95 % interval: None without repeated launches, and where they are too unlike."""

    value: float
    low: float | None
    high: float | None

    def at_least(self, limit: float) -> bool | None:
        """Whether the true value is shown to be `limit` or more (True), less (False), or neither (None).

        Without an interval the value itself answers: it is all that is known.
        """
        if self.low is None or self.high is None:
            return self.value >= limit
        if self.low >= limit:
            return True
        return False if self.high < limit else None

    def exp(self) -> "Estimate":
        low, high = (None if end is None else math.exp(end) for end in (self.low, self.high))
        return Estimate(math.exp(self.value), low, high)


@dataclass(frozen=True)
class LogLevels:
    """Mean logarithm of each level, in ascending order of the levels, and the noise of one launch about it.

    `variance` is that of the logarithm of one launch, pooled over the levels, None where no level was repeated;
    `df` its degrees of freedom.
    """

    at: tuple[float, ...]
    mean: tuple[float, ...]
    count: tuple[int, ...]
    variance: float | None
    df: int

    def quantile(self, comparisons: int = 1) -> float:
        """Student's t for a 95 % interval; with `comparisons`, for so many that hold together (Bonferroni)."""
        return float(special.stdtrit(self.df, 1 - CI_SIDE / comparisons))

    def estimate(self, value: float, share: float, comparisons: int = 1) -> Estimate:
        """`value` with an interval; `share` is its variance in units of that of one launch."""
        if self.variance is None:
            return Estimate(value, None, None)
        half = self.quantile(comparisons) * math.sqrt(self.variance * share)
        return log_estimate(value, half)


def log_estimate(value: float, half: float) -> Estimate:
    """A logarithm with an interval of so much to either side; none where that says nothing."""
    return Estimate(value, value - half, value + half) if half <= TELLS_NOTHING else Estimate(value, None, None)


def log_levels(launches: Mapping[float, Sequence[float]]) -> LogLevels:
    """Means and pooled noise of `launches` (level -> one value per launch).

    Raises ValueError without levels, for a level without launches, and for values that are not finite and above zero:
    missing is never zero.
    """
    if not launches:
        raise ValueError("no level was measured")
    at, mean, count, squares, df = [], [], [], 0.0, 0
    for level in sorted(launches):
        values = np.asarray(launches[level], dtype=np.float64)
        if values.size == 0 or not np.all(np.isfinite(values)) or not np.all(values > 0):
            raise ValueError(f"level {level:g} has no launch, or one that is not a number above zero")
        logs = np.log(values)
        at.append(float(level))
        mean.append(float(logs.mean()))
        count.append(int(values.size))
        squares += float(((logs - logs.mean()) ** 2).sum())
        df += int(values.size) - 1
    return LogLevels(tuple(at), tuple(mean), tuple(count), squares / df if df else None, df)


@dataclass(frozen=True)
class Spread:
    """The relative standard deviation between units of one arm, pooled over points, and its degrees of freedom."""

    relative: float
    freedom: int


def pooled_spread(groups: Iterable[Sequence[float]]) -> Spread:
    """Pool the relative spread over groups of units: one point alone has too few to know its own."""
    total, freedom = 0.0, 0
    for units in groups:
        mean = sum(units) / len(units) if units else 0.0
        if len(units) < 2 or mean == 0:
            continue
        total += sum((value / mean - 1) ** 2 for value in units)
        freedom += len(units) - 1
    return Spread(math.sqrt(total / freedom) if freedom else 0.0, freedom)


def mean_estimate(values: Sequence[float], units: int, spread: Spread) -> Estimate:
    mean = sum(values) / len(values)
    if spread.freedom < 1:
        return Estimate(mean, None, None)
    half = _student(spread.freedom) * spread.relative / math.sqrt(units) * abs(mean)
    return Estimate(mean, mean - half, mean + half)


def mean_reach(values: Sequence[float], side: float = CI_SIDE, floor: float = 0.0) -> float | None:
    """How far the interval of a mean reaches to either side, with `side` of it beyond; None for one value.

    `floor` is the standard deviation below which nothing is believed to repeat.
    """
    if len(values) < 2:
        return None
    return _student(len(values) - 1, side) * max(float(np.std(values, ddof=1)), floor) / math.sqrt(len(values))


@cache
def _student(freedom: int, side: float = CI_SIDE) -> float:
    """The quantile of Student's t beyond which a share of `side` lies."""
    return float(special.stdtrit(freedom, 1 - side))


def difference(before: Estimate, after: Estimate) -> Estimate:
    """`after` less `before`: square roots of summed squares of their own half-widths (Zou and Donner 2008)."""
    middle = after.value - before.value
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return Estimate(middle, None, None)
    low = middle - math.hypot(after.value - after.low, before.high - before.value)
    return Estimate(middle, low, middle + math.hypot(after.high - after.value, before.value - before.low))


def odds_within(distance: float, reach: float) -> float:
    """How often an estimate whose one-sided 95 % bound is `reach` away has that bound within `distance`."""
    return float(special.ndtr((distance - reach) * special.ndtri(CONFIDENCE) / reach))


@dataclass(frozen=True)
class LoadResponse:
    """Loads and responses of one adapter, rising in load; a curve that bends back is cut at its highest load."""

    load: LogLevels
    response: LogLevels
    order: tuple[int, ...]
    """Places of the levels in ascending order of load."""


def curve(launches: Mapping[float, Sequence[tuple[float, float]]]) -> LoadResponse:
    """A curve from `launches`: level -> (load, response) of each launch. Raises ValueError as `log_levels` does."""
    load = log_levels({level: [load for load, _ in pairs] for level, pairs in launches.items()})
    response = log_levels({level: [response for _, response in pairs] for level, pairs in launches.items()})
    rising: list[int] = []
    for index in range(len(load.at)):
        if not rising or load.mean[index] > load.mean[rising[-1]]:
            rising.append(index)
    return LoadResponse(load, response, tuple(rising))


def common_loads(first: LoadResponse, second: LoadResponse) -> tuple[float, float] | None:
    """The lowest and the highest load that both reached; None when there is none."""
    low = max(curve.load.mean[curve.order[0]] for curve in (first, second))
    high = min(curve.load.mean[curve.order[-1]] for curve in (first, second))
    return (math.exp(low), math.exp(high)) if low <= high else None


def response_at(curve: LoadResponse, load: float) -> Estimate:
    """The response at `load`, between the two levels around it. Raises ValueError outside the curve."""
    estimate, _ = _log_response(curve, math.log(load))
    return estimate.exp()


def shift_at_equal_load(first: LoadResponse, second: LoadResponse, load: float) -> Estimate:
    """What the first's response is above the second's at `load`, as a fraction. Raises ValueError outside either."""
    (here, of_here), (there, of_there) = (_log_response(curve, math.log(load)) for curve in (first, second))
    difference = here.value - there.value
    if of_here is None or of_there is None:
        return Estimate(math.expm1(difference), None, None)
    df = _satterthwaite((of_here, first.response.df), (of_there, second.response.df))
    half = LogLevels((), (), (), 1.0, df).quantile() * math.sqrt(of_here + of_there)
    ratio = log_estimate(difference, half).exp()
    ends = [None if end is None else end - 1 for end in (ratio.low, ratio.high)]
    return Estimate(math.expm1(difference), *ends)


def _log_response(curve: LoadResponse, load: float) -> tuple[Estimate, float | None]:
    """Logarithm of the response and its variance: the response's own, and the load's by the slope."""
    loads = [curve.load.mean[index] for index in curve.order]
    slack = 1e-9
    if not loads[0] - slack <= load <= loads[-1] + slack:
        lowest, highest = math.exp(loads[0]), math.exp(loads[-1])
        raise ValueError(f"load {math.exp(load):g} is outside the curve, {lowest:g} to {highest:g}")
    right = next((index for index, value in enumerate(loads) if value >= load), len(loads) - 1)
    left = max(0, right - 1)
    width = loads[right] - loads[left]
    weight = 1.0 if not width else min(1.0, max(0.0, (load - loads[left]) / width))
    ends = [(curve.order[left], 1 - weight), (curve.order[right], weight)]
    value = sum(share * curve.response.mean[index] for index, share in ends)
    if curve.response.variance is None or curve.load.variance is None:
        return Estimate(value, None, None), None
    rise = curve.response.mean[curve.order[right]] - curve.response.mean[curve.order[left]]
    slope = rise / width if width else 0.0
    noise = curve.response.variance + slope**2 * curve.load.variance
    variance = noise * sum(share**2 / curve.response.count[index] for index, share in ends)
    half = curve.response.quantile() * math.sqrt(variance)
    return log_estimate(value, half), variance


def _satterthwaite(*parts: tuple[float, int]) -> int:
    """Degrees of freedom of a sum of variances, rounded down; at least those of the poorest part."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return min(df for _, df in parts)
    return max(
        min(df for _, df in parts), int(total**2 / sum(variance**2 / df for variance, df in parts if variance))
    )


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
