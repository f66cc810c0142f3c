# SPDX-License-Identifier: Apache-2.0
"""The integrity load: workers that write tagged sectors and flush, and tell each acknowledgement as it comes.

What is in a sector is in `sectors.py`; whether it is the one that should be there is for the list of acknowledged
writes to say, which is kept off the bench. What the bench itself knows (`KnownSectors`) is for reads during the load:
one that gives other data is told at once, also where another worker's write is under way, of which old or new may be
there and no mixture.

Each worker has a part of the region of its own and one write under way at most, so at any place writes follow each
other and the last acknowledged one is what must be there. Times are nanoseconds of the bench's monotonic clock.
"""

from __future__ import annotations

import bisect
import errno
import mmap
import os
import random
import threading
import time
from array import array
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any, Callable, Iterator, Mapping, Protocol, Sequence

from .entries import EntryReader
from .load_levels import COMMAND_FACTORS, FACTORS
from .scsi_command import LackingError, block_command, perform
from .sectors import CODES, CORRUPTED, GOOD, SECTOR, TORN, ZERO, make_sectors, runs_of

FILL_SECTORS = 128
_PAUSE_S = 0.02
_BETWEEN_IDLES_S = 0.8
_LOOK_S = 0.1
_LATE_S = 1.0
_FUA_SHARE = 0.5
RWF_DSYNC = 2
_UNKNOWN = 0
"""In place of the sequence of a write: what is there is not known."""
_LATELY = 4
_REMEMBERED = 4096
"""So many writes that began last are known to reads that are under way."""

WRITE, WRITE_THROUGH, FLUSH, READ, ZEROS, UNMAP = "w", "d", "f", "r", "z", "u"
"""Kinds of I/O in a line of the stream: write, write through the cache (FUA), flush, read that is compared, zeroing,
and a deallocation, after which there are zeros or what was there before."""
OVERRUN, PROTECTION, UNREFUSED = "overrun", "protection", "unrefused"
SOURCE_CHANGED, OTHER_ANSWER, UNCOMPARED = "source changed", "other answer", "uncompared"
OTHER_DATA: Mapping[str, int] = {
    code: 4096 + at
    for at, code in enumerate((*CODES, OVERRUN, PROTECTION, UNREFUSED, SOURCE_CHANGED, OTHER_ANSWER, UNCOMPARED))
}
"""In place of an errno, which is below 4096: a read that gave other data than what was last acknowledged, by what the
first wrong sector is; `good` is another write's of this place. An overrun changed memory beside its own. Data that
are not what their protection information or checksum says fail in the kernel, with EILSEQ. Unrefused is a read of
sectors that the drive does not have, which ended well or without a reason. Told as reads are three more: a write
after which the memory that it came from holds other data, an answer to an enquiry that differs from the one before,
and a VERIFY that took other data than the drive's for good."""


def problem_of(kind: str, failure: OSError) -> int:
    """What an I/O ended with that failed: its errno, or one of OTHER_DATA."""
    if kind == READ and failure.errno == errno.EILSEQ:
        return OTHER_DATA[PROTECTION]
    return failure.errno or errno.EIO


DRIVE_SHIFT = 48
"""Sectors of a further drive of a trial are told with its number (1 …) above this bit."""


@dataclass(frozen=True)
class SweepRequest:
    """A load that goes through combinations of levels (`load_levels.py`), by their names, and what else it does.

    `most` are the sectors of its longest write, `idles_s` the pauses after each of which another command comes first,
    `beside` further drives that are busy at the same time, `memory_commands` those between which kernel memory is
    measured, `limit_s` after how many seconds it begins no further row. `pieces` are as many pieces of memory as one
    command may have, 0 for as many as the queue says; `lacks` are what is left out by the plan, each with the reason;
    `layers` are what of the kernel's own is loaded on top of the drive first (`load_layers.py`); `enquiries`
    are which of them a busy drive gets.
    """

    rows: tuple[tuple[str, ...], ...]
    commands: tuple[tuple[str, ...], ...]
    most: int
    idles_s: tuple[float, ...]
    beside: tuple[str, ...]
    memory_commands: int
    limit_s: float
    pieces: int = 0
    lacks: tuple[tuple[str, str], ...] = ()
    layers: tuple[str, ...] = ()
    enquiries: str = "all"


