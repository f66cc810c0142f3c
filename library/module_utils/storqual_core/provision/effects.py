# SPDX-License-Identifier: Apache-2.0
"""What settings of a drive do, seen without a write: by reads of a drive that the guard holds, and by its counters.

A setting without a function here is read back, and its effect is not shown. Every observation stops when its time is
over; where it cannot tell, it says so, and nothing is shown.
"""

from __future__ import annotations

import mmap
import os
import random
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable, Mapping, Sequence

from ..host.block_stack import DriveTarget
from ..kit.errors import ToolError
from ..kit.machine import read_attribute
from ..kit.quantities import is_whole
from .engine import Proof
from .queue import READ_BYTES, judge_queue_depth, observe_in_flight

_SECTOR = 512
_EXTRA_READS = 8
_FLUSHES = 15
"""The place of completed flushes in /sys/block/*/stat (since Linux 5.5)."""


class Watched:
    """One drive while it is watched: its counters, its attributes, and reads of it."""

    def __init__(self, target: DriveTarget, seconds: float, sysfs: str = "/sys", dev: str = "/dev") -> None:
        self.target = target
        self.seconds = seconds
        self.sysfs, self.dev = sysfs, dev
        self.path = f"{dev}/{target.node}"
        self._block = Path(sysfs) / "block" / target.node

    def counters(self) -> list[int]:
        """The numbers of its `stat`. Raises ToolError when there are none."""
        words = (read_attribute(self._block / "stat") or "").split()
        if len(words) < 11 or not all(is_whole(word) for word in words):
            raise ToolError(f"{self._block / 'stat'} holds no counters")
        return [int(word) for word in words]

    def number(self, name: str) -> int | None:
        text = read_attribute(self._block / name) or ""
        return int(text) if is_whole(text) else None

    def names(self, name: str) -> list[str]:
        folder = self._block / name
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def mean_read_bytes(self, reads: Callable[[], None]) -> float | None:
        """The mean size of the requests that `reads` became; None when they became none."""
        before = self.counters()
        reads()
        after = self.counters()
        count = after[0] - before[0]
        return (after[2] - before[2]) * _SECTOR / count if count > 0 else None


def queue_depth(drive: Watched, depth: Any) -> Proof:  # noqa: ANN401 - a value of a drop
    """At most `depth` commands are in flight while more are offered, and that many were seen."""
    offered = min(2 * depth, depth + _EXTRA_READS)
    seen = observe_in_flight(drive.target.node, offered, drive.seconds, drive.sysfs, drive.dev)
    return judge_queue_depth(depth, seen)


def nr_requests(drive: Watched, count: Any) -> Proof:  # noqa: ANN401 - as above
    """At most `count` requests are in flight, where nothing below it is the limit."""
    queues = len(drive.names("mq"))
    if queues > 1:
        return None, f"the drive has {queues} hardware queues, each with so many requests"
    depth = drive.number("device/queue_depth")
    if depth is not None and depth <= count:
        return None, f"its queue depth of {depth} is reached first"
    return queue_depth(drive, count)


_SERVED = 4
_ATTRIBUTES = {"mq-deadline": "fifo_batch", "kyber": "read_lat_nsec", "bfq": "slice_idle"}
"""One attribute that only the scheduler itself brings to `queue/iosched`."""


