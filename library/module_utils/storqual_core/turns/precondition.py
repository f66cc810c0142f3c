# SPDX-License-Identifier: Apache-2.0
"""Bring drives to a known state before they are measured: purge, fill, steady state; each stage is done once.

SNIA SSS-PTS: purge; workload-independent preconditioning (twice the capacity in sequential writes of 128 KiB);
workload-dependent rounds. All drives of a block are treated at once, and the rounds are judged by their sum. A drive
that does not settle is measured all the same: its report says so.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..host.counters import Meter
from ..kit.command import Runner
from ..kit.errors import ToolError
from .batch_file import Batch, FillAsk, SteadyAsk
from .batch_run import StopRequestedError
from .fio_job import FioAsk, FioProcess, FioTarget, launch_seed, section_words
from .fio_result import is_unable, read_result
from .launch import Launched, empty_folder, run_fio
from .spool import Spool
from .targets import TargetDevice, hold_for_format, place_of

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
    argv = [program, "--output-format=json+", "--eta=never", "--name=global", "--rw=write", f"--bs={ask.bs}"]
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


_DISCARD_S = 3600.0
_FORMAT_S = 24 * 3600.0
_UNMAP_BLOCKS = 65536
_UNKNOWN_COMMAND = (5, 9)
"""Exit statuses of sg3_utils for a drive that refuses a field of a command, or does not know the command."""
_UNKNOWN_OPTION = ("unrecognized option", "invalid option", "unknown option")


def discard(target: FioTarget, place: TargetDevice, runner: Runner) -> str:
    """Discard what fio may touch of a drive; how it was done, or why it cannot be. Raises ToolError.

    `blkdiscard` where the kernel discards, else UNMAP by `sg_unmap` where the drive says that it knows it. The
    guard's own areas at both ends are left as they are.
    """
    if target.is_file or place.device is None:
        return "not purged: a file has no media of its own"
    if _number(place.device / "queue" / "discard_max_bytes"):
        argv = ["blkdiscard", f"--offset={target.offset}", f"--length={target.size}"]
        # we hold the node exclusively ourselves; releases before 2.36 do not ask for that, and know no --force
        ended = runner([*argv, "--force", target.node], timeout=_DISCARD_S)
        if ended.rc != 0 and any(words in ended.stderr for words in _UNKNOWN_OPTION):
            ended = runner([*argv, target.node], timeout=_DISCARD_S)
        ended.expect()
        return "discarded by blkdiscard"
    if _unmaps(target.node, runner):
        block = _number(place.device / "queue" / "logical_block_size") or 512
        first, last = target.offset // block, (target.offset + target.size) // block - 1
        span = f"--all={first},{_UNMAP_BLOCKS},{last}"
        runner(["sg_unmap", "--force", span, target.node], timeout=_DISCARD_S).expect()
        return "unmapped by sg_unmap"
    return "not purged: neither kernel nor drive discards"


def format_drive(node: str, runner: Runner, *, flash: bool = False) -> str:
    """Format a whole drive, with the block size that it has; how. Raises ToolError.

    Flash behind SCSI is sanitized where it knows that: SNIA's purge. Others, and one that does not, are formatted.
    """
    if "nvme" in Path(node).name:
        runner(["nvme", "format", node, "--ses=1", "--force"], timeout=_FORMAT_S).expect()
        return "formatted by nvme format, user data erased"
    if flash:
        # without --quick it counts down for a person who could stop it; without --early it waits for the end
        ended = runner(["sg_sanitize", "--block", "--quick", node], timeout=_FORMAT_S)
        if ended.rc not in _UNKNOWN_COMMAND:
            ended.expect()
            return "sanitized by sg_sanitize, block erase"
    # without --quick it counts down for a person who could stop it
    runner(["sg_format", "--format", "--quick", node], timeout=_FORMAT_S).expect()
    return "formatted by sg_format"


def _unmaps(node: str, runner: Runner) -> bool:
    """Whether the drive's logical block provisioning page says that it knows UNMAP; no when it has no such page."""
    try:
        ended = runner(["sg_vpd", "--page=lbpv", node], timeout=60.0)
    except ToolError:
        return False
    lines = (line.strip().lower() for line in ended.stdout.splitlines())
    return ended.rc == 0 and any(line.startswith("unmap command supported (lbpu): 1") for line in lines)


