# SPDX-License-Identifier: Apache-2.0
"""CPU time of the whole system while I/O ran: which source, and what the idle bench uses taken off.

Sources in order of preference: cpuidle residency, the idle column of /proc/stat (measured, where the busy columns are
sampled), fio's own rusage. Tick accounting's busy columns are no meter on many kernels: over ten equal launches their
CV was 36 to 60 %, against 6 to 9 % of idle residency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CpuTime", "cpu_time"]

MOST_STEAL = 0.01
"""Share of CPU time taken by a hypervisor above which CPU figures mean nothing."""


@dataclass(frozen=True)
class CpuTime:
    """Nanoseconds of CPU time, all CPUs together; parts are None where the source cannot tell them apart."""

    busy_ns: float
    wall_ns: float
    source: str
    user_ns: float | None = None
    system_ns: float | None = None
    irq_ns: float | None = None
    softirq_ns: float | None = None


def cpu_time(primitives: Mapping[str, Any]) -> CpuTime | str:
    """CPU time of a sample, or why there is none."""
    if "wall_ns" not in primitives or "cpu_count" not in primitives:
        return _own(primitives)
    wall, cpus = float(primitives["wall_ns"]), float(primitives["cpu_count"])
    if wall <= 0:
        return "the CPUs were watched for no time"
    tick = float(primitives.get("tick_ns", 0))
    if float(primitives.get("stat_steal_ticks", 0)) * tick > MOST_STEAL * cpus * wall:
        return "more than 1 % of CPU time was stolen by a hypervisor"
    parts = _parts(primitives, wall, tick)
    if primitives.get("cpuidle_ns"):
        busy = cpus * wall - float(primitives["cpuidle_ns"])
        return CpuTime(
            busy - _background(primitives, wall, cpus, "cpuidle", tick), wall, "cpuidle residency", **parts
        )
    if "stat_idle_ticks" in primitives and tick:
        idle = _idle_ticks(primitives, "stat") * tick
        busy = cpus * wall - idle
        return CpuTime(
            busy - _background(primitives, wall, cpus, "stat", tick), wall, "idle column of /proc/stat", **parts
        )
    return _own(primitives)


def _own(primitives: Mapping[str, Any]) -> CpuTime | str:
    if "fio_user_ns" not in primitives:
        return "no CPU counter was recorded"
    busy = float(primitives["fio_user_ns"]) + float(primitives.get("fio_system_ns", 0))
    return CpuTime(busy, 0.0, "fio's own rusage")


def _idle_ticks(primitives: Mapping[str, Any], front: str) -> float:
    """Idle, waiting for I/O, and stolen: none of them is work of this system."""
    return sum(float(primitives.get(f"{front}_{name}_ticks", 0)) for name in ("idle", "iowait", "steal"))


def _background(primitives: Mapping[str, Any], wall: float, cpus: float, source: str, tick: float) -> float:
    """What the bench uses while nothing is measured, for as long as the window was; 0 when that was not watched."""
    idle_wall = float(primitives.get("idle_wall_ns", 0))
    if idle_wall <= 0:
        return 0.0
    if source == "cpuidle":
        idle = float(primitives.get("idle_cpuidle_ns", cpus * idle_wall))
    else:
        idle = _idle_ticks(primitives, "idle_stat") * tick
    return max(cpus * idle_wall - idle, 0.0) / idle_wall * wall


def _parts(primitives: Mapping[str, Any], wall: float, tick: float) -> dict[str, float | None]:
    """User, system, interrupt and soft interrupt time from the tick columns, background taken off."""
    if not tick or "stat_user_ticks" not in primitives:
        return {}
    scale = wall / float(primitives["idle_wall_ns"]) if primitives.get("idle_wall_ns") else 0.0

    def part(*names: str) -> float:
        busy = sum(float(primitives.get(f"stat_{name}_ticks", 0)) for name in names)
        background = sum(float(primitives.get(f"idle_stat_{name}_ticks", 0)) for name in names)
        return (busy - background * scale) * tick

    return {
        "user_ns": part("user", "nice"),
        "system_ns": part("system"),
        "irq_ns": part("irq"),
        "softirq_ns": part("softirq"),
    }
