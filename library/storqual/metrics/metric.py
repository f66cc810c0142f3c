# SPDX-License-Identifier: Apache-2.0
"""What a metric is: a name with unit and direction, and a function of a launch's primitives and series.

A metric has a value or a reason why there is none. It is never 0 for want of data, and never NaN.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from storqual.base.formulas import Better

Kind = Literal["rate", "time", "ratio", "count"]


class Measured(Protocol):
    """A sample, or several merged: what metrics are functions of."""

    @property
    def primitives(self) -> Mapping[str, Any]:
        """Counts, bytes, nanoseconds, ticks and bins."""

    @property
    def series(self) -> Mapping[str, Sequence[float]]:
        """Values per second."""


@dataclass(frozen=True, slots=True)
class Primitives:
    """Primitives and series without the rest of a sample."""

    primitives: Mapping[str, Any]
    series: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Value:
    """A metric's value in its unit. `source` names how it was found where there are several ways.

    Of a percentile, `ios` is how many I/Os it is of, and `interval` where it lies at 95 % by their number alone.
    """

    value: float
    source: str = ""
    ios: int | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a metric has no value."""

    reason: str


class UnavailableError(Exception):
    """Raised inside a metric's function when the data cannot answer; `Metric.value` turns it into `Unavailable`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    `needs` are the primitives or series without which it can never have a value; `a|b` means either. `kind` says how
    it is judged: rates and times by their logarithm, counts by a rule for counts. `series` is the series that holds
    the same quantity per second up to a factor, where there is one: the judge then sees dips inside a launch.
    """

    name: str
    label: str
    unit: str
    better: Better
    needs: tuple[str, ...]
    kind: Kind
    function: Callable[[Measured], Value]
    series: str = ""

    def value(self, measured: Measured) -> Value | Unavailable:
        for need in self.needs:
            if need not in measured.primitives and not _any_of(need, measured):
                return Unavailable(f"no {need.replace('|', ' or ')} was recorded")
        try:
            value = self.function(measured)
        except UnavailableError as problem:
            return Unavailable(str(problem))
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            return Unavailable(f"the primitives do not fit together ({type(problem).__name__}: {problem})")
        if not math.isfinite(value.value):
            return Unavailable(f"{self.name} came out as {value.value}")
        return value


def _any_of(need: str, measured: Measured) -> bool:
    """Whether one of the alternatives of a need was recorded."""
    return any(name in measured.primitives or measured.series.get(name) for name in need.split("|"))


_LARGEST = frozenset({"read_lat_max_ns", "write_lat_max_ns", "trim_lat_max_ns"})
_EQUAL = frozenset({"cpu_count", "tick_ns", "load_cap_ns", "load_share_ppm", "load_most", "open_loop"})


def merged(launches: Iterable[Measured]) -> Primitives:
    """Several launches as one: counts, times and bins are added, maxima stay, seconds and steps follow each other.

    What one of them lacks, the merged launch lacks too: half a sum is no sum.
    """
    every = list(launches)
    if not every:
        return Primitives({}, {})
    names = set(every[0].primitives).intersection(*(launch.primitives for launch in every[1:]))
    primitives: dict[str, Any] = {}
    for name in sorted(names):
        values = [launch.primitives[name] for launch in every]
        if isinstance(values[0], Mapping):
            primitives[name] = _added(values)
        elif isinstance(values[0], list):
            primitives[name] = [step for value in values for step in value]
        elif name in _LARGEST:
            primitives[name] = max(values)
        elif name not in _EQUAL:
            primitives[name] = sum(values)
        elif len(set(values)) == 1:
            primitives[name] = values[0]
    # a direction without I/O has no bins and no maximum: it adds nothing, it hides nothing
    for way in ("read", "write"):
        if any(launch.primitives.get(f"{way}_ios") for launch in every):
            having = [launch.primitives for launch in every if launch.primitives.get(f"{way}_ios")]
            if all(f"{way}_bins" in p for p in having):
                primitives[f"{way}_bins"] = _added([p[f"{way}_bins"] for p in having])
            if all(f"{way}_lat_max_ns" in p for p in having):
                primitives[f"{way}_lat_max_ns"] = max(p[f"{way}_lat_max_ns"] for p in having)
            if all(f"{way}_lat_sum_ns" in p for p in having):
                primitives[f"{way}_lat_sum_ns"] = sum(p[f"{way}_lat_sum_ns"] for p in having)
    shared = set(every[0].series).intersection(*(launch.series for launch in every[1:]))
    series = {name: [second for launch in every for second in launch.series[name]] for name in sorted(shared)}
    return Primitives(primitives, series)


def _added(bins: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counts in bins:
        for edge, count in counts.items():
            total[edge] = total.get(edge, 0) + count
    return total
