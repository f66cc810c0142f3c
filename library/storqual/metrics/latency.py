# SPDX-License-Identifier: Apache-2.0
"""Latency from what fio counts per I/O: the mean from sums, percentiles from histogram bins added up over jobs.

Percentiles are never averaged. fio's bins are at most 1/128 (0.78 %) wide, and a percentile is the bin in which it
lies; one with fewer than ten I/Os beyond it is not a percentile but an anecdote, and has no value. Latency is total
latency (submission and completion) of a closed loop, unless the workload asks for a rate. fio gives the I/Os that are
outstanding when a launch ends the time at which the last of them comes back, up to twice what they took: percentiles
beyond which few more lie than are outstanding may be those of the launch's end, in both arms alike.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value

PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99", "99.999", "99.9999")
FEWEST_BEYOND = 10
US = 1000.0
_TWO_SIDED = 1.96


def _ways(measured: Measured, way: str) -> list[str]:
    """The directions in which I/O was done. Raises UnavailableError for none."""
    ways = [one for one in ((way,) if way else ("read", "write")) if measured.primitives.get(f"{one}_ios")]
    if not ways:
        raise UnavailableError(f"no {f'{way} ' if way else ''}I/O was done")
    return ways


def _parts(measured: Measured, way: str, name: str) -> list[float]:
    """A primitive of each direction that did I/O. Raises UnavailableError when one lacks it."""
    ways = _ways(measured, way)
    lacking = [one for one in ways if f"{one}_{name}" not in measured.primitives]
    if lacking:
        raise UnavailableError(f"no {lacking[0]}_{name} was recorded")
    return [float(measured.primitives[f"{one}_{name}"]) for one in ways]


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile in microseconds, of so many I/Os, and between which of them it lies at 95 %.

    The interval is of order statistics: it knows how many I/Os there were, not that those of one stall come together,
    nor that launches differ. What compares two drops is the spread of launches.
    """

    us: float
    low_us: float
    high_us: float
    ios: int


def percentile(measured: Measured, share: float, way: str = "") -> Percentile:
    """The latency that `share` of the I/Os (0 to 1) do not exceed, from their bins.

    Raises UnavailableError when bins are missing, do not hold all I/Os, or hold fewer than ten beyond the percentile.
    """
    counts: dict[int, int] = {}
    ios = 0
    for one in _ways(measured, way):
        bins = measured.primitives.get(f"{one}_bins")
        if bins is None:
            raise UnavailableError(f"no {one}_bins was recorded (fio was not asked for json+)")
        ios += int(measured.primitives[f"{one}_ios"])
        for edge, count in bins.items():
            counts[int(edge)] = counts.get(int(edge), 0) + int(count)
    total = sum(counts.values())
    if total <= 0 or total < 0.99 * ios:
        raise UnavailableError(f"the bins hold {total} of {ios} I/Os")
    # the product is rounded: 0.9999 x 100,000 must leave ten beyond, not nine
    rank = math.ceil(round(share * total, 6))
    beyond = total - rank
    if beyond < FEWEST_BEYOND:
        wanted = math.ceil(FEWEST_BEYOND / (1.0 - share))
        raise UnavailableError(f"{beyond} of {total} I/Os lie beyond it, 10 are needed: about {wanted} I/Os in all")
    # how many I/Os lie below is binomial; with ten on the thin side its normal form, rounded outwards, covers 95 %
    reach = _TWO_SIDED * math.sqrt(total * share * (1.0 - share))
    ranks = (max(math.floor(share * total - reach), 1), rank, min(math.ceil(share * total + reach) + 1, total))
    edges = sorted(counts)
    running = list(accumulate(counts[edge] for edge in edges))
    low, middle, high = (edges[bisect_left(running, wanted)] / US for wanted in ranks)
    return Percentile(middle, low, high, total)


def _loop(measured: Measured) -> str:
    """Which loop a latency is of, where it is not the usual closed one."""
    return "open loop, Poisson arrivals" if measured.primitives.get("open_loop") else ""


def _mean(way: str) -> Metric:
    def function(measured: Measured) -> Value:
        total = sum(_parts(measured, way, "lat_sum_ns"))
        return Value(total / US / sum(_parts(measured, way, "ios")), _loop(measured))

    needs = (f"{way}_lat_sum_ns" if way else "read_lat_sum_ns|write_lat_sum_ns",)
    return _metric(way, "mean", "Mean latency", needs, function)


def _largest(way: str) -> Metric:
    def function(measured: Measured) -> Value:
        return Value(max(_parts(measured, way, "lat_max_ns")) / US, _loop(measured))

    needs = (f"{way}_lat_max_ns" if way else "read_lat_max_ns|write_lat_max_ns",)
    return _metric(way, "max", "Longest latency", needs, function)


def _percentile(way: str, percent: str) -> Metric:
    share = float(percent) / 100.0

    def function(measured: Measured) -> Value:
        found = percentile(measured, share, way)
        return Value(found.us, _loop(measured), found.ios, (found.low_us, found.high_us))

    needs = (f"{way}_bins" if way else "read_bins|write_bins",)
    return _metric(way, f"p{percent}", f"p{percent} latency", needs, function)


def _metric(way: str, short: str, label: str, needs: tuple[str, ...], function: object) -> Metric:
    name = f"{way}_latency_{short}_us" if way else f"latency_{short}_us"
    named = f"{label} of {way}s" if way else label
    return Metric(name, named, "us", "lower", needs, "time", function)  # type: ignore[arg-type]


def _all() -> Iterator[Metric]:
    for way in ("", "read", "write"):
        yield _mean(way)
        yield _largest(way)
        for percent in PERCENTILES:
            yield _percentile(way, percent)


LATENCIES: tuple[Metric, ...] = tuple(_all())
