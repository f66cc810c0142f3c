# SPDX-License-Identifier: Apache-2.0
"""Run one launch: one fio process with the processor's window laid over fio's own, or one per load at a latency cap.

The window's rule. fio's numbers begin when its ramp ends, and fio tells nobody when that is. The bench program waits
until all of fio's threads exist and then for the first I/O on a target's counters (asked 50 times a second, before
anything is measured), adds the ramp, and takes the first snapshot then. The second is taken when the asked runtime is
over, one asking interval early, so that fio's winding down is never inside. The window is thus at most two intervals
(40 ms) off fio's, and lies inside it; its own length is `wall_ns`. Where counters cannot tell (a file, an engine that
passes the block layer by, a load so thin that no I/O comes in the first second) the ramp is counted from 0.1 s after
the threads exist, which is how long fio holds them back.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

from ..host.counters import TICK_NS, CounterSnapshot, DiskCounters, Meter
from ..kit.quantities import is_whole
from .batch_file import LatencyCap
from .batch_run import StopRequestedError
from .derive import arrived_of, counted_of, counts_of, result_of, series_of
from .fio_job import FioAsk, FioProcess, FioTarget, build_argv, time_limit_s
from .fio_result import FioResult

_ASK_S = 0.02
_TICK_S = 1.0
_START_S = 60.0
_HELD_BACK_S = 0.1
_NO_IO_S = 1.0
_CALLING_ENGINES = frozenset({"sync", "psync", "pvsync", "pvsync2"})
"""Engines whose I/Os are one system call each, which the kernel counts."""
_UNCOUNTED_ENGINES = frozenset({"sg", "io_uring_cmd", "null"})


@dataclass(frozen=True)
class Launched:
    """One fio process that ended: its result, its life, the counters around it, and fio's own output.

    `asked_s` is how long it was to measure, `in_time` whether it ended by itself; `iops_logs` are its I/Os per second
    as it logged them (every `log_ms`), `logs` the other logs by name.
    """

    result: FioResult
    wall_ns: int
    output: str
    errors: str
    logs: Mapping[str, str]
    exit_status: int = 0
    asked_s: float = 0.0
    in_time: bool = True
    before: CounterSnapshot | None = None
    after: CounterSnapshot | None = None
    iops_logs: Sequence[str] = ()
    log_ms: int = 1000
    began_ns: int = 0
    """Of the monotonic clock."""

    @property
    def counted(self) -> dict[str, int]:
        """The window's primitives; none when fio ended before its ramp did."""
        return counted_of(self.before, self.after, TICK_NS)

    @property
    def series(self) -> list[float]:
        return series_of(self.result, self.iops_logs, self.log_ms)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for fio's outputs, in memory where there is one: no disk is written while disks are measured."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    parent = str(memory) if memory.is_dir() and os.access(str(memory), os.W_OK | os.X_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="storqual-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)