def scheduler(drive: Watched, name: Any) -> Proof:  # noqa: ANN401 - as above
    """While reads are served, the queue has the attributes of that scheduler, or of none."""
    handle = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0))
    try:
        blocks = max(os.lseek(handle, 0, os.SEEK_END) // READ_BYTES, 1)
        places = [random.randrange(blocks) for _ in range(_SERVED)]  # noqa: S311 - offsets
        looks = []
        for place in places:
            _latencies(handle, [place], drive.seconds)
            looks.append(drive.names("queue/iosched"))
    finally:
        os.close(handle)
    own = looks[0]
    if any(look != own for look in looks):
        return None, "the attributes of its scheduler changed while it was watched"
    served = f"{len(looks)} reads were served"
    if name == "none":
        return not own, f"{served} {'by a scheduler with ' + ', '.join(own) if own else 'without a scheduler'}"
    if name not in _ATTRIBUTES:
        return None, f"nothing is known that only scheduler {name} shows"
    if _ATTRIBUTES[name] in own:
        return True, f"{served} with {_ATTRIBUTES[name]} of {name} in place (queue/iosched)"
    return False, f"{served}, and nothing of {name} is in place (queue/iosched: {', '.join(own) or 'empty'})"


def write_cache(drive: Watched, value: Any) -> Proof:  # noqa: ANN401 - as above
    """A flush that is asked for reaches a drive whose cache is on, and is not needed by one whose cache is off."""
    if drive.target.nvme:
        return None, "an NVMe drive is sent flushes whether its cache is on or off"
    before = drive.counters()
    if len(before) <= _FLUSHES:
        return None, "this kernel does not count flushes"
    handle = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        began = time.perf_counter()
        os.fsync(handle)
        took = time.perf_counter() - began
    finally:
        os.close(handle)
    sent = drive.counters()[_FLUSHES] - before[_FLUSHES]
    if value and sent:
        return True, f"a flush was requested, sent to the drive, and completed in {1000 * took:.1f} ms"
    if value:
        return False, "a flush was requested and the kernel did not send it, so the cache would not be emptied"
    return (None, "a flush was sent nevertheless") if sent else (True, "a flush was requested and none was needed")


def max_sectors_kb(drive: Watched, kib: Any) -> Proof:  # noqa: ANN401 - as above
    size = kib * 1024
    if 4 * size > _MOST_BYTES:
        return None, f"a read of {4 * kib} KiB is too large to watch"
    mean = drive.mean_read_bytes(lambda: _direct_read(drive.path, 4 * size))
    if mean is None:
        return None, "no request was counted"
    told = f"a read of {4 * kib} KiB became requests of {mean / 1024:.0f} KiB"
    if mean > size:
        return False, told
    return (True, told) if mean == size else (None, f"{told}: something else limits them")


_MOST_BYTES = 32 << 20
_WARM, _MEASURED = 4, 8
_ALIKE = 0.1


def read_ahead_kb(drive: Watched, kib: Any) -> Proof:  # noqa: ANN401 - as above
    """Small buffered reads in a row become requests of the read-ahead's size; of their own size without one."""
    page = mmap.PAGESIZE
    limit = drive.number("queue/max_sectors_kb") or kib
    expected = max(min(kib, limit) * 1024, page)
    window = max(kib * 1024, page)
    if (_WARM + _MEASURED) * window > _MOST_BYTES:
        return None, f"a read-ahead of {kib} KiB is too large to watch"
    handle = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = (_WARM + _MEASURED) * window
        start = os.lseek(handle, 0, os.SEEK_END) // 2 // length * length
        os.posix_fadvise(handle, start, 2 * length, os.POSIX_FADV_DONTNEED)
        _read_pages(handle, start, start + _WARM * window, page)
        mean = drive.mean_read_bytes(lambda: _read_pages(handle, start + _WARM * window, start + length, page))
        os.posix_fadvise(handle, start, 2 * length, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    if mean is None:
        return None, "no request was counted"
    told = f"reads of {page // 1024} KiB in a row became requests of {mean / 1024:.0f} KiB"
    return (True if abs(mean / expected - 1) <= _ALIKE else None), told


def read_cache_disabled(drive: Watched, value: Any) -> Proof:  # noqa: ANN401 - as above
    return _faster(drive, value, "one block again and again", lambda _number, first: first)


def read_ahead_disabled(drive: Watched, value: Any) -> Proof:  # noqa: ANN401 - as above
    return _faster(drive, value, "blocks in a row", lambda number, first: first + number)


_READS = 20
_FEW = 10
_TIMES = 2.0


def _faster(drive: Watched, disabled: Any, what: str, block: Callable[[int, int], int]) -> Proof:  # noqa: ANN401
    handle = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0))
    try:
        blocks = max(os.lseek(handle, 0, os.SEEK_END) // READ_BYTES - _READS, 1)
        first = random.randrange(blocks)  # noqa: S311 - an offset
        places = [random.randrange(blocks) for _ in range(_READS)]  # noqa: S311 - offsets
        scattered = _latencies(handle, places, drive.seconds / 2)
        # the first of a pattern is as slow as any
        pattern = _latencies(handle, [block(number, first) for number in range(_READS)], drive.seconds / 2)[1:]
    finally:
        os.close(handle)
    return judge_read_pattern(scattered, pattern, disabled=bool(disabled), what=what)


def judge_read_pattern(scattered: Sequence[int], pattern: Sequence[int], *, disabled: bool, what: str) -> Proof:
    """Reads of a pattern (ns) that take less than half as long as random ones show a cache that is on.

    They do not accuse a drive whose cache is declared off: flash is quicker at its neighbours by itself.
    """
    if min(len(scattered), len(pattern)) < _FEW:
        return None, f"{len(scattered)} and {len(pattern)} reads are too few to compare"
    slow, quick = median(scattered), median(pattern)
    told = f"median of random reads {slow / 1000:.0f} us, of {what} {quick / 1000:.0f} us"
    if quick * _TIMES <= slow:
        return (None, f"{told}: faster nevertheless") if disabled else (True, told)
    return None, f"{told}: no difference that shows the setting"


def _latencies(handle: int, places: Sequence[int], seconds: float) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + seconds
    with mmap.mmap(-1, READ_BYTES) as memory:
        for place in places:
            if time.monotonic() >= deadline:
                break
            began = time.perf_counter_ns()
            os.preadv(handle, [memory], place * READ_BYTES)
            found.append(time.perf_counter_ns() - began)
    return found


def _read_pages(handle: int, start: int, end: int, page: int) -> None:
    for place in range(start, end, page):
        os.pread(handle, page, place)


def _direct_read(path: str, size: int) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0))
    try:
        with mmap.mmap(-1, size) as memory:
            os.preadv(handle, [memory], 0)
    finally:
        os.close(handle)


EFFECTS: Mapping[str, Callable[[Watched, Any], Proof]] = {
    "WCE": write_cache,
    "scheduler": scheduler,
    "max_sectors_kb": max_sectors_kb,
    "read_ahead_kb": read_ahead_kb,
    "queue_depth": queue_depth,
    "nr_requests": nr_requests,
    "RCD": read_cache_disabled,
    "DRA": read_ahead_disabled,
}
"""What shows a drive setting in effect, by its name; the cheapest first."""


def effect_of(drive: Watched, name: str, value: Any) -> Proof:  # noqa: ANN401 - as above
    """What was seen of a setting in `EFFECTS`; what could not be watched is not shown, and why."""
    try:
        return EFFECTS[name](drive, value)
    except (OSError, ToolError) as problem:
        return None, f"it could not be watched: {problem}"
