# SPDX-License-Identifier: Apache-2.0
"""The counts of a synthetic launch: they follow from its rate, so that every metric has a known answer."""

from __future__ import annotations

from typing import Any

_CPUS = 2
_TICK_NS = 10_000_000


def primitives(
    workload: str, rate: float, seconds: float, *, asked: float, size: int, outstanding: int
) -> dict[str, Any]:
    """Counts of one launch that follow from its rate: Little's law for latency, 150 us of CPU per I/O."""
    ios = int(rate * seconds)
    way = "write" if "write" in workload else "read"
    latency = int(outstanding / rate * 1e9) if ios else 0
    wall = int((seconds or 0.05) * 1e9)
    busy = min(int(ios * 150_000), int(0.9 * wall * _CPUS))
    ticks = wall * _CPUS // _TICK_NS
    counts: dict[str, Any] = {
        f"{way}_ios": ios,
        f"{way}_bytes": ios * size,
        f"{way}_lat_sum_ns": latency * ios,
        f"{way}_lat_max_ns": latency * 4,
        f"{way}_bins": _bins(latency, ios),
        "runtime_ns": int(seconds * 1e9),
        "asked_runtime_ns": int(asked * 1e9),
        "fio_wall_ns": int((seconds + 0.9) * 1e9),
        "overhead_ns": 60_000_000,
        "fio_user_ns": busy // 5,
        "fio_system_ns": busy * 3 // 5,
        "fio_context_switches": ios,
        "cpu_count": _CPUS,
        "wall_ns": wall,
        "tick_ns": _TICK_NS,
        "cpuidle_ns": wall * _CPUS - busy - int(0.01 * wall),
        "interrupts": ios + 100,
        "adapter_interrupts": ios,
        "context_switches": 2 * ios + 200,
        f"disk_{way}_sectors": ios * size // 512,
        f"disk_{way}_ios": ios,
        "idle_wall_ns": 1_000_000_000,
        "idle_cpuidle_ns": int((1 - 0.005) * _CPUS * 1e9),
    }
    split = {
        "user": busy // 5,
        "nice": 0,
        "system": busy * 3 // 5,
        "irq": 0,
        "softirq": busy // 5,
        "steal": 0,
        "iowait": 0,
    }
    for name, nanoseconds in split.items():
        counts[f"stat_{name}_ticks"] = nanoseconds // _TICK_NS
        counts[f"idle_stat_{name}_ticks"] = 0
    counts["stat_idle_ticks"] = ticks - sum(counts[f"stat_{name}_ticks"] for name in split)
    counts["idle_stat_idle_ticks"] = 1_000_000_000 * _CPUS // _TICK_NS
    return counts


def _bins(latency: int, ios: int) -> dict[str, int]:
    """A small histogram around the mean: 90 %, 9 % at twice, the rest at four times the latency."""
    most, some = int(ios * 0.9), int(ios * 0.09)
    bins = {latency: most, latency * 2: some, latency * 4: ios - most - some}
    return {str(nanoseconds): count for nanoseconds, count in bins.items() if count}
