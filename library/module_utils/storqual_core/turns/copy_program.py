# SPDX-License-Identifier: Apache-2.0
"""Run one launch by the program that it names: fio, or dd and sg_dd as a second opinion on its figures.

dd and sg_dd know no time: they are started on each drive, asked for their counts when the ramp is over, and ended by
SIGINT, at which they tell them again. The processor's window lies between those two moments. They only read.
"""

from __future__ import annotations

import signal
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..host.counters import Meter, Snapshot
from ..kit.errors import BadInputError
from .copy_result import COPY_PROGRAMS, Copies, Copy, copies_result
from .fio_job import FioAsk, FioProcess, FioTarget, copy_objections
from .launch import Launched, Pulse, run_fio

_ASK_S = 0.02
_START_S = 60.0
_FEWER = 0.1
_SECTOR = 512


def run_program(
    ask: FioAsk,
    targets: Sequence[FioTarget],
    *,
    seed: int,
    folder: Path,
    meter: Meter,
    tick: Callable[[float | None], None],
    stopping: Callable[[], bool],
    program: str = "fio",
) -> Launched:
    """Run `ask` on `targets`, with outputs in the empty `folder`; only fio takes `seed` and `program`.

    `tick` and what is raised are those of `run_fio`; BadInputError for a copy that is more than sequential reads.
    """
    if ask.ioengine not in COPY_PROGRAMS:
        return run_fio(
            ask, targets, seed=seed, folder=folder, meter=meter, tick=tick, stopping=stopping, program=program
        )
    if objections := copy_objections(ask):
        raise BadInputError([f"{ask.ioengine}: {sentence}" for sentence in objections])
    with ExitStack() as stack:
        running = []
        for target in targets:
            own = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=str(folder))))
            running.append(stack.enter_context(FioProcess(copy_argv(ask, target), own)))
        watch = _Watch(running, ask, meter, tick, stopping)
        in_time = watch.run()
        ended = [one.collect() for one in running]
    copies = Copies(
        ask.ioengine,
        ask.bs,
        tuple(Copy(target.drive, one.errors, one.exit_status) for target, one in zip(targets, ended)),
    )
    launched = Launched(
        copies_result(copies, asked_s=ask.runtime_s, in_time=in_time),
        max((one.wall_ns for one in ended), default=0),
        "",
        "",
        {},
        asked_s=ask.runtime_s,
        in_time=in_time,
        before=watch.before,
        after=watch.after,
        copies=copies,
    )
    result = launched.result
    if result.status != "ok":
        return launched
    doubts, notes = beside_the_counters(ask, len(targets), {**result.primitives, **launched.counted})
    return replace(
        launched, result=replace(result, suspect=(*result.suspect, *doubts), notes=(*result.notes, *notes))
    )


def copy_argv(ask: FioAsk, target: FioTarget) -> list[str]:
    return COPY_PROGRAMS[ask.ioengine].argv(target.node, bs=ask.bs, offset=target.offset, size=target.size)


def beside_the_counters(
    ask: FioAsk, targets: int, primitives: Mapping[str, Any]
) -> tuple[Sequence[str], Sequence[str]]:
    """Doubts and notes: whether the drives' own counters saw the reads that the program tells."""
    wall, runtime = primitives.get("wall_ns"), primitives.get("runtime_ns")
    if not wall or not runtime or "disk_read_sectors" not in primitives:
        return (), ("no counter of a drive stands beside what it tells",)
    moved = primitives["disk_read_sectors"] * _SECTOR / wall
    if not moved and not COPY_PROGRAMS[ask.ioengine].is_counted:
        return (), (f"this kernel does not count the reads of {ask.ioengine} per drive: its own count stands alone",)
    told = primitives["read_bytes"] / runtime
    # the two windows are a look apart at each end
    if told - moved <= max(_FEWER * told, 4 * ask.bs * targets / wall):
        return (), ()
    found = f"{ask.ioengine} tells {1e3 * told:.1f} MB/s, the drives' counters {1e3 * moved:.1f} MB/s"
    return (f"not all reads came from the drives: {found}",), ()


class _Watch:
    """What the bench program does while the copies run: as little as possible."""

    def __init__(
        self,
        running: Sequence[FioProcess],
        ask: FioAsk,
        meter: Meter,
        tick: Callable[[float | None], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._running = running
        self._ask = ask
        self._meter = meter
        self._pulse = Pulse(self._ios, tick, stopping)
        self.before: Snapshot | None = None
        self.after: Snapshot | None = None

    def run(self) -> bool:
        """From the ramp to the end; False when a process does not end. Raises StopRequestedError."""
        started = self._until_all(_is_listening, time.monotonic() + _START_S)
        if started and self._until(time.monotonic() + self._ask.ramp_s):
            self._tell(signal.SIGUSR1)
            self.before = self._meter.snapshot()
            if self._until(time.monotonic() + self._ask.runtime_s):
                self.after = self._meter.snapshot()
        self._tell(signal.SIGINT)
        deadline = time.monotonic() + _START_S
        ended = all(one.wait(max(deadline - time.monotonic(), 0.0)) for one in self._running)
        for one in self._running:
            one.end()
        return ended

    def _tell(self, number: int) -> None:
        for one in self._running:
            one.tell(number)

    def _until_all(self, is_so: Callable[[FioProcess], bool], deadline: float) -> bool:
        """Wait for something of every process; False when one ends, or the time is over, first."""
        while not all(is_so(one) for one in self._running):
            if time.monotonic() > deadline or not self._until(time.monotonic() + _ASK_S):
                return False
        return True

    def _until(self, moment: float) -> bool:
        """Wait for a moment, with a tick a second; False when a process is gone first."""
        while True:
            left = min(moment, self._pulse.next) - time.monotonic()
            if self._running[0].wait(max(left, 0.0)) or any(one.wait(0.0) for one in self._running):
                return False
            if time.monotonic() >= moment:
                return True
            self._pulse.keep()

    def _ios(self) -> int | None:
        disks = self._meter.disks()
        return sum(counters.ios for counters in disks.values()) if disks else None


def _is_listening(process: FioProcess) -> bool:
    """Whether it has a handler for SIGUSR1; before that the signal would end it."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split(":")[1], 16) >> (signal.SIGUSR1 - 1) & 1)
    return False