def is_flash(place: TargetDevice) -> bool:
    """Whether the medium of a drive does not turn, as the kernel has it from the drive; no for a file."""
    if place.device is None:
        return False
    try:
        return (place.device / "queue" / "rotational").read_text(encoding="ascii").strip() == "0"
    except OSError:
        return False


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return 0


class Preconditioner:
    """Brings the targets of a block to the state that it asks for.

    `tell` says what goes on, and raises StopRequestedError when it is to go on no more.
    """

    def __init__(
        self,
        batch: Batch,
        *,
        meter: Meter,
        tell: Callable[[str], None],
        stopping: Callable[[], bool],
        runner: Runner,
        program: str,
    ) -> None:
        self._batch = batch
        self._meter = meter
        self._tell = tell
        self._stopping = stopping
        self._runner = runner
        self._program = program

    def format(self, spool: Spool, ready: Callable[[], None]) -> None:
        """Format the drives where that is asked for and was not done; afterwards they are scratch again.

        `ready` is called when they are held: it may take hours. Raises GuardRefusalError, ToolError.
        """
        ask = self._batch.precondition
        if ask is None or ask.purge != "format" or "purge" in spool.held.preconditioned:
            return
        with hold_for_format(self._batch) as held:
            ready()
            done = {}
            for drive, node in held.items():
                flash = is_flash(place_of(FioTarget(drive, node, 0, 0)))
                if drive in ask.beside or (ask.media == "flash" and not flash):
                    continue
                done[drive] = format_drive(node, self._runner, flash=flash)
            # only now: the format of a namespace may have erased its siblings, their stamps included
            for drive in held:
                if drive in done or (done and drive in ask.beside):
                    held.stamp(drive)
        if done:
            spool.append({"kind": "precondition", "stage": "purge", "report": done})

    def run(
        self, spool: Spool, targets: Mapping[str, FioTarget], places: Mapping[str, TargetDevice], folder: Path
    ) -> None:
        """The other stages, on targets that are held. Raises ToolError, StopRequestedError."""
        ask, done = self._batch.precondition, spool.held.preconditioned
        if ask is None:
            return
        if ask.media == "flash":
            others = [drive for drive in targets if not is_flash(places[drive])]
            targets = {drive: target for drive, target in targets.items() if drive not in others}
            if others and "as_found" not in done:
                spool.append({"kind": "precondition", "stage": "as_found", "report": others})
            if not targets:
                return
        if ask.purge == "discard" and "purge" not in done:
            self._tell("preconditioning: discard")
            purged = {drive: discard(target, places[drive], self._runner) for drive, target in targets.items()}
            spool.append({"kind": "precondition", "stage": "purge", "report": purged})
        if ask.fill is not None and "fill" not in done:
            self._tell(f"preconditioning: fill, {ask.fill.times} x capacity")
            filled = fill(ask.fill, targets, folder, stopping=self._stopping, program=self._program)
            spool.append({"kind": "precondition", "stage": "fill", "report": filled})
        if ask.steady is not None and "steady" not in done:
            settled = steady(
                ask.steady,
                targets,
                lambda fio: self._round(fio, list(targets.values()), folder),
                lambda number: self._tell(f"preconditioning: steady state, round {number}"),
            )
            spool.append({"kind": "precondition", "stage": "steady", "report": settled})
        empty_folder(folder)

    def _round(self, ask: FioAsk, targets: list[FioTarget], folder: Path) -> Launched:
        for variant in ask.variants:
            empty_folder(folder)
            launched = run_fio(
                ask.using(variant),
                targets,
                seed=launch_seed(self._batch.run, "precondition", time.monotonic_ns()),
                folder=folder,
                meter=self._meter,
                tick=lambda _rate: None,
                stopping=self._stopping,
                program=self._program,
            )
            if not is_unable(launched.result) or any(launched.result.jobs_ios):
                break
        return launched