@dataclass(frozen=True)
class IntegrityRequest:
    """One load: region in sectors, workers, sizes in sectors, shares of I/Os from 0 to 1, writes between flushes.

    `mixes` is whether a read beside a write may find some of both within a sector: the drives of QEMU, which lie in
    the page cache of its host, give that now and then. `idles_s` are pauses of all workers at once, again and again,
    after each of which a flush, or a write through the cache, is the first command.
    """

    first: int
    sectors: int
    workers: int
    sizes: tuple[int, ...]
    read_share: float
    through_share: float
    flush_every: int
    seed: int
    sweep: SweepRequest | None = None
    mixes: bool = False
    idles_s: tuple[float, ...] = ()


_MOST = 1 << 62
_MOST_ROWS = 100_000
_LONGEST = 1 << 17
_SHARES = ("read_share", "through_share")


def read_integrity(reader: EntryReader, entry: object) -> IntegrityRequest | None:
    """The `load` of a trial; None where the reader's problems say what is wrong with it."""
    optional = ("sweep", "mixes", "idles_s")
    fields = reader.keys(entry, set(IntegrityRequest.__annotations__).difference(optional), optional)
    if not fields:
        return None
    least = {"first": 0, "sectors": 1, "workers": 1, "flush_every": 1, "seed": 0}
    counts: dict[str, Any] = {name: reader.whole(fields, name, low, _MOST) for name, low in least.items()}
    shares: dict[str, Any] = {name: reader.number(fields, name, least=0.0) for name in _SHARES}
    sizes = fields["sizes"]
    if not isinstance(sizes, list) or not sizes or not all(type(size) is int and size > 0 for size in sizes):
        reader.complain("sizes", sizes, "a list of sectors, one or more for each I/O")
    elif counts["sectors"] // counts["workers"] < max(*sizes, FILL_SECTORS):
        reader.complain("sectors", counts["sectors"], f"more than a write for each of {counts['workers']} workers")
    if max(shares.values()) > 1:
        reader.complain("read_share, through_share", tuple(shares.values()), "shares from 0 to 1")
    sweep = _read_sweep(reader.inside("sweep"), fields["sweep"]) if fields.get("sweep") is not None else None
    mixes = fields.get("mixes", False)
    if not isinstance(mixes, bool):
        reader.complain("mixes", mixes, "true or false")
    idles_s = _idles(reader, fields.get("idles_s", []))
    if not reader.sound:
        return None
    return IntegrityRequest(**counts, **shares, sizes=tuple(sizes), sweep=sweep, mixes=mixes, idles_s=idles_s)


def _idles(reader: EntryReader, idles: object) -> tuple[float, ...]:
    if not isinstance(idles, list) or not all(isinstance(idle, (int, float)) and 0 <= idle <= 3600 for idle in idles):
        reader.complain("idles_s", idles, "a list of seconds")
        return ()
    return tuple(map(float, idles))


def _read_sweep(reader: EntryReader, entry: object) -> SweepRequest | None:
    fields = reader.keys(entry, SweepRequest.__annotations__)
    if not fields:
        return None
    rows = {name: _rows(reader, fields, name, of) for name, of in (("rows", FACTORS), ("commands", COMMAND_FACTORS))}
    lacks = fields["lacks"]
    if not isinstance(lacks, list) or not all(
        isinstance(pair, list) and list(map(type, pair)) == [str] * 2 for pair in lacks
    ):
        reader.complain("lacks", lacks, "a list of pairs: what is left out, and why")
        lacks = []
    return SweepRequest(
        **rows,
        most=reader.whole(fields, "most", 1, _LONGEST),
        idles_s=_idles(reader, fields["idles_s"]),
        beside=reader.words(fields, "beside", least=0),
        memory_commands=reader.whole(fields, "memory_commands", 0, 1 << 20),
        limit_s=reader.number(fields, "limit_s", least=1.0),
        pieces=reader.whole(fields, "pieces", 0, _LONGEST),
        lacks=tuple((what, why) for what, why in lacks),
        layers=reader.words(fields, "layers", least=0),
        enquiries=reader.choice(fields, "enquiries", ("all", "answered")),
    )


def _rows(
    reader: EntryReader, fields: Mapping[str, Any], name: str, factors: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], ...]:
    """Rows of levels, each of its own factor."""
    rows = fields[name]
    if not isinstance(rows, list) or len(rows) > _MOST_ROWS:
        reader.complain(name, rows, f"a list of at most {_MOST_ROWS} rows")
        return ()
    known = list(factors.values())
    for row in rows:
        right = isinstance(row, list) and len(row) == len(known)
        if not right or not all(level in levels for level, levels in zip(row, known)):
            reader.complain(name, row, f"one level of each of {', '.join(factors)}")
            return ()
    return tuple(map(tuple, rows))


