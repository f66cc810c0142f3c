# SPDX-License-Identifier: Apache-2.0
"""From what a launch asks to fio's command line, and the one process that is started, watched and ended.

Decisions that every number rests on:

- `thread`: jobs are threads of one process, so that fio is gone the moment its process is. A killed bench program
  takes its fio with it (PR_SET_PDEATHSIG); forked jobs would run on alone.
- `norandommap`: fio's map of blocks already visited costs memory and time that grow with the drive and with what is
  done already, on the processor that is being measured. Coverage of the drive is not what a launch is for. A workload
  that verifies can ask for the map (`options: {norandommap: 0}`).
- `randseed` is always given and recorded: launch n of a point does the same I/O in both arms, other launches do
  other I/O, so that a cache cannot learn the sequence.
- `lat_percentiles` instead of `clat`: total latency holds the wait for the queue, which completion latency loses as
  soon as the depth is more than the driver takes.
- `clocksource`: fio writes the time into each sector that it writes, and by the monotonic clock it tells the launches
  of a bench apart (`content.py`). Where fio would read the processor's own counter that costs 0.05 us per write.
- `disk_util=0`: the bench program reads the disks' counters itself, once; fio would read them four times a second.
- `allow_file_create=0` and a fixed `size`: a file target is made by whoever claims it and never grows.

The write end of a pipe is inherited by fio and by nothing else. The pipe's end is therefore the moment at which the
last of fio's processes is gone, and waiting for it costs no wake-ups. fio is told by the kernel to die when the bench
program dies, however that happens (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Mapping, Sequence

from ..kit.errors import ToolError
from .entries import EntryReader

_LOAD = (
    "blockalign bssplit iodepth_batch iodepth_batch_complete_min "
    "iodepth_batch_complete_max iodepth_low io_submit_mode serialize_overlap percentage_random "
    "random_distribution random_generator randrepeat norandommap startdelay nonvectored nowait hipri registerfiles "
    "fixedbufs sqthread_poll sqthread_poll_cpu userspace_reap cmdprio_percentage prio prioclass nice"
)
_RATE = (
    "rate rate_min rate_iops rate_iops_min rate_process rate_ignore_thinktime rate_cycle thinktime thinktime_spin "
    "thinktime_blocks thinktime_blocks_type thinktime_iotime latency_target latency_window latency_percentile "
    "latency_run max_latency steadystate steadystate_duration steadystate_ramp_time"
)
_DATA = (
    "buffer_compress_percentage buffer_compress_chunk buffer_pattern dedupe_percentage dedupe_mode refill_buffers "
    "scramble_buffers zero_buffers fsync fdatasync end_fsync sync invalidate verify do_verify verify_async "
    "verify_backlog verify_backlog_batch verify_dump verify_fatal verify_interval verify_pattern"
)
_MACHINE = "cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy mem gtod_reduce clat_percentiles"
PASSED = frozenset(f"{_LOAD} {_RATE} {_DATA} {_MACHINE}".split())
"""The names of fio options that are passed on as they are."""

# a pattern in single quotes is the name of a file, which fio opens as root
_VALUE = re.compile(r"[^\x00-\x1f\x7f']{1,200}\Z")
_MEMORY = frozenset({"malloc", "shm", "shmhuge", "mmap", "mmapshared"})


def read_options(entry: object, bad: Callable[[str, object, str], None]) -> Mapping[str, str]:
    """Options as fio reads them; `bad(key, found, expected)` is called for each that is not passed on."""
    if not isinstance(entry, dict):
        bad("options", entry, "a mapping of fio options")
        return {}
    read = {}
    for name, value in entry.items():
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if name not in PASSED:
            bad(f"options.{name}", value, "an option that cannot lead fio elsewhere (PASSED in fio_job.py)")
        elif name == "mem" and text not in _MEMORY:
            bad("options.mem", value, "one of " + ", ".join(sorted(_MEMORY)))
        elif not isinstance(value, (str, int, float)) or not _VALUE.match(text):
            bad(f"options.{name}", value, "one plain value")
        else:
            read[str(name)] = text
    return read


PERCENTILES = "50:90:95:99:99.5:99.9:99.95:99.99:99.999:99.9999"
_READ_ONLY = frozenset({"read", "randread"})
_PATTERNS = _READ_ONLY | {"write", "randwrite", "rw", "readwrite", "randrw", "trim", "randtrim", "trimwrite"}
_ENGINES = frozenset(
    {"libaio", "io_uring", "io_uring_cmd", "sync", "psync", "pvsync", "pvsync2", "posixaio", "sg", "mmap", "null"}
)
_LOGS = frozenset({"iops", "lat", "hist"})
_KEYS = frozenset(
    "rw bs iodepth numjobs ioengine direct runtime_s ramp_s rwmixread zones options seed fallback logs log_ms".split()  # noqa: SIM905 - one list of words
)
_USUAL = {"iodepth": 1, "numjobs": 1, "direct": 1, "zones": 0, "ramp_s": 0.0, "log_ms": 1000}


@dataclass(frozen=True)
class Variant:
    """The engine and whether the page cache is passed by: the two things that a target may not be able to do."""

    ioengine: str
    direct: int


@dataclass(frozen=True)
class FioAsk:
    """The `fio` part of a launch: pattern, block size (bytes), depth and jobs per drive, times (seconds).

    With `zones` each job has its own part of every target, in order; else all jobs work on all of it.
    """

    rw: str
    bs: int
    iodepth: int
    numjobs: int
    ioengine: str
    direct: int
    runtime_s: float
    ramp_s: float
    rwmixread: int | None
    zones: bool
    options: Mapping[str, str]
    seed: int | None
    fallback: tuple[Variant, ...]
    logs: tuple[str, ...]
    log_ms: int

    @property
    def reads_only(self) -> bool:
        return self.rw in _READ_ONLY

    @property
    def variants(self) -> tuple[Variant, ...]:
        """What to try, in order: as asked, then only what was declared."""
        return (Variant(self.ioengine, self.direct), *self.fallback)

    def using(self, variant: Variant) -> FioAsk:
        return replace(self, ioengine=variant.ioengine, direct=variant.direct)


@dataclass(frozen=True)
class FioTarget:
    """One drive or file as fio gets it: its id, the resolved node or path, where it may begin and how much (bytes).

    `size` 0 means all of it.
    """

    drive: str
    node: str
    offset: int = 0
    size: int = 0
    is_file: bool = False


def launch_seed(run: str, point: str, n: int) -> int:
    """The random seed of launch `n` of `point`: equal in all arms, different for any other launch."""
    digest = hashlib.sha256(f"{run}\0{point}\0{n}".encode()).digest()
    return int.from_bytes(digest[:6], "big") + 1


def time_limit_s(ask: FioAsk, *, grace_s: float = 120.0) -> float:
    """When a launch is given up: what it asks for and time for set-up, error recovery and output (seconds)."""
    return ask.ramp_s + ask.runtime_s * 1.1 + grace_s


def build_argv(
    ask: FioAsk, targets: Sequence[FioTarget], *, seed: int, log_prefix: str, program: str = "fio"
) -> list[str]:
    """Fio's command line for one launch.

    A command line and no job file: fio expands `$` words and cuts comments in job files only, and a drive's name must
    be taken as it is.
    """
    argv = [
        program,
        "--output-format=json+",
        "--eta=never",
        *(["--readonly"] if ask.reads_only else []),
        "--name=global",
        f"--rw={ask.rw}",
        f"--bs={ask.bs}",
        f"--ioengine={ask.ioengine}",
        f"--direct={ask.direct}",
        f"--iodepth={ask.iodepth}",
        f"--numjobs={ask.numjobs}",
        "--thread=1",
        "--time_based=1",
        f"--runtime={round(ask.runtime_s * 1000)}ms",
        *([f"--ramp_time={round(ask.ramp_s * 1000)}ms"] if ask.ramp_s else []),
        *([f"--rwmixread={ask.rwmixread}"] if ask.rwmixread is not None else []),
        "--group_reporting=0",
        "--disk_util=0",
        "--norandommap=1",
        f"--randseed={seed}",
        *([] if ask.reads_only else ["--clocksource=clock_gettime"]),
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        f"--percentile_list={PERCENTILES}",
        "--fallocate=none",
        "--allow_file_create=0",
        *_log_options(ask, log_prefix),
        *(f"--{name}={value}" for name, value in sorted(ask.options.items())),
    ]
    for number, target in enumerate(targets):
        argv += section_words(number, target)
        size = _zone(ask, target) if ask.zones else target.size
        if size:
            argv.append(f"--size={size}")
            if ask.zones:
                argv.append(f"--offset_increment={size}")
    return argv


def _zone(ask: FioAsk, target: FioTarget) -> int:
    """The bytes of a target that each of its jobs has for itself, in whole blocks."""
    return max(target.size // ask.numjobs // ask.bs, 1) * ask.bs


def section_words(number: int, target: FioTarget) -> list[str]:
    """The job section of one target: where it is and where it begins; how much of it comes after."""
    words = [
        f"--name=d{number}",
        f"--description={target.drive}",
        "--filename=" + target.node.replace("\\", "\\\\").replace(":", "\\:"),
    ]
    return [*words, f"--offset={target.offset}"] if target.offset else words


def _log_options(ask: FioAsk, prefix: str) -> list[str]:
    """Logs that fio averages per interval; one file per job, summed afterwards."""
    words = [f"--write_{name}_log={prefix}" for name in ask.logs]
    if words:
        words += ["--per_job_logs=1", f"--log_avg_msec={ask.log_ms}"]
        if "hist" in ask.logs:
            words.append(f"--log_hist_msec={ask.log_ms or 1000}")
    return words


def read_ask(entry: object, where: str, problems: list[str]) -> FioAsk | None:
    """The `fio` part of a launch; what is wrong with it is added to `problems` and None comes back."""
    reader = EntryReader(where, problems)
    if not isinstance(entry, dict):
        problems.append(f"{where}: found {str(entry)[:120]!r}, expected a mapping")
        return None
    reader.unknown(entry, _KEYS, "")
    fields = {"ioengine": "libaio", "logs": ["iops"], **_USUAL, **entry}
    fields.update({name: int(fields[name]) for name in ("direct", "zones") if isinstance(fields[name], bool)})
    if not isinstance(fields["logs"], list) or not set(map(str, fields["logs"])) <= _LOGS:
        reader.complain("logs", fields["logs"], "a list of " + ", ".join(sorted(_LOGS)))
        fields["logs"] = []
    ask = FioAsk(
        rw=reader.choice(fields, "rw", sorted(_PATTERNS)),
        bs=reader.whole(fields, "bs", 1, 1 << 30),
        iodepth=reader.whole(fields, "iodepth", 1, 1 << 20),
        numjobs=reader.whole(fields, "numjobs", 1, 4096),
        ioengine=reader.choice(fields, "ioengine", sorted(_ENGINES)),
        direct=reader.whole(fields, "direct", 0, 1),
        runtime_s=float(reader.number(fields, "runtime_s", least=0.001)),
        ramp_s=float(reader.number(fields, "ramp_s", least=0.0)),
        rwmixread=None if fields.get("rwmixread") is None else reader.whole(fields, "rwmixread", 0, 100),
        zones=bool(reader.whole(fields, "zones", 0, 1)),
        options=read_options(fields.get("options") or {}, reader.complain),
        seed=None if fields.get("seed") is None else reader.whole(fields, "seed", 1, (1 << 63) - 1),
        fallback=_read_fallback(fields.get("fallback") or [], reader.complain),
        logs=tuple(map(str, fields["logs"])),
        log_ms=reader.whole(fields, "log_ms", 0, 60000),
    )
    return ask if reader.sound else None


def _read_fallback(entry: object, bad: Callable[[str, object, str], None]) -> tuple[Variant, ...]:
    """What may be used instead of engine and direct, in order, because the plan says so."""
    if not isinstance(entry, list):
        bad("fallback", entry, "a list of {ioengine, direct}")
        return ()
    variants = []
    for item in entry:
        fits = (
            isinstance(item, dict)
            and set(item) <= {"ioengine", "direct"}
            and item.get("ioengine", "libaio") in _ENGINES
            and item.get("direct", 1) in (0, 1)
        )
        if fits:
            variants.append(Variant(str(item.get("ioengine", "libaio")), int(item.get("direct", 1))))
        else:
            bad("fallback", item, "{ioengine, direct}")
    return tuple(variants)


_PR_SET_PDEATHSIG = 1
_TERM_S = 2.0
_KILL_S = 30.0
_OUTPUT_LIMIT = 64 << 20
_prctl = ctypes.CDLL(None, use_errno=True).prctl


class FioStuckError(ToolError):
    """fio does not even die of SIGKILL: an I/O that it issued never comes back."""


@dataclass(frozen=True)
class _Ended:
    """How a process ended: exit status (negative: signal), both outputs, its life in nanoseconds."""

    exit_status: int
    output: str
    errors: str
    wall_ns: int


class FioProcess:
    """A running fio. Use as a context manager: whatever happens inside, it is gone afterwards."""

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        """Start `argv` with its outputs in files of `folder` (which it also has as working directory)."""
        self._output = folder / "output"
        self._errors = folder / "errors"
        self._parent = os.getpid()
        reader, writer = os.pipe()
        self.began_ns = time.monotonic_ns()
        try:
            with self._output.open("wb") as output, self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    cwd=str(folder),
                    pass_fds=(writer,),
                    env={**os.environ, "LC_ALL": "C", "LANG": "C"},
                    preexec_fn=self._die_with_parent,  # noqa: PLW1509 - this program has one thread
                )
        except (OSError, subprocess.SubprocessError) as problem:
            os.close(reader)
            raise ToolError(f"`{argv[0]}` cannot be started: {problem}") from problem
        finally:
            os.close(writer)
        self._reader = reader
        self._gone_ns: int | None = None

    def __enter__(self) -> FioProcess:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            os.close(self._reader)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, seconds: float) -> bool:
        """Wait until all of fio is gone or `seconds` have passed; whether it is gone."""
        deadline = time.monotonic() + seconds
        while self._gone_ns is None:
            left = max(deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select([self._reader], [], [], left)
            if ready:
                self._gone_ns = time.monotonic_ns()
            elif left <= 0.0:
                return False
        return True

    def end(self, *, gently: bool = False) -> None:
        """Make sure that fio is gone: SIGTERM first when `gently`, then SIGKILL. Raises FioStuckError."""
        if self._gone_ns is None and gently:
            self.tell(signal.SIGTERM)
            self.wait(_TERM_S)
        if self._gone_ns is None:
            self.tell(signal.SIGKILL)
            if not self.wait(_KILL_S):
                raise FioStuckError(
                    f"fio (process {self.pid}) does not end {_KILL_S:g} s after SIGKILL: one of its I/Os never "
                    "returns"
                )
        self._process.wait()

    def collect(self) -> _Ended:
        """How it ended and what it said; call when it is gone."""
        status = self._process.wait()
        gone_ns = self._gone_ns if self._gone_ns is not None else time.monotonic_ns()
        return _Ended(status, _text(self._output), _text(self._errors), gone_ns - self.began_ns)

    def threads(self) -> int:
        """How many threads it has; 0 when that cannot be told."""
        with suppress(OSError):
            return len(os.listdir(f"/proc/{self.pid}/task"))  # noqa: PTH208 - one system call, many times
        return 0

    def tell(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _die_with_parent(self) -> None:
        """In the child: a group of its own that can be interrupted; killed when the parent dies or has died."""
        os.setpgid(0, 0)
        # a shell starts what runs in the background with SIGINT ignored, and that would be handed on
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self._parent:
            os.kill(os.getpid(), signal.SIGKILL)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_OUTPUT_LIMIT).decode("utf-8", "replace")
