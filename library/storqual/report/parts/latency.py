# SPDX-License-Identifier: Apache-2.0
"""Latencies of one point: both arms overlaid, the tail on logarithmic axes, quantiles and their differences."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from storqual.report.axes import latency_axis, latency_text, share_axis
from storqual.report.charts.line import Mark, PlottedCurve, tail_panel
from storqual.report.charts.steps import Bin, Distribution, histogram
from storqual.report.charts.svg import Axis
from storqual.report.figures import NONE, Figure, count, quantity
from storqual.report.material import ARMS, quantile
from storqual.report.view import Chart, ChartTable
from storqual.run.measurements import PointData

_BINS = 14
_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("largest", 1.0))


def latency_charts(point: PointData, ident: str) -> tuple[Chart, ...]:
    """The distribution and its tail for reads and for writes, as far as there were any."""
    charts: list[Chart] = []
    for side in ("read", "write"):
        arms = {arm: point.bins[arm, side] for arm in ARMS if point.bins.get((arm, side))}
        if arms:
            tail = _tail(f"{ident}-{side}-t", side, arms)
            charts += [*([tail] if tail else []), _chart(point, f"{ident}-{side}", side, arms)]
    return tuple(charts)


def _chart(point: PointData, ident: str, side: str, arms: Mapping[str, Mapping[int, int]]) -> Chart:
    edges = _edges(*_reach(arms))
    shares = {arm: _shares(bins, edges) for arm, bins in arms.items()}
    distributions = [
        Distribution(
            arm,
            tuple(Bin(*ends, share) for ends, share in zip(_pairs(edges), shares[arm], strict=True)),
        )
        for arm in arms
    ]
    top = max(max(values) for values in shares.values())
    title = f"Latency of {side}s"
    described = f"Share of {side}s by latency, both arms; numbers in the table below."
    picture = histogram(ident, title, described, distributions, latency_axis(edges[0], edges[-1]), share_axis(top))
    return Chart(title, picture, _table(point, title, side, edges, shares), beside=_quantiles(point, side, arms))


def _reach(arms: Mapping[str, Mapping[int, int]]) -> tuple[int, int]:
    low, high = min(min(bins) for bins in arms.values()), max(max(bins) for bins in arms.values())
    return max(low, 1), max(high, 1)


def _edges(low: int, high: int) -> tuple[float, ...]:
    """Edges of bins of equal ratio around all values."""
    bottom, top = low / 1.1, high * 1.1
    if top / bottom < 2:
        bottom, top = bottom / 1.3, top * 1.3
    return tuple(bottom * (top / bottom) ** (step / _BINS) for step in range(_BINS + 1))


def _pairs(edges: Sequence[float]) -> list[tuple[float, float]]:
    return list(pairwise(edges))


def _shares(bins: Mapping[int, int], edges: Sequence[float]) -> list[float]:
    counts = [0] * (len(edges) - 1)
    for value, number in bins.items():
        at = bisect.bisect_right(edges, value) - 1
        counts[min(max(at, 0), len(counts) - 1)] += number
    total = sum(counts)
    return [number / total for number in counts]


def _quantiles(point: PointData, side: str, arms: Mapping[str, Mapping[int, int]]) -> ChartTable:
    """Each quantile of both arms and how far the candidate's is from the baseline's, as far as counts support it."""
    sizes = {arm: sum(bins.values()) for arm, bins in arms.items()}
    rows: list[tuple[Figure | str, ...]] = []
    for name, at in _QUANTILES:
        shown = [_quantile(point, side, arm, arms.get(arm), name, at) for arm in ARMS]
        rows.append((name, *shown, *_difference(point, side, arms, name, at)))
    where = f"{side}:{'/'.join(point.planned.key)}"
    numbers = [count(sizes.get(arm), f"samples:ios:{where}:{arm}") for arm in ARMS]
    rows.append(("I/Os", *numbers, NONE, NONE, NONE))
    heads = ("Quantile", "Baseline", "Candidate", "Difference", "95 % from", "to")
    return ChartTable(f"Latency of {side}s, quantiles; intervals of counts alone", heads, tuple(rows))


def _difference(
    point: PointData, side: str, arms: Mapping[str, Mapping[int, int]], name: str, at: float
) -> tuple[Figure, Figure, Figure]:
    """The candidate's quantile minus the baseline's, with an interval from order statistics of both arms.

    Square roots of summed squares of the arms' own half-widths (Zou and Donner 2008); the I/Os of a launch are not
    independent, so that the interval is the narrowest that can be true.
    """
    if len(arms) < 2 or at == 1.0:
        return NONE, NONE, NONE
    found = [_with_ends(arms[arm], at) for arm in ARMS]
    if found[0] is None or found[1] is None:
        return NONE, NONE, NONE
    (one, one_low, one_high), (other, other_low, other_high) = found[0], found[1]
    middle = other - one
    low = middle - math.hypot(other - other_low, one_high - one)
    high = middle + math.hypot(other_high - other, one - one_low)
    source = f"samples:difference:{name}:{side}:{'/'.join(point.planned.key)}"
    return _signed(middle, source), _signed(low, source), _signed(high, source)


def _signed(nanoseconds: float, source: str) -> Figure:
    shown = quantity(nanoseconds, "ns", source)
    return shown if nanoseconds <= 0 else Figure(f"+{shown.text}", shown.value, source, shown.divisor)


_BEYOND = 10
_TWO_SIDED = 1.96


def _supports(bins: Mapping[int, int], at: float) -> bool:
    """Whether so many I/Os lie beyond a quantile that it has a value; the largest one always has."""
    return at == 1.0 or sum(bins.values()) * (1 - at) >= _BEYOND


def _with_ends(bins: Mapping[int, int], at: float) -> tuple[int, int, int] | None:
    """A quantile with the order statistics that bound it; None where the counts do not support it."""
    if not bins or not _supports(bins, at):
        return None
    reach = _TWO_SIDED * math.sqrt(at * (1 - at) / sum(bins.values()))
    value, low, high = (quantile(bins, min(max(share, 0.0), 1.0)) for share in (at, at - reach, at + reach))
    return None if value is None or low is None or high is None else (value, low, high)


def _tail(ident: str, side: str, arms: Mapping[str, Mapping[int, int]]) -> Chart | None:
    """The share of I/Os that took longer, both arms, on two logarithmic axes: the tail that a histogram hides."""
    curves = [(arm, _slower(bins)) for arm, bins in arms.items()]
    if any(len(marks) < 2 for _, marks in curves):
        return None
    edges = _edges(*_reach(arms))
    least = min(share for _, marks in curves for _, share in marks)
    powers = range(0, math.floor(math.log10(least)) - 1, -1)
    ticks = tuple((10.0**power, f"{100 * 10.0**power:g} %") for power in powers)
    title = f"{side.capitalize()}s that took longer"
    drawn = [PlottedCurve(arm, "", tuple(Mark(x, y) for x, y in marks)) for arm, marks in curves]
    picture = tail_panel(
        ident, title, f"Share of {side}s that took longer than a latency, both arms; quantiles in the table.",
        drawn, latency_axis(edges[0], edges[-1]),
        Axis("of I/O", 10.0 ** powers[-1], 1.0, ticks, logarithmic=True),
    )  # fmt: skip
    return Chart(title, picture, None)


_MOST_STEPS = 60


def _slower(bins: Mapping[int, int]) -> list[tuple[float, float]]:
    """(latency, share of I/Os above it) in rising order, thinned where there are more than can be seen apart."""
    total, left = sum(bins.values()), sum(bins.values())
    marks: list[tuple[float, float]] = []
    for value in sorted(bins):
        left -= bins[value]
        if left > 0:
            marks.append((float(max(value, 1)), left / total))
    if len(marks) <= _MOST_STEPS:
        return marks
    wanted = [math.log(marks[-1][1]) * step / _MOST_STEPS for step in range(_MOST_STEPS + 1)]
    kept: list[tuple[float, float]] = []
    for mark in marks:
        if len(kept) < len(wanted) and math.log(mark[1]) <= wanted[len(kept)]:
            kept.append(mark)
    return [*kept, marks[-1]] if kept[-1] != marks[-1] else kept


def _table(
    point: PointData,
    title: str,
    side: str,
    edges: Sequence[float],
    shares: Mapping[str, Sequence[float]],
) -> ChartTable:
    rows: list[tuple[Figure | str, ...]] = []
    for number, (low, high) in enumerate(_pairs(edges)):
        found = [shares[arm][number] if arm in shares else None for arm in ARMS]
        if any(found):
            label = f"{latency_text(low)} to {latency_text(high)}"
            rows.append(
                (
                    Figure(label, None, "samples:edges"),
                    *(_share(point, side, arm, value) for arm, value in zip(ARMS, found, strict=True)),
                )
            )
    return ChartTable(title, ("Latency", "Baseline", "Candidate"), tuple(rows))


def _quantile(point: PointData, side: str, arm: str, bins: Mapping[int, int] | None, name: str, at: float) -> Figure:
    found = quantile(bins, at) if bins and _supports(bins, at) else None
    where = f"{name}:{side}:{'/'.join(point.planned.key)}:{arm}"
    return NONE if found is None else quantity(found, "ns", f"samples:quantile:{where}")


def _share(point: PointData, side: str, arm: str, value: float | None) -> Figure:
    if value is None or math.isnan(value):
        return NONE
    return Figure(f"{100 * value:.2f} %", 100 * value, f"samples:share:{side}:{'/'.join(point.planned.key)}:{arm}")
