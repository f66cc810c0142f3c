# SPDX-License-Identifier: Apache-2.0
"""Random direct reads of block devices, kept going in the background; they destroy nothing."""

from __future__ import annotations

import mmap
import os
import random
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Iterator, Sequence

from .errors import ToolError

__all__ = ["READ_BYTES", "Tally", "random_reads"]

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
