# SPDX-License-Identifier: Apache-2.0
"""A launch with round numbers, for tests of metrics: 1000 I/Os of 4 KiB a second for 10 s on two processors."""

from typing import Any

from storqual.metrics import Primitives
from storqual_core.host.counters import ERROR_WORDS

PRIMITIVES: dict[str, Any] = {
    "read_ios": 10_000,
    "read_bytes": 40_960_000,
    "write_ios": 0,
    "write_bytes": 0,
    "read_lat_sum_ns": 10_000 * 2_000_000,
    "read_lat_max_ns": 30_000_000,
    "read_bins": {"1000000": 9_000, "2000000": 950, "30000000": 50},
    "runtime_ns": 10_000_000_000,
    "fio_user_ns": 200_000_000,
    "fio_system_ns": 400_000_000,
    "fio_errors": 0,
    "cpu_count": 2,
    "wall_ns": 10_000_000_000,
    "tick_ns": 10_000_000,
    "cpuidle_ns": 18_900_000_000,
    "stat_user_ticks": 20,
    "stat_nice_ticks": 0,
    "stat_system_ticks": 60,
    "stat_irq_ticks": 0,
    "stat_softirq_ticks": 10,
    "stat_idle_ticks": 1_800,
    "stat_iowait_ticks": 90,
    "stat_steal_ticks": 0,
    "idle_wall_ns": 1_000_000_000,
    "idle_cpuidle_ns": 1_990_000_000,
    "idle_stat_idle_ticks": 199,
    "idle_stat_iowait_ticks": 0,
    "idle_stat_steal_ticks": 0,
    "interrupts": 11_000,
    "idle_interrupts": 100,
    "adapter_interrupts": 10_000,
    "context_switches": 20_000,
    "cycles": 3_000_000_000,
    "idle_cycles": 100_000_000,
    **{f"error_{name}": 0 for name in ERROR_WORDS},
}


def launch(without: tuple[str, ...] = (), seconds: list[float] | None = None, **changes: Any) -> Primitives:
    """The launch with some primitives changed or left out."""
    primitives = {**PRIMITIVES, **changes}
    for name in without:
        del primitives[name]
    return Primitives(primitives, {"iops": seconds if seconds is not None else [1000.0] * 10})
