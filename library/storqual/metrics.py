# SPDX-License-Identifier: Apache-2.0
"""Every metric: its name, unit, better direction, what it needs, and how it follows from primitives and series.

A metric is a function of stored primitives, so one that is added today judges the runs of last year. What is missing
is unavailable with its reason: never zero, never NaN.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol

from storqual.cpu_time import CpuTime, cpu_time

__all__ = ["METRICS", "Measured", "Merged", "Metric", "Unavailable", "Value", "merged"]

MB, MIB, KIB, TB = 10**6, 1 << 20, 1 << 10, 10**12
_BEYOND = 10
"""A percentile needs at least this many completions beyond it (field practice; an order statistic's own noise)."""
_DIP_MADS = 3.0
_MAD_TO_SD = 1.4826


class Measured(Protocol):
    """What a metric is computed from: a sample, or several merged."""

    @property
    def primitives(self) -> Mapping[str, Any]:
        """Counts, bytes, nanoseconds, ticks and histogram bins."""

    @property
    def series(self) -> Mapping[str, Sequence[float]]:
        """Values per second."""


@dataclass(frozen=True)
class Value:
    """A number in the metric's unit, and where it came from when there are several ways."""

    value: float
    source: str = ""


@dataclass(frozen=True)
class Unavailable:
    """No number, and why."""

    reason: str


@dataclass(frozen=True)
class Merged:
    """Several launches as one: counts, times and bins added up, series one after the other."""

    primitives: Mapping[str, Any]
    series: Mapping[str, Sequence[float]]


def merged(samples: Iterable[Measured]) -> Merged:
    """Add up what can be added: percentiles come from added bins, never from averaged percentiles."""
    counts: dict[str, Any] = {}
    series: defaultdict[str, list[float]] = defaultdict(list)
    for sample in samples:
        for name, value in sample.primitives.items():
            if isinstance(value, Mapping):
                bins = counts.setdefault(name, {})
                for key, count in value.items():
                    bins[key] = bins.get(key, 0) + count
            elif name.endswith("_max_ns") or name in ("cpu_count", "tick_ns"):
                counts[name] = max(counts.get(name, value), value)
            else:
                counts[name] = counts.get(name, 0) + value
        for name, values in sample.series.items():
            series[name] += values
    return Merged(MappingProxyType(counts), MappingProxyType(dict(series)))


Function = Callable[[Measured], Value | Unavailable]


@dataclass(frozen=True)
class Metric:
    """One metric. `needs`: primitives without which it can never be answered, alternatives written `a|b`.

    `kind` says how arms are compared: a rate or a time by its log-ratio, a count by a count rule.
    """

    name: str
    label: str
    unit: str
    better: Literal["higher", "lower"]
    needs: tuple[str, ...]
    kind: Literal["rate", "time", "ratio", "count"]
    function: Function

    def value(self, sample: Measured) -> Value | Unavailable:
        """The metric of one sample or of several merged ones."""
        for need in self.needs:
            if not any(name in sample.primitives or name in sample.series for name in need.split("|")):
                return Unavailable(f"{need.replace('|', ' or ')} was not recorded")
        found = self.function(sample)
        if isinstance(found, Value) and not math.isfinite(found.value):
            return Unavailable("the recorded counts give no finite number")
        return found


def _sum(sample: Measured, kind: str, what: str) -> int:
    """Reads, writes or both of one primitive."""
    return sum(int(sample.primitives.get(f"{side}_{what}", 0)) for side in _SIDES[kind])


_SIDES = {"": ("read", "write"), "read": ("read",), "write": ("write",)}


def _rate(kind: str, what: str, unit: float, sample: Measured) -> Value | Unavailable:
    runtime = float(sample.primitives["runtime_ns"])
    if runtime <= 0:
        return Unavailable("the launch ran for no time")
    total = _sum(sample, kind, what)
    if total == 0:
        return Unavailable(f"no {kind or 'I/O'} was completed")
    return Value(total * 1e9 / runtime / unit)


def _latency_mean(kind: str, sample: Measured) -> Value | Unavailable:
    sides = [side for side in _SIDES[kind] if sample.primitives.get(f"{side}_ios")]
    if not sides or any(f"{side}_lat_sum_ns" not in sample.primitives for side in sides):
        return Unavailable(f"no {kind or 'I/O'} latency was recorded")
    return Value(_sum(sample, kind, "lat_sum_ns") / _sum(sample, kind, "ios") / 1e3)


def _latency_max(kind: str, sample: Measured) -> Value | Unavailable:
    found = [
        sample.primitives[f"{side}_lat_max_ns"] for side in _SIDES[kind] if f"{side}_lat_max_ns" in sample.primitives
    ]
    return Value(max(found) / 1e3) if found else Unavailable(f"no {kind or 'I/O'} latency was recorded")


def _percentile(kind: str, percent: float, sample: Measured) -> Value | Unavailable:
    """From fio's own histogram: bins added over jobs, drives and directions; the bin's value is fio's (in ns)."""
    bins: defaultdict[int, int] = defaultdict(int)
    for side in _SIDES[kind]:
        for key, count in (sample.primitives.get(f"{side}_bins") or {}).items():
            bins[int(key)] += int(count)
    total = sum(bins.values())
    if total == 0:
        return Unavailable(f"no {kind or 'I/O'} latency histogram was recorded")
    beyond = total * (1 - percent / 100)
    # a hair of tolerance: 100,000 completions do have ten beyond p99.99
    if beyond < _BEYOND * (1 - 1e-9):
        return Unavailable(f"only {beyond:.3g} of {total} completions lie beyond p{percent:g}, {_BEYOND} are needed")
    rank = math.ceil(total * percent / 100 - 1e-9)
    seen = 0
    for key in sorted(bins):
        seen += bins[key]
        if seen >= rank:
            return Value(key / 1e3, "merged bins")
    raise AssertionError("a histogram holds its own total")


def _per(part: Callable[[CpuTime], float | None], what: str, sample: Measured) -> Value | Unavailable:
    """CPU microseconds for each I/O or KiB, inside the window in which the CPU was watched."""
    found = cpu_time(sample.primitives)
    if isinstance(found, str):
        return Unavailable(found)
    busy = part(found)
    if busy is None:
        return Unavailable(f"{found.source} cannot tell the parts of CPU time apart")
    work = _sum(sample, "", "ios") if what == "io" else _sum(sample, "", "bytes") / KIB
    window = found.wall_ns / float(sample.primitives["runtime_ns"]) if found.wall_ns else 1.0
    if work <= 0 or window <= 0:
        return Unavailable("no I/O was completed")
    return Value(max(busy, 0.0) / 1e3 / (work * window), found.source)


def _fio_cpu(what: str, sample: Measured) -> Value | Unavailable:
    busy = float(sample.primitives["fio_user_ns"]) + float(sample.primitives["fio_system_ns"])
    work = _sum(sample, "", "ios") if what == "io" else _sum(sample, "", "bytes") / KIB
    return Value(busy / 1e3 / work, "fio's own rusage") if work else Unavailable("no I/O was completed")


def _count_per_io(name: str, sample: Measured) -> Value | Unavailable:
    window = float(sample.primitives.get("wall_ns", 0)) / float(sample.primitives["runtime_ns"] or 1)
    work = _sum(sample, "", "ios") * (window or 1.0)
    return Value(float(sample.primitives[name]) / work) if work else Unavailable("no I/O was completed")


def _steal(sample: Measured) -> Value | Unavailable:
    primitives = sample.primitives
    capacity = float(primitives["cpu_count"]) * float(primitives["wall_ns"])
    if capacity <= 0:
        return Unavailable("the CPUs were watched for no time")
    return Value(100.0 * float(primitives["stat_steal_ticks"]) * float(primitives["tick_ns"]) / capacity)


def _dips(sample: Measured) -> Value | Unavailable:
    """Seconds below the median less three scaled median absolute deviations, for each minute."""
    seconds = [float(value) for value in sample.series["iops"]]
    if len(seconds) < _BEYOND:
        return Unavailable(f"{len(seconds)} seconds are too few to tell a dip from noise, {_BEYOND} are needed")
    middle = sorted(seconds)[len(seconds) // 2]
    spread = sorted(abs(value - middle) for value in seconds)[len(seconds) // 2] * _MAD_TO_SD
    # seconds that are all equal have no spread: then a tenth of the level is a dip
    limit = middle - max(_DIP_MADS * spread, 0.1 * middle)
    return Value(60.0 * sum(value < limit for value in seconds) / len(seconds))


def _longest_stall(sample: Measured) -> Value | Unavailable:
    longest = here = 0
    for value in sample.series["iops"]:
        here = here + 1 if value == 0 else 0
        longest = max(longest, here)
    return Value(float(longest)) if sample.series["iops"] else Unavailable("no series was recorded")


def _errors(sample: Measured) -> Value | Unavailable:
    moved = _sum(sample, "", "bytes")
    return Value(float(sample.primitives["fio_errors"]) * TB / moved) if moved else Unavailable("nothing was moved")


def _all() -> Iterable[Metric]:
    """The list, in the order reports show it."""
    for kind in ("", "read", "write"):
        front, words = (f"{kind}_", f"{kind} ") if kind else ("", "")
        ios, moved = (
            (f"{kind}_ios" if kind else "read_ios|write_ios"),
            (f"{kind}_bytes" if kind else "read_bytes|write_bytes"),
        )
        yield Metric(
            f"{front}iops",
            f"{words}IOPS".strip(),
            "IOPS",
            "higher",
            (ios, "runtime_ns"),
            "rate",
            partial(_rate, kind, "ios", 1),
        )
        for unit, size, tail in (("MB/s", MB, "mb_s"), ("MiB/s", MIB, "mib_s")):
            yield Metric(
                f"{front}throughput_{tail}",
                f"{words}throughput",
                unit,
                "higher",
                (moved, "runtime_ns"),
                "rate",
                partial(_rate, kind, "bytes", size),
            )
        sums, tops, bins = (
            (f"{kind}_{what}" if kind else f"read_{what}|write_{what}")
            for what in ("lat_sum_ns", "lat_max_ns", "bins")
        )
        yield Metric(
            f"{front}latency_mean_us",
            f"mean {words}latency",
            "us",
            "lower",
            (ios, sums),
            "time",
            partial(_latency_mean, kind),
        )
        yield Metric(
            f"{front}latency_max_us",
            f"longest {words}latency",
            "us",
            "lower",
            (tops,),
            "time",
            partial(_latency_max, kind),
        )
        for percent in (50, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999):
            yield Metric(
                f"{front}latency_p{percent:.10g}_us",
                f"{words}latency p{percent:.10g}",
                "us",
                "lower",
                (bins,),
                "time",
                partial(_percentile, kind, percent),
            )
    cpu = ("read_ios|write_ios", "cpuidle_ns|stat_idle_ticks|fio_user_ns", "runtime_ns")
    parts: dict[str, Callable[[CpuTime], float | None]] = {
        "": lambda found: found.busy_ns,
        "user_": lambda found: found.user_ns,
        "system_": lambda found: found.system_ns,
        "irq_": lambda found: found.irq_ns,
        "softirq_": lambda found: found.softirq_ns,
    }
    for part, function in parts.items():
        words = f"{part.strip('_')} " if part else ""
        yield Metric(
            f"cpu_{part}us_per_io",
            f"{words}service demand",
            "us",
            "lower",
            cpu,
            "ratio",
            partial(_per, function, "io"),
        )
    yield Metric(
        "cpu_us_per_kib", "service demand per KiB", "us", "lower", cpu, "ratio", partial(_per, parts[""], "kib")
    )
    own = ("fio_user_ns", "fio_system_ns")
    yield Metric("fio_cpu_us_per_io", "fio's own CPU time", "us", "lower", own, "ratio", partial(_fio_cpu, "io"))
    yield Metric(
        "fio_cpu_us_per_kib", "fio's own CPU time per KiB", "us", "lower", own, "ratio", partial(_fio_cpu, "kib")
    )
    for name in ("interrupts", "adapter_interrupts", "context_switches"):
        label = f"{name.replace('_', ' ')} per I/O"
        yield Metric(
            f"{name}_per_io", label, "1/io", "lower", (name, "runtime_ns"), "ratio", partial(_count_per_io, name)
        )
    yield Metric(
        "steal_percent",
        "CPU time stolen",
        "%",
        "lower",
        ("stat_steal_ticks", "tick_ns", "cpu_count", "wall_ns"),
        "count",
        _steal,
    )
    yield Metric("dips_per_min", "dips", "1/min", "lower", ("iops",), "count", _dips)
    yield Metric("longest_stall_s", "longest stall", "s", "lower", ("iops",), "count", _longest_stall)
    yield Metric("io_errors_per_tb", "I/O errors", "1/TB", "lower", ("fio_errors",), "count", _errors)


METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _all()})
"""Every metric by name."""