class OpenDrive(Protocol):
    """An open drive that can go away and come back."""

    def use(self) -> int:
        """A descriptor that stays open until `done`; waits while the drive is being opened again."""

    def done(self, problem: int) -> None:
        """Give the descriptor back, with the errno that the I/O ended with (0 for none)."""


Tell = Callable[[str, int, int, int, int, int, int], None]
"""Takes kind, sequence, sector, length, start, end and errno of a finished I/O."""


class KnownSectors:
    """What was last acknowledged where, in 64 bits a sector, and which writes are under way; safe from all threads.

    It knows extents (first sector, how many) and nothing between them. `block` are the sectors of the drive's own
    block, of which a read finds one write's and no mixture; with `mixes` it may while a write of it is under way.
    """

    def __init__(self, extents: Sequence[tuple[int, int]], block: int = 1, *, mixes: bool = False) -> None:
        self._extents, self._block, self._mixes = sorted(extents), block, mixes
        self._firsts = [first for first, _ in self._extents]
        self._known = [array("Q", bytes(8 * sectors)) for _, sectors in self._extents]
        self._turn = threading.Lock()
        self._open: dict[int, tuple[int, int]] = {}
        self._begun: deque[tuple[int, int, int]] = deque(maxlen=_REMEMBERED)
        self._total = 0
        self._zeros: set[int] = set()

    @property
    def extents(self) -> Sequence[tuple[int, int]]:
        return self._extents

    def _part(self, first: int, length: int) -> tuple[array[int], int]:
        """The extent that has these sectors, and where they begin in it. Raises KeyError."""
        at = bisect.bisect_right(self._firsts, first) - 1
        if at < 0 or first + length > self._extents[at][0] + self._extents[at][1]:
            raise KeyError(first)
        return self._known[at], first - self._extents[at][0]

    def begin(self, sequence: int, first: int, length: int) -> None:
        with self._turn:
            self._open[sequence] = (first, length)
            self._begun.append((sequence, first, length))
            self._total += 1

    def end(self, sequence: int, problem: int, *, zeros: bool = False) -> None:
        """A write ended: what a failed one left is not known until the next."""
        with self._turn:
            first, length = self._open.pop(sequence)
            known, at = self._part(first, length)
            known[at : at + length] = array("Q", [_UNKNOWN if problem else sequence]) * length
            if zeros and not problem:
                self._zeros.add(sequence)

    def near(self, draw: random.Random) -> tuple[int, int] | None:
        """First sector and length of a write that is under way or began lately; None before the first."""
        with self._turn:
            lately = [
                *self._open.values(),
                *(self._begun[at][1:] for at in range(-min(_LATELY, len(self._begun)), 0)),
            ]
            return draw.choice(lately) if lately else None

    def before(self, first: int, length: int) -> tuple[array[int], list[tuple[int, int, int]], int]:
        """What a read that begins now may find: what is known, what is under way, and a mark for `allowed`."""
        with self._turn:
            known, at = self._part(first, length)
            under_way = [(sequence, *where) for sequence, where in self._open.items()]
            return known[at : at + length], under_way, self._total

    def wrong(
        self,
        first: int,
        runs: Iterator[tuple[int, int, str, int]],
        before: tuple[array[int], list[tuple[int, int, int]], int],
    ) -> str:
        """What the first sector is that a read found and could not, of CODES; `` where there is none."""
        known, under_way, mark = before
        with self._turn:
            new = self._total - mark
            writes = [*under_way, *(list(self._begun)[-new:] if new else ())]
            zeros = self._zeros
        for sector, length, code, sequence in runs:
            at = sector - first
            part = known[at : at + length]
            mixed = at and sector % self._block and _UNKNOWN not in known[at - 1 : at + 1]
            if code == GOOD and part.count(sequence) == length and not mixed:
                continue
            for place, must in enumerate(part, sector):
                if must == _UNKNOWN or (code == GOOD and sequence == must) or (code == ZERO and must in zeros):
                    continue
                covering = [write for write, begin, many in writes if begin <= place < begin + many]
                if (code == GOOD and sequence in covering) or (code == ZERO and zeros.intersection(covering)):
                    continue
                if self._mixes and covering and code in (CORRUPTED, TORN):
                    continue
                return code
            if mixed and not (self._mixes and any(begin <= sector <= begin + many for _, begin, many in writes)):
                return TORN
        return ""

    def doubtful(self, first: int, length: int, code: str, sequence: int) -> list[int]:
        """Sectors of a run that read otherwise than they should: a reason to read them once more, and no verdict."""
        sectors = []
        at = max(0, bisect.bisect_right(self._firsts, first) - 1)
        for place_of in range(at, len(self._firsts)):
            begin, known = self._firsts[place_of], self._known[place_of]
            low, high = max(first, begin), min(first + length, begin + len(known))
            if begin >= first + length:
                break
            if low >= high:
                continue
            part = known[low - begin : high - begin]
            if code == GOOD and part.count(sequence) == len(part):
                continue
            for place, must in enumerate(part, low):
                right = (code == GOOD and must == sequence) or (code == ZERO and must in self._zeros)
                if must != _UNKNOWN and not right:
                    sectors.append(place)
        return sectors