def empty_folder(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def run_fio(
    ask: FioAsk,
    targets: Sequence[FioTarget],
    *,
    seed: int,
    folder: Path,
    meter: Meter,
    tick: Callable[[float | None], None],
    stopping: Callable[[], bool],
    program: str = "fio",
    grace_s: float = 120.0,
) -> Launched:
    """Run `ask` on `targets`, with outputs in the empty `folder`.

    `tick` is called about once a second with the I/Os per second since the last call (None: not known). Raises
    StopRequestedError when `stopping` says so, ToolError when fio cannot be started or does not even die.
    """
    prefix = folder / "log"
    argv = build_argv(ask, targets, seed=seed, log_prefix=str(prefix), program=program)
    with FioProcess(argv, folder) as fio:
        watch = _Watch(fio, ask, targets, meter, tick, stopping)
        in_time = watch.run(time_limit_s(ask, grace_s=grace_s))
        if not in_time:
            fio.end(gently=True)
        ended = fio.collect()
    result = result_of(
        ended.output,
        ended.errors,
        exit_status=ended.exit_status,
        asked_s=ask.runtime_s,
        in_time=in_time,
        wall_ns=ended.wall_ns,
    )
    logs = _read_logs(folder)
    return Launched(
        result,
        ended.wall_ns,
        ended.output,
        ended.errors,
        {name: text for name, text in logs.items() if "_iops." not in name},
        exit_status=ended.exit_status,
        asked_s=ask.runtime_s,
        in_time=in_time,
        before=watch.before,
        after=watch.after,
        iops_logs=tuple(text for name, text in logs.items() if "_iops." in name),
        log_ms=ask.log_ms,
        began_ns=fio.began_ns,
    )


class Pulse:
    """Looks up once a second while a launch runs: to stop, or to tell how fast it goes by the I/Os so far."""

    def __init__(
        self, ios: Callable[[], int | None], tick: Callable[[float | None], None], stopping: Callable[[], bool]
    ) -> None:
        self._ios = ios
        self._tick = tick
        self._stopping = stopping
        self._last: tuple[float, int] | None = None
        self.next = time.monotonic() + _TICK_S

    def keep(self) -> None:
        """Look up; a tick where one is due. Raises StopRequestedError."""
        if self._stopping():
            raise StopRequestedError
        now = time.monotonic()
        if now < self.next:
            return
        self.next = max(self.next + _TICK_S, now + 0.5)
        ios = self._ios()
        rate = None
        if ios is not None and self._last is not None and now > self._last[0]:
            rate = max(ios - self._last[1], 0) / (now - self._last[0])
        self._last = None if ios is None else (now, ios)
        self._tick(rate)


class _Watch:
    """What the bench program does while fio runs: as little as possible."""

    def __init__(
        self,
        fio: FioProcess,
        ask: FioAsk,
        targets: Sequence[FioTarget],
        meter: Meter,
        tick: Callable[[float | None], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._fio = fio
        self._ask = ask
        # fio's first thread, the one that keeps its statistics, and the jobs
        self._threads = 2 + ask.numjobs * len(targets)
        self._block_size = ask.bs
        self._meter = meter
        self._pulse = Pulse(self._ios, tick, stopping)
        self.before: CounterSnapshot | None = None
        self.after: CounterSnapshot | None = None

    def run(self, limit_s: float) -> bool:
        """Until fio is gone; False when it outlives `limit_s` seconds. Raises StopRequestedError."""
        deadline = time.monotonic() + limit_s
        if self._until_first_io(deadline) and self._until(time.monotonic() + self._ask.ramp_s, deadline):
            self.before = self._meter.snapshot()
            self._until(time.monotonic() + max(self._ask.runtime_s - _ASK_S, 0.0), deadline)
            self.after = self._meter.snapshot()
        self._until(deadline, deadline)
        return self._fio.wait(0.0)

    def _until_first_io(self, deadline: float) -> bool:
        """Wait for the first I/O; False when fio ends, or the time is over, before it can have come."""
        at_rest: Mapping[str, DiskCounters] = {}
        held_back: float | None = None
        give_up = min(deadline, time.monotonic() + _START_S)
        while time.monotonic() < (give_up if held_back is None else deadline):
            if held_back is None:
                if self._fio.threads() >= self._threads:
                    held_back = time.monotonic()
                    at_rest = {} if self._ask.ioengine in _UNCOUNTED_ENGINES else self._meter.disks()
            elif self._let_go(at_rest, time.monotonic() - held_back):
                return True
            if self._fio.wait(_ASK_S):
                return False
            self._keep_time()
        return False

    def _let_go(self, at_rest: Mapping[str, DiskCounters], held_back_s: float) -> bool:
        """Whether fio's jobs are at work: seen on the counters, or taken to be after a time."""
        if at_rest and _has_begun(at_rest, self._meter.disks()):
            return True
        return held_back_s >= (_NO_IO_S if at_rest else _HELD_BACK_S)

    def _until(self, moment: float, deadline: float) -> bool:
        """Wait for a moment, with a tick a second; False when fio is gone first."""
        while True:
            now = time.monotonic()
            if now >= min(moment, deadline):
                return True
            if self._fio.wait(max(min(moment, deadline, self._pulse.next) - now, 0.0)):
                return False
            self._keep_time()

    def _keep_time(self) -> None:
        try:
            self._pulse.keep()
        except StopRequestedError:
            self._fio.end(gently=True)
            raise

    def _ios(self) -> int | None:
        """I/Os so far: from the disks' counters, for files from what the kernel says of fio's own I/O."""
        disks = self._meter.disks()
        if disks:
            return sum(counters.ios for counters in disks.values())
        with suppress(OSError, ValueError, KeyError):
            text = Path(f"/proc/{self._fio.pid}/io").read_text(encoding="ascii")
            counts = {name: int(value) for name, _, value in (line.partition(":") for line in text.splitlines())}
            transferred = (counts["read_bytes"] + counts["write_bytes"]) // self._block_size
            if self._ask.ioengine not in _CALLING_ENGINES:
                # many I/Os in one call, or in none: what the page cache answers is counted nowhere
                return transferred or None
            return max(counts["syscr"] + counts["syscw"], transferred)
        return None


def _has_begun(before: Mapping[str, DiskCounters], now: Mapping[str, DiskCounters]) -> bool:
    return any(
        counters.in_flight > 0 or name not in before or counters.ios > before[name].ios
        for name, counters in now.items()
    )


def _read_logs(folder: Path) -> dict[str, str]:
    logs = sorted(folder.glob("log_*.log"), key=lambda path: (path.name.split(".")[0], len(path.name), path.name))
    return {path.name: path.read_text(encoding="ascii", errors="replace") for path in logs}


KEPT = 0.99
"""The share of arrivals that must have been issued; below it the load was closed in part."""
_SPREADS = 3.0


def arrivals_per_s(ask: FioAsk, drives: int) -> int | None:
    """Arrivals a second of an open-loop launch on so many drives; None for a closed loop."""
    rate = ask.options.get("rate_iops", "")
    if ask.options.get("rate_process") != "poisson" or not is_whole(rate):
        return None
    return int(rate) * ask.numjobs * drives


def arrivals(per_s: int | None, result: FioResult) -> list[str]:
    """What puts an open-loop launch of so many arrivals a second in doubt; nothing for a closed loop (None)."""
    offered_ios = arrived_of(per_s, result).get("asked_ios")
    if offered_ios is None:
        return []
    issued = sum(result.jobs_ios)
    # arrivals are counts of a Poisson process: their own spread is no shortfall
    if result.status != "ok" or issued >= KEPT * offered_ios - _SPREADS * math.sqrt(offered_ios):
        return []
    share = 100.0 * issued / offered_ios
    return [f"{share:.1f} % of the arrivals were issued: the loop was closed in part, its latencies hide waits"]


def read_again(ask: FioAsk, targets: Sequence[FioTarget], result: FioResult) -> list[str]:
    """What puts a buffered sequential read in doubt: fio began anew at the start of its targets."""
    size = sum(target.size for target in targets)
    if ask.direct or ask.rw != "read" or not size:
        return []
    times = int(result.primitives.get("read_bytes", 0)) / size
    if times <= 1.0:
        return []
    return [f"all of its targets was read {times:.1f} times through the page cache: part of it came from memory"]


MOST_STEPS = 24
"""Launches of a search at most: what brackets the cap closes in on it within half as many."""
CLOSE = 1.25
"""A bracket is narrow enough when its ends differ by this factor, or by one: between them a line will do."""
_PPM = 1000000


@dataclass(frozen=True)
class LoadStep:
    """One launch of a search: its load, I/Os per second, and response time (ns; a mean or a percentile)."""

    load: int
    rate: float
    response_ns: float


def next_load(steps: Sequence[LoadStep], cap_ns: float, *, least: int, most: int) -> int | None:
    """The load to try after `steps`; None when the cap is bracketed narrowly, or is not within `least` to `most`."""
    if not steps:
        return least
    if len(steps) >= MOST_STEPS:
        return None
    above = min((step for step in steps if step.response_ns > cap_ns), key=lambda step: step.load, default=None)
    below = [step for step in steps if step.response_ns <= cap_ns and (above is None or step.load < above.load)]
    if not below:
        return None
    low = max(below, key=lambda step: step.load)
    expected = math.ceil(cap_ns / 1e9 * (above or low).rate)
    if above is None:
        ahead = min(max(expected, 2 * low.load), 4 * low.load, most)
        return ahead if ahead > low.load else None
    if above.load - low.load <= 1 or above.load <= CLOSE * low.load:
        return None
    inside = low.load < expected < above.load
    middle = expected if inside else round(math.sqrt(low.load * above.load))
    # a guess at the edge of the bracket would hardly narrow it
    margin = max((above.load - low.load) // 10, 1)
    return min(max(middle, low.load + margin), above.load - margin)


def expected_ns(steps: Sequence[LoadStep], load: int) -> float:
    """The response time at a load (ns) at most: at the plateau it grows with the load; 0 when nothing was run."""
    below = max((step for step in steps if step.load <= load), key=lambda step: step.load, default=None)
    return below.response_ns * load / below.load if below is not None else 0.0


def at_response(steps: Sequence[LoadStep], response: float) -> tuple[float, float] | None:
    """Rate (1/s) and load at a response time (ns), between the two launches around it; None outside the curve."""
    ordered = sorted(steps, key=lambda step: step.load)
    for low, high in zip(ordered, ordered[1:]):
        if low.response_ns <= response < high.response_ns:
            share = (response - low.response_ns) / (high.response_ns - low.response_ns)
            return low.rate + share * (high.rate - low.rate), low.load + share * (high.load - low.load)
    if ordered and ordered[-1].response_ns == response:
        return ordered[-1].rate, float(ordered[-1].load)
    return None


def response_ns(ios: int, lat_sum_ns: int, bins: Mapping[str, int], share_ppm: int) -> float | None:
    """The mean (`share_ppm` 0) or the percentile of a launch; None without I/O, latencies, or bins that hold all."""
    if ios <= 0 or lat_sum_ns <= 0:
        return None
    if share_ppm == 0:
        return lat_sum_ns / ios
    total = sum(bins.values())
    if total < ios:
        return None
    rank, seen = math.ceil(share_ppm * total / _PPM), 0
    for edge, count in sorted((int(edge), count) for edge, count in bins.items()):
        seen += count
        if seen >= rank:
            return float(edge)
    return None


def read_steps(entries: Sequence[Mapping[str, object]], share_ppm: int) -> tuple[LoadStep, ...]:
    """The steps of a sample's primitive `load_steps`. Raises KeyError, TypeError or ValueError for anything else."""
    steps = []
    for entry in entries:
        ios, runtime_ns = int(str(entry["ios"])), int(str(entry["runtime_ns"]))
        bins = entry.get("bins") or {}
        if not isinstance(bins, dict) or runtime_ns <= 0:
            raise ValueError("a load step without a runtime, or with bins that are none")
        response = response_ns(ios, int(str(entry["lat_sum_ns"])), bins, share_ppm)
        if response is None:
            raise ValueError(f"the launch at load {entry['load']} has no response time")
        steps.append(LoadStep(int(str(entry["load"])), ios / runtime_ns * 1e9, response))
    return tuple(steps)


@dataclass
class Curve:
    """The launches of a search in the order they were run; `notes` are those of fio."""

    ask: LatencyCap
    runs: list[tuple[int, Launched]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def chosen(self) -> Launched:
        """The launch that stands for the search: the first that went wrong, else the highest load within the cap."""
        for _, launched in self.runs:
            if launched.result.status != "ok":
                return launched
        return max(self.runs, key=self._rank)[1]

    def _rank(self, run: tuple[int, Launched]) -> tuple[bool, int]:
        load, launched = run
        step = _step(load, launched, self.ask)
        within = step is not None and step.response_ns <= self.ask.cap_ns
        return within, load if within else -load

    def search_fields(self) -> dict[str, int]:
        return {"load_cap_ns": self.ask.cap_ns, "load_share_ppm": self.ask.share_ppm, "load_most": self.ask.most}


def run_to_cap(ask: LatencyCap, fio: FioAsk, run: Callable[[FioAsk], tuple[Launched, list[str]]]) -> Curve:
    """Search for the cap with `run`, which runs one launch; ends at the first launch that does not end well."""
    curve = Curve(ask)
    steps: list[LoadStep] = []
    load = next_load(steps, ask.cap_ns, least=ask.least, most=ask.most)
    while load is not None:
        launched, notes = run(ask.at(fio, load, expected_ns(steps, load)))
        curve.runs.append((load, launched))
        curve.notes += [note for note in notes if note not in curve.notes]
        step = _step(load, launched, ask)
        if launched.result.status != "ok" or step is None:
            break
        steps.append(step)
        load = next_load(steps, ask.cap_ns, least=ask.least, most=ask.most)
    return curve


def _step(load: int, launched: Launched, ask: LatencyCap) -> LoadStep | None:
    """The step that a launch is; None when it has no response time."""
    counts = counts_of(launched.result)
    response = response_ns(counts["ios"], counts["lat_sum_ns"], counts["bins"], ask.share_ppm)
    if response is None or not counts["runtime_ns"]:
        return None
    return LoadStep(load, counts["ios"] / counts["runtime_ns"] * 1e9, response)
