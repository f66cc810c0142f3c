# SPDX-License-Identifier: Apache-2.0
"""Direct reads of whatever a path leads to: many at random places at once, or one after another with their times."""

from __future__ import annotations

import mmap
import os
import random
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Iterator, Sequence

from .errors import ToolError

READ_BYTES = 4096


@dataclass
class Tally:
    """How many reads ended well, by path, and every failure in words."""

    reads: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, path: str, count: int) -> None:
        with self.lock:
            self.reads[path] = self.reads.get(path, 0) + count


@contextmanager
def random_reads(paths: Sequence[str], offered: int) -> Iterator[Tally]:
    """Keep `offered` reads of 4 KiB going on each path while the body runs; the tally is whole after it.

    A path whose read fails is not read on. Raises ToolError when one cannot be opened.
    """
    stop = threading.Event()
    tally = Tally(dict.fromkeys(paths, 0))
    readers: list[threading.Thread] = []
    with ExitStack() as opened:
        handles = {path: opened.enter_context(open_direct(path)) for path in paths}
        try:
            for path, handle in handles.items():
                blocks = os.lseek(handle, 0, os.SEEK_END) // READ_BYTES
                words = (path, handle, blocks, stop, tally)
                readers += [threading.Thread(target=_read_on, args=words, daemon=True) for _ in range(offered)]
            for reader in readers:
                reader.start()
            yield tally
        finally:
            stop.set()
            for reader in filter(threading.Thread.is_alive, readers):
                reader.join()


@contextmanager
def open_direct(path: str, mode: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor past the page cache, until the body ends. Raises ToolError."""
    try:
        handle = os.open(path, mode | os.O_CLOEXEC | getattr(os, "O_DIRECT", 0))
    except OSError as problem:
        raise ToolError(f"{path} cannot be {'written' if mode else 'read'}: {problem.strerror}") from problem
    try:
        yield handle
    finally:
        os.close(handle)


def read_once(path: str, size: int) -> None:
    """Read the first `size` bytes. Raises ToolError, OSError."""
    with open_direct(path) as handle, mmap.mmap(-1, size) as memory:
        os.preadv(handle, [memory], 0)


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


def latencies(handle: int, places: Sequence[int], seconds: float) -> list[int]:
    """How long (ns) a read of each of these places took, as far as `seconds` went."""
    latencies: list[int] = []
    deadline = time.monotonic() + seconds
    with mmap.mmap(-1, READ_BYTES) as memory:
        for place in places:
            if time.monotonic() >= deadline:
                break
            began = time.perf_counter_ns()
            os.preadv(handle, [memory], place * READ_BYTES)
            latencies.append(time.perf_counter_ns() - began)
    return latencies
