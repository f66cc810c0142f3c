# SPDX-License-Identifier: Apache-2.0
"""Axes with the field's own labels: block sizes, rates from zero, latencies, times of day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from storqual.base.text import MINUS
from storqual.report.charts.svg import Axis, decade_ticks, nice_ceiling, nice_ticks, power_ticks
from storqual.report.figures import scale_for
from storqual.run import PlannedPoint

_MINUTE_STEPS = (1 / 12, 1 / 6, 1 / 4, 1 / 2, 1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 7200, 14400)
_MOST_CLOCK_TICKS = 8
_LABELS_ACROSS = 8
_FAR_APART = 10


def short(value: float) -> str:
    """A tick's number, as short as it can be: 0, 250, 12k, 1.5M; a true minus sign."""
    size = abs(value)
    for divisor, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= divisor:
            text = f"{size / (1e3 if suffix == 'k' else divisor):g}{suffix}"
            break
    else:
        text = f"{size:g}"
    return MINUS + text if value < 0 else text


def value_axis(unit: str, highest: float) -> Axis:
    """An axis from zero to above `highest`."""
    top = nice_ceiling(highest * 1.02)
    return Axis(unit, 0.0, top, tuple((tick, short(tick)) for tick in nice_ticks(0.0, top, 4)))


def rate_axis(unit: str, values: Sequence[float]) -> Axis:
    """An axis from zero; logarithmic where the values are far apart, so that the lowest curve is still one."""
    low, high = min(values), max(values)
    if high < _FAR_APART * low:
        return value_axis(unit, high)
    low, high = low / 1.5, high * 1.5
    return Axis(unit, low, high, tuple((tick, short(tick)) for tick in decade_ticks(low, high, 5)), logarithmic=True)


def size_axis(name: str, values: Sequence[float], *, sizes: bool) -> Axis:
    """A base-2 axis over the values that occur; with few values each has its tick, labelled as a size or a count."""
    low, high = min(values), max(values)
    present = sorted(set(values))
    ticks = tuple(present) if len(present) <= 6 else power_ticks(low, high, 6)
    if high == low:
        low, high = low / 2, high * 2
    labels = tuple((tick, _size_label(tick) if sizes else short(tick)) for tick in _apart(ticks, high / low))
    return Axis(name, low, high, labels, logarithmic=True)


def _apart(ticks: Sequence[float], span: float) -> tuple[float, ...]:
    """Ticks of a logarithmic axis whose labels do not run into each other: an eighth of it from one to the next."""
    kept = list(ticks[:1])
    for tick in ticks[1:]:
        if tick / kept[-1] >= span ** (1 / _LABELS_ACROSS):
            kept.append(tick)
    return tuple(kept)


def _size_label(size: float) -> str:
    """A block size in few characters: 512, 4k, 64k, 1M."""
    for power, suffix in ((3, "G"), (2, "M"), (1, "k")):
        if size >= 1024**power:
            return f"{size / 1024**power:g}{suffix}"
    return f"{size:g}"


def latency_text(nanoseconds: float) -> str:
    """A latency on an axis: 500 µs, 2 ms."""
    scale = scale_for("ns", [nanoseconds])
    return f"{nanoseconds / scale.divisor:.3g} {scale.unit}"


def latency_axis(low: float, high: float) -> Axis:
    """A logarithmic axis of latencies in nanoseconds."""
    ticks = decade_ticks(low, high, 5)
    if len(ticks) < 2:
        ticks = tuple(low * (high / low) ** (step / 3) for step in range(4))
    return Axis("latency", low, high, tuple((tick, latency_text(tick)) for tick in ticks), logarithmic=True)


def share_axis(highest: float) -> Axis:
    """Shares of all I/O in percent, from zero."""
    top = nice_ceiling(highest * 102, 3) / 100
    ticks = nice_ticks(0.0, top * 100, 3)
    return Axis("of I/O", 0.0, top, tuple((tick / 100, f"{tick:g} %") for tick in ticks))


def percent_axis(name: str, reach: float) -> Axis:
    """Deviations in percent, as far below zero as above."""
    top = nice_ceiling(reach * 1.05, 2)
    ticks = nice_ticks(-top, top, 4)
    return Axis(name, -top, top, tuple((tick, f"{'+' if tick > 0 else ''}{short(tick)} %") for tick in ticks))


def clock_axis(start: float, end: float) -> Axis:
    """Time of day in UTC at round minutes; days are named where the campaign crosses midnight."""
    span = max(end - start, 1.0)
    step = next((60.0 * m for m in _MINUTE_STEPS if span / (60.0 * m) <= _MOST_CLOCK_TICKS), span)
    first = math.ceil(start / step)
    times = [number * step for number in range(first, math.floor(end / step) + 1)]
    days = datetime.fromtimestamp(start, UTC).date() != datetime.fromtimestamp(end, UTC).date()
    form = "%d %b %H:%M" if days else "%H:%M:%S" if step < 60 else "%H:%M"
    ticks = tuple((at, datetime.fromtimestamp(at, UTC).strftime(form)) for at in times)
    return Axis("UTC", start, end, ticks)


_PREFERRED = ("bs", "iodepth", "drives", "ports", "numjobs", "rwmixread")


def levels(point: PlannedPoint) -> dict[str, Any]:
    """All factors of a point, varied settings included."""
    return {**point.factors, **point.varied}


def along(points: Iterable[PlannedPoint]) -> str | None:
    """The factor to put on the horizontal axis: the first of the usual ones that has several numeric levels.

    Block size wins wherever it varies; with nothing that varies it is still the axis. None without any number.
    """
    seen: dict[str, set[Any]] = {}
    for point in points:
        for name, value in point.factors.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
                seen.setdefault(name, set()).add(value)
    several = [name for name in _PREFERRED if len(seen.get(name, ())) > 1]
    several += [name for name in seen if name not in _PREFERRED and len(seen[name]) > 1]
    return several[0] if several else next((name for name in (*_PREFERRED, *seen) if name in seen), None)


def combination(point: PlannedPoint, names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The levels of the factors `names` at a point."""
    have = levels(point)
    return tuple((name, have[name]) for name in names if name in have)
