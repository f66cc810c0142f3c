# SPDX-License-Identifier: Apache-2.0
"""Latency from what fio counts per I/O: the mean from sums, percentiles from histogram bins added up over jobs.

Percentiles are never averaged. fio's bins are at most 1/128 (0.78 %) wide, and a percentile is the bin in which it
lies; one with fewer than ten I/Os beyond it is not a percentile but an anecdote, and has no value. Latency is total
latency (submission and completion) of a closed loop, unless the workload asks for a rate. fio gives the I/Os that are
outstanding when a launch ends the time at which the last of them comes back, up to twice what they took: percentiles
beyond which few more lie than are outstanding may be those of the launch's end, in both arms alike.

A load curve has the rate and the load at the latency cap of its workload, and the rate at given response times. All
are of a closed loop, in which a stall holds back the I/Os behind it: arrivals that do not wait for completions would
meet longer response times (coordinated omission). The cap's point lies between two launches of the search, on the
line through them.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value
from storqual_core.turns.launch import LoadStep, at_response, read_steps

PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99", "99.999", "99.9999")
FEWEST_BEYOND = 10
US = 1000.0
_TWO_SIDED = 1.96


def _ways(measured: Measured, way: str) -> list[str]:
    """The directions in which I/O was done. Raises UnavailableError for none."""
    ways = [name for name in ((way,) if way else ("read", "write")) if measured.primitives.get(f"{name}_ios")]
    if not ways:
        raise UnavailableError(f"no {f'{way} ' if way else ''}I/O was done")
    return ways


def _parts(measured: Measured, way: str, name: str) -> list[float]:
    """A primitive of each direction that did I/O. Raises UnavailableError when one lacks it."""
    ways = _ways(measured, way)
    lacking = [direction for direction in ways if f"{direction}_{name}" not in measured.primitives]
    if lacking:
        raise UnavailableError(f"no {lacking[0]}_{name} was recorded")
    return [float(measured.primitives[f"{direction}_{name}"]) for direction in ways]


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of so many counted values, in their unit, and between which of them it lies at 95 %.

    The interval is of order statistics: it knows how many values there were, not that those of one stall come
    together, nor that launches differ. What compares two drops is the spread of launches.
    """

    value: int
    low: int
    high: int
    count: int


def quantile(counts: Mapping[int, int], share: float) -> Quantile:
    """The value that `share` (0 to 1) of the counted ones do not exceed, from value -> how many.

    Raises UnavailableError for fewer than ten beyond it.
    """
    total = sum(counts.values())
    # the product is rounded: 0.9999 x 100,000 must leave ten beyond, not nine
    rank = math.ceil(round(share * total, 6))
    beyond = total - rank
    if beyond < FEWEST_BEYOND:
        needed = math.ceil(FEWEST_BEYOND / (1.0 - share))
        raise UnavailableError(f"{beyond} of {total} I/Os lie beyond it, 10 are needed: about {needed} I/Os in all")
    # how many lie below is binomial; with ten on the thin side its normal form, rounded outwards, covers 95 %
    reach = _TWO_SIDED * math.sqrt(total * share * (1.0 - share))
    ranks = (rank, max(math.floor(share * total - reach), 1), min(math.ceil(share * total + reach) + 1, total))
    edges = sorted(counts)
    running = list(accumulate(counts[edge] for edge in edges))
    value, low, high = (edges[bisect_left(running, rank)] for rank in ranks)
    return Quantile(value, low, high, total)


def percentile(measured: Measured, share: float, way: str = "") -> Quantile:
    """The latency in nanoseconds that `share` of the I/Os do not exceed, from their bins.

    Raises UnavailableError when bins are missing, do not hold all I/Os, or hold fewer than ten beyond the percentile.
    """
    counts: dict[int, int] = {}
    ios = 0
    for direction in _ways(measured, way):
        bins = measured.primitives.get(f"{direction}_bins")
        if bins is None:
            raise UnavailableError(f"no {direction}_bins was recorded (fio was not asked for json+)")
        ios += int(measured.primitives[f"{direction}_ios"])
        for edge, count in bins.items():
            counts[int(edge)] = counts.get(int(edge), 0) + int(count)
    total = sum(counts.values())
    if total <= 0 or total < 0.99 * ios:
        raise UnavailableError(f"the bins hold {total} of {ios} I/Os")
    return quantile(counts, share)


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
        result = percentile(measured, share, way)
        return Value(result.value / US, _loop(measured), result.count, (result.low / US, result.high / US))

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


RESPONSES_MS = (1, 2, 5, 8, 10, 20, 50, 100)
"""Response times at which rates are told, in milliseconds; 8 and 100 are those of published reports."""
_NEEDS = ("load_steps",)
_MS = 1e6


def load_curve(measured: Measured) -> tuple[LoadStep, ...]:
    """The launches of a search, by load. Raises ValueError, TypeError or KeyError for steps that are none."""
    steps = read_steps(measured.primitives["load_steps"], int(measured.primitives["load_share_ppm"]))
    return tuple(sorted(steps, key=lambda step: step.load))


def _at(measured: Measured, response: float) -> tuple[float, float]:
    curve = load_curve(measured)
    crossing = at_response(curve, response)
    if crossing is not None:
        return crossing
    if not curve:
        raise UnavailableError("no load was measured")
    first, last = curve[0], curve[-1]
    limit = f"{response / _MS:g} ms"
    if first.response_ns > response:
        raise UnavailableError(
            f"the response time is {first.response_ns / _MS:.3g} ms at load {first.load}, which is "
            f"already above {limit}"
        )
    raise UnavailableError(
        f"{limit} is not reached: {last.response_ns / _MS:.3g} ms at load {last.load}, the highest "
        "load that was planned"
    )


def _cap(measured: Measured) -> float:
    return float(measured.primitives["load_cap_ns"])


def _source(measured: Measured) -> str:
    share = int(measured.primitives["load_share_ppm"])
    return f"closed loop, {f'p{share / 10000:g}' if share else 'mean'} response time"


def _rate_at(response_ms: int) -> Callable[[Measured], Value]:
    def function(measured: Measured) -> Value:
        return Value(_at(measured, response_ms * _MS)[0], _source(measured))

    return function


def _load_all() -> Iterator[Metric]:
    yield Metric(
        "iops_at_cap",
        "IOPS at the latency cap",
        "IOPS",
        "higher",
        _NEEDS,
        "rate",
        lambda measured: Value(_at(measured, _cap(measured))[0], _source(measured)),
    )
    yield Metric(
        "load_at_cap",
        "Load at the latency cap",
        "outstanding",
        "higher",
        _NEEDS,
        "rate",
        lambda measured: Value(_at(measured, _cap(measured))[1], _source(measured)),
    )
    for response in RESPONSES_MS:
        label = f"IOPS at a response time of {response} ms"
        yield Metric(f"iops_at_{response}ms", label, "IOPS", "higher", _NEEDS, "rate", _rate_at(response))


LOAD: tuple[Metric, ...] = tuple(_load_all())
