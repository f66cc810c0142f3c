# SPDX-License-Identifier: Apache-2.0
"""The oracle: what must be on a drive by what it acknowledged, held against what was read back.

It lives off the bench: it is fed with I/Os as they arrive from the stream. At one place writes follow each other, so
the last one that must have lasted and those after it are all that may be found there:

- where power stayed (`keeps` acknowledged), the last acknowledged write must be there;
- where a volatile cache was lost (`keeps` flushed), the last one written through, or acknowledged before the begin of
  a flush that was completed, must be there; what was acknowledged later may be there;
- a write that failed, or that was under way in the end, may be there, whole or in part.
"""

import bisect
import errno
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from storqual_core.turns.enquiries import ORDER
from storqual_core.turns.integrity_load import (
    DRIVE_SHIFT,
    FLUSH,
    OTHER_ANSWER,
    OTHER_DATA,
    OVERRUN,
    PROTECTION,
    READ,
    SOURCE_CHANGED,
    UNCOMPARED,
    UNMAP,
    UNREFUSED,
    WRITE,
    WRITE_THROUGH,
    ZEROS,
)
from storqual_core.turns.load_levels import FIRST_LAYER, LAYERS
from storqual_core.turns.sectors import CORRUPTED, FOREIGN, GOOD, MISDIRECTED, TORN, UNREADABLE, ZERO

LOST, STALE, DEALLOCATED = "lost", "stale", "deallocated"
KINDS = (LOST, STALE, TORN, MISDIRECTED, CORRUPTED, DEALLOCATED, UNREADABLE, OVERRUN, PROTECTION)
_MASK = (1 << DRIVE_SHIFT) - 1
IO_NAMES = {
    WRITE: ("write", "writes"),
    WRITE_THROUGH: ("write through the cache", "writes through the cache"),
    FLUSH: ("flush", "flushes"),
    READ: ("read", "reads"),
    ZEROS: ("zeroing", "zeroings"),
    UNMAP: ("deallocation", "deallocations"),
}
"""One and several I/Os of each kind."""


@dataclass(frozen=True)
class Write:
    """One write that ended: times in ns of the bench; `problem` is its errno, 0 when it was acknowledged.

    `zeros`: it left zeros; with `may`, or what was there before.
    """

    sequence: int
    sector: int
    length: int
    begin: int
    end: int
    through: bool
    problem: int
    zeros: bool = False
    may: bool = False


@dataclass(frozen=True)
class Violation:
    """Something on the drive that may not be: which sectors, which write they should be of, what is there instead.

    `flush` is the end of the flush that covers the write (ns of the bench), None when none does.
    """

    kind: str
    sector: int
    sectors: int
    sequence: int
    acknowledged: int
    flush: int | None
    found: int

    @property
    def sentence(self) -> str:
        under = "written through or flushed" if self.flush is not None else "not flushed"
        instead = f", write {self.found} is there" if self.found else ""
        return (
            f"{self.kind}: {self.sectors} sectors at {sector_name(self.sector)} of write {self.sequence}, "
            f"acknowledged at {self.acknowledged / 1e9:.3f} s, {under}{instead}"
        )