SNIA_WINDOW = 5
SNIA_RANGE = 0.20
SNIA_EXCURSION = 0.10
"""SNIA SSS-PTS: the last five rounds; range at most 20 %, excursion of the fitted line at most 10 %."""
FEWEST_SECONDS = 300
"""The drift is tested on at least so much: in a shorter window the end of a slow decay looks level."""
DRIFT_LIMIT = 0.05
_NORMAL_95 = 1.6448536269514722


@dataclass(frozen=True)
class Snia:
    """SNIA's two numbers over the last window of rounds, as fractions of its mean, and whether both are in limits."""

    range: float
    excursion: float
    steady: bool


@dataclass(frozen=True)
class Slope:
    """The change of the fitted line across a window, as a fraction of its mean, with its 90 % interval."""

    change: float
    low: float
    high: float
    seconds: int

    @property
    def level(self) -> bool:
        """Whether a drift of more than `DRIFT_LIMIT` either way is excluded (two one-sided tests, Schuirmann)."""
        return self.low >= -DRIFT_LIMIT and self.high <= DRIFT_LIMIT


def snia_of(rounds: Sequence[float]) -> Snia | None:
    """SNIA's numbers over the last five `rounds` (one mean each); None for fewer, or a mean that is not above zero.

    The excursion is the least-squares slope times the four intervals between five rounds.
    """
    window = [float(value) for value in rounds[-SNIA_WINDOW:]]
    mean = sum(window) / max(len(window), 1)
    if len(window) < SNIA_WINDOW or not mean > 0:
        return None
    slope = _line(window)[1]
    spread = (max(window) - min(window)) / mean
    excursion = abs(slope) * (SNIA_WINDOW - 1) / mean
    return Snia(spread, excursion, spread <= SNIA_RANGE and excursion <= SNIA_EXCURSION)


def drift_of(seconds: Sequence[float]) -> Slope | None:
    """The drift of a series of seconds; None for fewer than ten, or a mean that is not above zero.

    Neighbouring seconds are alike, so the residuals' lag-1 correlation widens the interval by what an AR(1) series of
    so many seconds is worth.
    """
    count = len(seconds)
    mean = sum(seconds) / max(count, 1)
    if count < 10 or not mean > 0:
        return None
    level, slope = _line(seconds)
    residuals = [value - level - slope * place for place, value in enumerate(seconds)]
    squares = sum(value * value for value in residuals)
    along = sum((place - (count - 1) / 2) ** 2 for place in range(count))
    error = math.sqrt(squares / (count - 2) / along)
    if squares > 0:
        correlation = sum(a * b for a, b in zip(residuals, residuals[1:])) / squares
        correlation = min(max(correlation, 0.0), 0.99)
        error *= math.sqrt((1 + correlation) / (1 - correlation))
    width = (count - 1) / mean
    return Slope(slope * width, (slope - _NORMAL_95 * error) * width, (slope + _NORMAL_95 * error) * width, count)


def is_settled(seconds: Sequence[float]) -> Slope | None:
    """The drift of the last half of all data, of at least `FEWEST_SECONDS`; None before there is as much."""
    window = max(len(seconds) // 2, FEWEST_SECONDS)
    return drift_of(seconds[-window:]) if len(seconds) >= window else None


def settled_from(seconds: Sequence[float], group: int = 5) -> int:
    """How many seconds a launch's start-up transient lasts: MSER-5 (White and Robinson 2010).

    The cut minimises the standard error of what is left, over means of `group` seconds, and takes at most half: a
    series that wants more than that cut has not settled, and nothing is cut.
    """
    means: list[float] = [sum(seconds[at : at + group]) / group for at in range(0, len(seconds) - group + 1, group)]
    best, cut = math.inf, 0
    for start in range(len(means) // 2 + 1):
        rest = means[start:]
        if len(rest) < 2:
            break
        mean = sum(rest) / len(rest)
        error = sum((value - mean) ** 2 for value in rest) / len(rest) ** 2
        if error < best * (1 - 1e-12):
            best, cut = error, start
    return cut * group if cut < max(len(means) // 2, 1) else 0


def _line(values: Sequence[float]) -> tuple[float, float]:
    count = len(values)
    middle, mean = (count - 1) / 2, sum(values) / count
    along = sum((place - middle) ** 2 for place in range(count))
    slope = sum((place - middle) * (value - mean) for place, value in enumerate(values)) / along
    return mean - slope * middle, slope
