# SPDX-License-Identifier: Apache-2.0
"""Show that a setting is in effect, not only read back: a driver may ignore what it stored.

Queue depth: offer more reads than the depth and watch the drive's in-flight count. The reads destroy nothing.
Write cache: compare write latencies measured with the cache on and off; the measuring is the bench program's.
"""

from __future__ import annotations

import mmap
import os
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Iterable, Iterator, Mapping, Sequence

from ..host.block_stack import DriveTarget
from ..kit.errors import ToolError
from ..kit.results import Provisioned

READ_BYTES = 4096


@dataclass
class Tally:
    """How many reads ended well, by path, and every failure in words."""

    reads: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, path: str, count: int) -> None:
        """Count what one reader did."""
        with self.lock:
            self.reads[path] = self.reads.get(path, 0) + count


@contextmanager
def random_reads(paths: Sequence[str], offered: int) -> Iterator[Tally]:
    """Keep `offered` reads of 4 KiB going on each path while the body runs; the tally is whole after it.

    A path whose read fails is not read on. Raises ToolError when one cannot be opened.
    """
    stop = threading.Event()
    tally = Tally(dict.fromkeys(paths, 0))
    handles: dict[str, int] = {}
    readers: list[threading.Thread] = []
    try:
        for path in paths:
            handles[path] = _open(path)
        for path, handle in handles.items():
            blocks = os.lseek(handle, 0, os.SEEK_END) // READ_BYTES
            for _ in range(offered):
                words = (path, handle, blocks, stop, tally)
                readers.append(threading.Thread(target=_read_on, args=words, daemon=True))
        for reader in readers:
            reader.start()
        yield tally
    finally:
        stop.set()
        for reader in readers:
            reader.join()
        for handle in handles.values():
            os.close(handle)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0))
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem


def _read_on(path: str, handle: int, blocks: int, stop: threading.Event, tally: Tally) -> None:
    done = 0
    # direct I/O wants aligned memory; an anonymous mapping is
    try:
        with mmap.mmap(-1, READ_BYTES) as memory:
            # one read at least, however late the thread comes to run
            while done == 0 or not stop.is_set():
                os.preadv(handle, [memory], random.randrange(max(blocks, 1)) * READ_BYTES)  # noqa: S311 - offsets
                done += 1
    except OSError as problem:
        tally.failures.append(f"{path}: {problem.strerror or problem}")
    tally.add(path, done)


_SAMPLE_S = 0.001
_FEW = 20
_EXTRA_READS = 32


@dataclass(frozen=True)
class InFlight:
    """What was seen: the highest count of requests in the drive, the number of looks, the reads that were offered."""

    highest: int
    samples: int
    offered: int


def observe_in_flight(node: str, offered: int, seconds: float, sysfs: str = "/sys", dev: str = "/dev") -> InFlight:
    """Keep `offered` random direct 4 KiB reads going on `node` (`sda`) for `seconds`, and sample its in-flight count.

    The count is that of requests handed to the drive's driver; what waits in the scheduler is not in it.
    Raises ToolError when the drive cannot be read.
    """
    path = f"{dev}/{node}"
    with random_reads([path], offered) as tally:
        highest, samples = _sample(f"{sysfs}/block/{node}/inflight", seconds)
    if tally.failures:
        raise ToolError(f"reading {dev}/{node} failed while its queue was watched: {tally.failures[0]}")
    return InFlight(highest, samples, offered)


def _sample(path: str, seconds: float) -> tuple[int, int]:
    """The highest sum of reads and writes in flight, and the number of looks."""
    highest = samples = 0
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123 - unbuffered, so that each look asks the kernel
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            stream.seek(0)
            highest = max(highest, sum(int(word) for word in stream.read().split()))
            samples += 1
            time.sleep(_SAMPLE_S)
    return highest, samples


def judge_queue_depth(depth: int, seen: InFlight) -> tuple[bool | None, str]:
    """Whether a queue depth is in effect: never exceeded, and reached while more was offered. None: not shown."""
    facts = f"{seen.highest} in flight at most in {seen.samples} looks while {seen.offered} reads were offered"
    if seen.highest > depth:
        return False, f"{facts}: more than the depth of {depth}"
    if seen.samples < _FEW or seen.offered <= depth:
        return None, f"{facts}: too little to tell"
    if seen.highest < depth:
        return None, f"{facts}: the drive is too fast to fill a queue of {depth}"
    return True, f"{facts}: the depth of {depth} was reached and not exceeded"


def prove_queue_depths(
    settings: Iterable[Provisioned], targets: Mapping[str, DriveTarget], seconds: float, sysfs: str = "/sys"
) -> list[Provisioned]:
    """The same settings, each declared queue depth with what was seen of it during `seconds` of reads per drive."""
    shown = []
    for entry in settings:
        if entry.name == "drive.queue_depth" and isinstance(entry.declared, int):
            depth = entry.declared
            offered = min(2 * depth, depth + _EXTRA_READS)
            seen = observe_in_flight(targets[entry.drive].node, offered, seconds, sysfs)
            shown.append(entry.with_proof(*judge_queue_depth(depth, seen)))
        else:
            shown.append(entry)
    return shown


def judge_write_cache(
    on_ns: Sequence[float], off_ns: Sequence[float], *, least: float = 1.2
) -> tuple[bool | None, str]:
    """Whether WCE is in effect: the median write latency without the cache is `least` times that with it.

    Both are latencies of single writes in ns. None when there is too little, or no difference: an emulated drive, or
    one with a protected cache, may be as fast without.
    """
    if min(len(on_ns), len(off_ns)) < _FEW:
        return None, f"{len(on_ns)} and {len(off_ns)} writes are too few to compare"
    on, off = median(on_ns), median(off_ns)
    facts = f"median write latency {on / 1000:.0f} us with the cache, {off / 1000:.0f} us without"
    if on > 0 and off >= least * on:
        return True, facts
    return None, f"{facts}: no difference that shows the setting"