class Worker:
    """One worker: its part of the region, and its sequences.

    `block` are the sectors of the drive's own block; `numbers` are the sequences that it shares with other loads.
    With `sends_fua` half of what is written through goes out as a command with FUA: behind an O_DSYNC write to a
    drive the kernel flushes all the same (block/fops.c), and nobody would see that FUA was dropped.
    """

    def __init__(
        self,
        ask: IntegrityRequest,
        number: int,
        tag: bytes,
        device: OpenDrive,
        tell: Tell,
        ledger: KnownSectors | None = None,
        block: int = 1,
        numbers: Iterator[int] | None = None,
        *,
        sends_fua: bool = False,
    ) -> None:
        self._ask, self._tag, self._device, self._tell, self._block = ask, tag, device, tell, block
        self._sends_fua = sends_fua
        share = ask.sectors // ask.workers // block * block
        self._first, self._share = ask.first + number * share, share
        self._random = random.Random(f"{ask.seed}/{number}")  # noqa: S311 - a drawn load, no secret
        self._numbers = count(ask.workers + number, ask.workers) if numbers is None else numbers
        self._since_flush = 0
        self._ledger = KnownSectors([(ask.first, ask.sectors)], block, mixes=ask.mixes) if ledger is None else ledger
        self._sizes = [-(-size // block) * block for size in ask.sizes]
        self._buffer = mmap.mmap(-1, max(*self._sizes, FILL_SECTORS) * SECTOR)

    def fill(self) -> int:
        """Write all of the part once, so that nothing of an earlier trial is left; the errno of the first failure."""
        for sector in range(self._first, self._first + self._share, FILL_SECTORS):
            length = min(FILL_SECTORS, self._first + self._share - sector)
            problem = self._write(sector, length, through=False)
            if problem:
                return problem
        return self.flush()

    def step(self) -> None:
        length = self._random.choice(self._sizes)
        kind = self._random.random()
        if kind < self._ask.read_share:
            # a third of the reads are of one's own part, one of any, one of what is being written or just was
            near = self._ledger.near(self._random) if kind < self._ask.read_share / 3 else None
            own = kind < self._ask.read_share * 2 / 3
            first, share = (self._first, self._share) if own else (self._ask.first, self._share * self._ask.workers)
            problem = self._read(*(near or (self._drawn(first, share, length), length)))
        else:
            sector = self._drawn(self._first, self._share, length)
            problem = self._write(sector, length, through=kind > 1.0 - self._ask.through_share)
            self._since_flush += 1
            if self._since_flush >= self._ask.flush_every:
                problem = self.flush() or problem
        if problem:
            time.sleep(_PAUSE_S)

    def _drawn(self, first: int, share: int, length: int) -> int:
        return first + self._random.randrange(0, (share - length) // self._block + 1) * self._block

    def write_through(self) -> None:
        length = self._random.choice(self._sizes)
        self._write(self._drawn(self._first, self._share, length), length, through=True)

    def flush(self) -> int:
        self._since_flush = 0
        return self._timed(FLUSH, 0, 0, 0, os.fdatasync)

    def _write(self, sector: int, length: int, *, through: bool) -> int:
        sequence, size = next(self._numbers), length * SECTOR
        self._buffer[:size] = bytes(make_sectors(self._tag, sector, sequence, length))
        view = memoryview(self._buffer)[:size]

        def write(descriptor: int) -> None:
            if through and self._sends_fua and self._random.random() < _FUA_SHARE:
                with suppress(LackingError):
                    name = "write10" if (sector + length) // self._block < 1 << 32 else "write16"
                    command = block_command(name, sector // self._block, length // self._block, through=True)
                    perform(descriptor, command, [view], reads=False)
                    return
            flags = RWF_DSYNC if through else 0
            if os.pwritev(descriptor, [view], sector * SECTOR, flags) != size:
                raise OSError(errno.EIO, "short write")

        begin = time.monotonic()
        self._ledger.begin(sequence, sector, length)
        problem = self._timed(WRITE_THROUGH if through else WRITE, sequence, sector, length, write)
        self._ledger.end(sequence, problem)
        # one that waited may have been lost on the way, and the next write of the place would hide it
        if not problem and time.monotonic() - begin > _LATE_S:
            self._read(sector, length)
        return problem

    def _read(self, sector: int, length: int) -> int:
        """Read and compare with what was last acknowledged; a difference is told by `OTHER_DATA`."""
        size = length * SECTOR
        view = memoryview(self._buffer)[:size]

        def read(descriptor: int) -> None:
            before = self._ledger.before(sector, length)
            if os.preadv(descriptor, [view], sector * SECTOR) != size:
                raise OSError(errno.EIO, "short read")
            code = self._ledger.wrong(sector, runs_of(view, self._tag, sector), before)
            if code:
                raise OSError(OTHER_DATA[code], "other data than what was acknowledged")

        return self._timed(READ, 0, sector, length, read)

    def _timed(self, kind: str, sequence: int, sector: int, length: int, work: Callable[[int], None]) -> int:
        problem = 0
        descriptor = self._device.use()
        begin = time.monotonic_ns()
        try:
            work(descriptor)
        except OSError as failure:
            problem = problem_of(kind, failure)
        end = time.monotonic_ns()
        self._device.done(problem)
        self._tell(kind, sequence, sector, length, begin, end, problem)
        return problem


class LoadWorkers:
    """All workers of a load, each in a thread of its own."""

    def __init__(
        self,
        ask: IntegrityRequest,
        tag: bytes,
        device: OpenDrive,
        tell: Tell,
        block: int = 1,
        numbers: Iterator[int] | None = None,
        *,
        sends_fua: bool = False,
    ) -> None:
        self.ledger = KnownSectors([(ask.first, ask.sectors)], block, mixes=ask.mixes)
        self._workers = [
            Worker(ask, number, tag, device, tell, self.ledger, block, numbers, sends_fua=sends_fua)
            for number in range(ask.workers)
        ]
        self._idles_s = ask.idles_s
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._pause = threading.Condition()
        self._pauses = False
        self._paused = 0

    def fill(self) -> int:
        """Fill the region; the errno of the first failure, 0 for none."""
        return next((problem for worker in self._workers for problem in [worker.fill()] if problem), 0)

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), daemon=True, name=f"load-{number}")
            for number, worker in enumerate(self._workers)
        ]
        if self._idles_s:
            self._threads.append(threading.Thread(target=self._idle, daemon=True, name="load-pauses"))
        for thread in self._threads:
            thread.start()

    def _run(self, worker: Worker) -> None:
        while not self._stop.is_set():
            if self._pauses:
                with self._pause:
                    self._paused += 1
                    self._pause.notify_all()
                    self._pause.wait_for(lambda: not self._pauses)
                    self._paused -= 1
            worker.step()

    def _idle(self) -> None:
        """Now and then nobody sends anything; the command after that is alone, and is what others depend on."""
        first = self._workers[0]
        for idle_s, is_flush in zip(cycle(self._idles_s), cycle((True, False))):
            if self._stop.wait(_BETWEEN_IDLES_S):
                return
            with self._pause:
                self._pauses = True
                # one whose I/O does not end keeps the others waiting until the load is told to end
                while self._paused < len(self._workers) and not self._stop.is_set():
                    self._pause.wait(_LOOK_S)
            if not self._stop.wait(idle_s):
                if is_flush:
                    first.flush()
                else:
                    first.write_through()
            with self._pause:
                self._pauses = False
                self._pause.notify_all()

    def stop(self, limit_s: float) -> bool:
        """End after the I/Os under way; False when one of them has not ended within `limit_s` seconds."""
        self._stop.set()
        end = time.monotonic() + limit_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
