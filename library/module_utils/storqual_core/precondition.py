# SPDX-License-Identifier: Apache-2.0
"""Bring drives to a known state before they are measured: purge, fill, steady state; each stage is done once.

SNIA SSS-PTS: purge; workload-independent preconditioning (twice the capacity in sequential writes of 128 KiB);
workload-dependent rounds. All drives of a block are treated at once, and the rounds are judged by their sum. A drive
that does not settle is measured all the same: its report says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping

from .errors import ToolError
from .fio_job import FioAsk, FioTarget, section_words
from .fio_process import FioProcess
from .fio_result import read_result
from .launch_run import Launched, StopRequestedError
from .precondition_ask import FillAsk, SteadyAsk
from .steady_state import is_settled, snia_of

__all__ = ["fill", "steady"]

_SLOWEST_BYTES_S = 2e6
_STOP_ASKED_S = 1.0


def fill(
    ask: FillAsk,
    targets: Mapping[str, FioTarget],
    folder: Path,
    *,
    stopping: Callable[[], bool],
    program: str = "fio",
) -> dict[str, Any]:
    """Write every target from end to end, so many times; what was written. Raises ToolError, StopRequestedError."""
    argv = [program, "--output-format=json", "--eta=never", "--name=global", "--rw=write", f"--bs={ask.bs}"]
    files = any(target.is_file for target in targets.values())
    # a file may lie where neither direct nor asynchronous I/O is possible
    if files:
        argv += ["--ioengine=psync", "--direct=0", "--end_fsync=1"]
    else:
        argv += ["--ioengine=libaio", "--direct=1", "--iodepth=32"]
    argv += ["--thread=1", f"--loops={ask.times}"]
    argv += ["--disk_util=0", "--fallocate=none", "--allow_file_create=0", "--refill_buffers=1"]
    for number, target in enumerate(targets.values()):
        argv += [*section_words(number, target), f"--size={target.size}"]
    largest = max(target.size for target in targets.values())
    limit_s = 600.0 + ask.times * largest / _SLOWEST_BYTES_S
    waited = 0.0
    with FioProcess(argv, folder) as fio:
        while not fio.wait(_STOP_ASKED_S):
            waited += _STOP_ASKED_S
            if stopping():
                raise StopRequestedError
            if waited > limit_s:
                raise ToolError(f"the fill did not end within {limit_s:.0f} s")
        ended = fio.collect()
    result = read_result(ended.output, exit_status=ended.exit_status, asked_s=0.0, errors=ended.errors)
    if result.status != "ok":
        raise ToolError(f"the fill ended {result.status}: {result.reason}")
    written = int(result.primitives.get("write_bytes", 0))
    return {"bytes": written, "seconds": round(ended.wall_ns / 1e9, 1), "times": ask.times, "bs": ask.bs}


def steady(
    ask: SteadyAsk, targets: Mapping[str, FioTarget], run: Callable[[FioAsk], Launched], tell: Callable[[int], None]
) -> dict[str, Any]:
    """Rounds of the load until it is level, or as many as asked for; `run` does one, `tell` is told its number.

    Raises ToolError for a round that does not end well: a drive that fails here is no drive to measure.
    """
    capacity = sum(target.size for target in targets.values())
    seconds: list[float] = []
    rounds: list[float] = []
    written, drift = 0, None
    while len(rounds) < ask.rounds:
        tell(len(rounds) + 1)
        launched = run(ask.fio)
        if launched.result.status != "ok":
            raise ToolError(f"round {len(rounds) + 1} ended {launched.result.status}: {launched.result.reason}")
        primitives = launched.result.primitives
        written += sum(int(primitives.get(name, 0)) for name in ("read_bytes", "write_bytes"))
        runtime_ns = max(int(primitives.get("runtime_ns", 0)), 1)
        rounds.append(sum(launched.result.jobs_ios) / runtime_ns * 1e9)
        seconds += launched.series
        drift = is_settled(seconds)
        if written >= ask.volume * capacity and drift is not None and drift.level:
            break
    snia = snia_of(rounds)
    return {
        "rounds": len(rounds),
        "iops": [round(value, 1) for value in rounds],
        "bytes": written,
        "capacities": round(written / max(capacity, 1), 3),
        "steady": bool(drift is not None and drift.level and written >= ask.volume * capacity),
        "drift": None if drift is None else [round(value, 5) for value in (drift.change, drift.low, drift.high)],
        "window_s": 0 if drift is None else drift.seconds,
        "snia": None if snia is None else {"range": snia.range, "excursion": snia.excursion, "steady": snia.steady},
    }