class Oracle:
    """The list of one trial's I/Os, and what follows from it."""

    def __init__(self) -> None:
        self.writes: dict[int, Write] = {}
        self.flushes: list[tuple[int, int]] = []
        self.wrong_reads: list[tuple[str, int, int, int]] = []
        self._at: defaultdict[int, list[int]] = defaultdict(list)

    def take(self, ios: Iterable[Sequence[Any]]) -> None:
        """I/Os of a line of the stream, in the order they ended. Raises ValueError for a write that is told twice."""
        for kind, sequence, sector, length, begin, end, problem in ios:
            if kind in (WRITE, WRITE_THROUGH, ZEROS, UNMAP):
                if sequence in self.writes:
                    raise ValueError(f"write {sequence} is told a second time")
                through, zeros, may = kind == WRITE_THROUGH, kind in (ZEROS, UNMAP), kind == UNMAP
                self.writes[sequence] = Write(sequence, sector, length, begin, end, through, problem, zeros, may)
                for at in range(sector, sector + length):
                    self._at[at].append(sequence)
            elif kind == FLUSH and not problem:
                self.flushes.append((begin, end))
            elif kind == READ and problem in _READ_KINDS:
                self.wrong_reads.append((_READ_KINDS[problem], sector, length, end))

    def flushed(self, write: Write) -> int | None:
        """When an acknowledged write was safe from a loss of power (ns), None while it was not.

        A flush covers what was acknowledged before it began, and only once it is completed.
        """
        if write.problem:
            return None
        if write.through:
            return write.end
        ends = [end for begin, end in self.flushes if begin >= write.end]
        return min(ends) if ends else None

    def judge(self, runs: Iterable[Sequence[Any]], keeps: str, *again: Iterable[Sequence[Any]]) -> list[Violation]:
        """What was read back `(sector, count, code, sequence)`, held against the list; `again` are later readings.

        What was wrong at first and right in one of these is on the drive, and was read stale.
        """
        later = [dict(_sectors(reading)) for reading in again]
        violations = []
        for sector, (code, sequence) in _sectors(runs):
            violation = self._violation(sector, code, sequence, keeps)
            if violation is None:
                continue
            if code != UNREADABLE and any(
                sector in reading and self._violation(sector, *reading[sector], keeps) is None for reading in later
            ):
                violation = Violation(**{**violation.__dict__, "kind": STALE})
            violations.append(violation)
        return list(_joined(violations))

    def missing(self, runs: Iterable[Sequence[Any]]) -> int:
        """How many written sectors were never read back: without them nothing is proven."""
        return len(set(self._at) - {sector for sector, _ in _sectors(runs)})

    def _violation(self, sector: int, code: str, sequence: int, keeps: str) -> Violation | None:
        """What is wrong with one sector, None when nothing is."""
        order = self._at.get(sector)
        if not order:
            return None
        must = self._must(order, keeps)
        if must is None:
            # nothing here was ever promised
            return None
        allowed = order[bisect.bisect_left(order, must.sequence) :]
        newer = [self.writes[number] for number in allowed[1:]]
        if code == GOOD and (sequence in allowed or sequence > order[-1]):
            # a sequence above the last that was told is of a write that was under way when telling ended
            return None
        if code == ZERO and any(write.zeros for write in (must, *newer)):
            return None
        if code == TORN and any(write.problem for write in newer):
            return None
        return Violation(
            kind=self.kind(code),
            sector=sector,
            sectors=1,
            sequence=must.sequence,
            acknowledged=must.end,
            flush=self.flushed(must),
            found=sequence,
        )

    def _must(self, order: Sequence[int], keeps: str) -> Write | None:
        for number in reversed(order):
            write = self.writes[number]
            if not write.problem and not write.may and (keeps == "acknowledged" or self.flushed(write) is not None):
                return write
        return None

    @staticmethod
    def kind(code: str) -> str:
        """What a sector that may not be there is called."""
        if code in (GOOD, FOREIGN):
            return LOST
        return DEALLOCATED if code == ZERO else code


def read_sentence(kind: str, sector: int, length: int) -> str:
    """What is wrong with a read, or with what is told as one."""
    if kind == OTHER_ANSWER:
        return f"{kind}: the drive answered {_enquiry(sector)} otherwise than before, or a shorter one by other bytes"
    if kind == SOURCE_CHANGED:
        return f"{kind}: a write of {length} sectors at {sector_name(sector)} changed the memory it was taken from"
    if kind == UNCOMPARED:
        return (
            f"{kind}: a VERIFY of {length} sectors at {sector_name(sector)} took other data than the drive's for good"
        )
    wrong = "is of none that the drive has, and was not refused with a reason"
    other = "gave other data than what was acknowledged"
    return f"{kind}: a read of {length} sectors at {sector_name(sector)} {wrong if kind == UNREFUSED else other}"


def error_sentence(kind: str, sector: int, length: int, problem: int) -> str:
    """Which I/O failed, and with what."""
    error = errno.errorcode.get(problem, f"errno {problem}")
    if kind == READ and not length:
        return f"the enquiry {_enquiry(sector)}, with {error}"
    where = f" of {length} sectors at {sector_name(sector)}" if length else ""
    return f"a {IO_NAMES[kind][0]}{where}, with {error}"


def _enquiry(number: int) -> str:
    return ORDER[number] if number < len(ORDER) else f"of number {number}"


def sector_name(sector: int) -> str:
    """A sector in words, of which drive where it is not the trial's own."""
    drive = sector >> DRIVE_SHIFT
    if drive >= FIRST_LAYER:
        return f"{sector & _MASK} of {LAYERS[(drive - FIRST_LAYER) % len(LAYERS)]} on top of the drive"
    return f"{sector & _MASK} of drive {drive} beside it" if drive else str(sector)


_READ_KINDS = {number: STALE if code == GOOD else Oracle.kind(code) for code, number in OTHER_DATA.items()}
"""What a read of the load is called that gave other data than what was acknowledged, by its number.

A whole sector of another write of this place is an older one's: a place has one write under way at most.
"""


def _sectors(runs: Iterable[Sequence[Any]]) -> Iterator[tuple[int, tuple[str, int]]]:
    for first, count, code, sequence in runs:
        for sector in range(first, first + count):
            yield sector, (code, sequence)


def _joined(violations: Sequence[Violation]) -> Iterator[Violation]:
    """Neighbouring sectors of one write that are wrong alike are one violation."""
    growing: Violation | None = None
    for violation in violations:
        if (
            growing is not None
            and violation.sector == growing.sector + growing.sectors
            and _alike(violation, growing)
        ):
            growing = Violation(**{**growing.__dict__, "sectors": growing.sectors + 1})
            continue
        if growing is not None:
            yield growing
        growing = violation
    if growing is not None:
        yield growing


def _alike(first: Violation, second: Violation) -> bool:
    return (first.kind, first.sequence, first.found) == (second.kind, second.sequence, second.found)
