# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual_core.host.counters import MOST_WINDOWS, TICK_NS, CounterSnapshot, busy_share, watch_idle

if TYPE_CHECKING:
    from collections.abc import Sequence


def snapshot(busy_s: float, at_s: float, *, counts: tuple[str, ...] = ("idle",)) -> CounterSnapshot:
    """Counters of one processor that was busy for so long of the time since it began."""
    idle_ns = round((at_s - busy_s) * 1e9)
    ticks = {"idle": idle_ns // TICK_NS, "user": 0} if "idle" in counts else {"user": 0}
    return CounterSnapshot(round(at_s * 1e9), 1, ticks, 0, 0, idle_ns if "residency" in counts else None, 0)


class Bench:
    """A bench that is busy for the share named of each window; time passes where it is waited for."""

    def __init__(self, shares: Sequence[float]) -> None:
        self.shares = list(shares)
        self.time = self.busy = 0.0
        self.windows = 0

    def wait(self, seconds: float) -> None:
        self.busy += seconds * self.shares[min(self.windows, len(self.shares) - 1)]
        self.time += seconds
        self.windows += 1

    def read(self) -> CounterSnapshot:
        return snapshot(self.busy, self.time)


def test_the_start_of_a_batch_is_not_the_idle_bench() -> None:
    bench = Bench([1.0, 0.02])
    assert busy_share(watch_idle(bench.read, bench.wait, 1.0)) == pytest.approx(0.02)
    assert bench.windows == 2


def test_a_window_that_something_else_filled_is_measured_again() -> None:
    bench = Bench([0.0, 1.0, 0.6, 0.04])
    assert busy_share(watch_idle(bench.read, bench.wait, 1.0)) == pytest.approx(0.04)
    assert bench.windows == 4


def test_of_a_bench_that_is_never_quiet_the_quietest_window_counts() -> None:
    bench = Bench([0.0, 0.5, 0.4, 0.3, 0.35, 0.45])
    assert busy_share(watch_idle(bench.read, bench.wait, 1.0)) == pytest.approx(0.3)
    assert bench.windows == 1 + MOST_WINDOWS


def test_residency_counts_before_ticks_and_no_counter_is_no_share() -> None:
    both = ("idle", "residency")
    assert busy_share((snapshot(0, 0, counts=both), snapshot(0.25, 1, counts=both))) == pytest.approx(0.25)
    assert busy_share((snapshot(0, 0, counts=()), snapshot(0.25, 1, counts=()))) is None
    bench = Bench([0.0])
    silent = watch_idle(lambda: snapshot(0, bench.time, counts=()), bench.wait, 1.0)
    assert (busy_share(silent), bench.windows) == (None, 2)
