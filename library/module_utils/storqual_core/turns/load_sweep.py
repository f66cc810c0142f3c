# SPDX-License-Identifier: Apache-2.0
"""The sweep: a data load that goes through combinations of size, address, memory, way and command on one drive.

In this order: every place is filled, and so are blocks where a write lands whose address went wrong; the rows of
the covering design, each a write, its read-back and a look at the blocks beside it, from one processor after the
other, and commands that are seldom sent; data that repeats, which a driver may take for something else; pauses, after
each of which another command comes first; more writes at once than the adapter takes; and ordinary commands, with the
kernel's memory measured between them. All of it is told as I/Os, as those of any load are; what a row reached is told
with it, and what drive, adapter or kernel lack is told once, with the reason.
"""

from __future__ import annotations

import errno
import os
import random
import time
from dataclasses import replace
from functools import partial
from itertools import count, product
from typing import Callable, Iterator, Mapping, Sequence

from ..kit.machine import Machine, write_attribute
from .enquiries import ORDER, Enquirer
from .integrity_load import (
    FLUSH,
    OTHER_DATA,
    OVERRUN,
    READ,
    SOURCE_CHANGED,
    UNCOMPARED,
    UNMAP,
    UNREFUSED,
    WRITE,
    WRITE_THROUGH,
    ZEROS,
    IntegrityRequest,
    KnownSectors,
    SweepRequest,
    Tell,
    problem_of,
)
from .kernel_ways import KernelWays, Ring
from .load_levels import PLACES, QueueLimits, Region, alias_places, drawn_size, parts_of, regions_of, size_of
from .load_memory import Arena, Shaped
from .scsi_command import CHECK_CONDITION, LackingError, MiscompareError
from .sectors import CORRUPTED, SECTOR, make_sectors, runs_of

_GRID = 256
_MOST_ALIASES = 1200
_FILL = 2048
_ROWS_AT_ONCE = 16
_MOST_ERRORS = 20
_MEMORY_BATCHES = 16
_MEMORY_LONGEST = 2048
_MEMORY_ROUNDS = 8
_MAY_LEAK = 4096
"""Memory that grew by so many bytes is measured for another round: slabs of 32 KiB hide a small leak for long."""
_ORDINARY = (
    *((FLUSH, ""), (WRITE, "block"), (READ, "block"), (WRITE, "pieces"), (READ, "longest")),
    *((FLUSH, ""), (WRITE, "block"), (READ, "block"), (WRITE, "longest"), (READ, "pieces")),
)
"""What kernel memory is measured between: kinds of I/O, and of what length; many pieces have longer lists."""
_GOLDEN = 0.6180339887498949
_CONTENTS = {
    "zeros": bytes(1),
    "ones": b"\xff",
    "alternating bits": b"\x55\xaa",
    "alternating words": b"\x00\x00\xff\xff",
    "counting bytes": bytes(range(256)),
}
"""Data that repeats. What compresses, finds zeros or puts marks into data treats it otherwise than random bytes."""
_BURST = (128, 1, 8, 1)
"""Sectors of writes at once, in turn, at least a block each."""
_MOST_AT_ONCE = 2048
"""An adapter that holds more is not filled, which is told."""

Told = Callable[..., None]
"""Takes the kind of a line and its fields."""


class Sweep:
    """One sweep of one drive. `window` are the first sector that may be written and the one after the last."""

    def __init__(
        self,
        load: IntegrityRequest,
        request: SweepRequest,
        limits: QueueLimits,
        window: tuple[int, int],
        tag: bytes,
        tell: Tell,
        line: Told,
        numbers: Iterator[int] | None = None,
    ) -> None:
        pieces = min(limits.segments, request.pieces or limits.segments)
        self._request, self._limits, self._tag = request, replace(limits, segments=pieces), tag
        self._tell, self._line = tell, line
        self._numbers = count(1) if numbers is None else numbers
        self._random = random.Random(f"{load.seed}/sweep")  # noqa: S311 - a drawn load, no secret
        own = Region("load", load.first, load.sectors, load.first)
        first, end = (-(-window[0] // limits.block) * limits.block, window[1] // limits.block * limits.block)
        self.regions = regions_of(first, end, span_of(request.most), load.seed, [own])
        taken = [*self.regions, own]
        self.aliases = alias_places(self.regions, first, end, limits.block, _GRID, _MOST_ALIASES)
        self.aliases = [alias for alias in self.aliases if not any(at.first <= alias < at.end for at in taken)]
        extents = [(region.first, region.sectors) for region in self.regions]
        self.ledger = KnownSectors(
            [*extents, *((at, limits.block) for at in self.aliases)], limits.block, mixes=load.mixes
        )
        self._lacks: set[tuple[str, str]] = set()
        self._rows: list[list[object]] = []
        self._errors = self._problem = 0
        self._half = 3 * (load.seed % 2)
        self._share = self._random.random()
        self._until = self._waits_since = 0.0

    @property
    def parts(self) -> Sequence[tuple[int, int]]:
        """What is read back in the end: first sector and how many."""
        return self.ledger.extents

    def waits_s(self) -> float:
        """For how long the I/O that is under way has not ended; of any thread."""
        since = self._waits_since
        return time.monotonic() - since if since else 0.0

    @property
    def failed_with(self) -> int:
        """The errno of the last I/O where every one failed in the end, else 0."""
        return self._problem if self._errors >= _MOST_ERRORS else 0

    def run(self, descriptor: int, machine: Machine, seed: int) -> None:
        """All of it, with a descriptor that has O_DIRECT. A drive that fails every I/O ends it."""
        request, limits = self._request, self._limits
        arena = Arena(max(request.most, _FILL) * SECTOR, limits.alignment, limits.block * SECTOR, seed)
        if request.pieces:
            arena.request = (limits.limit * SECTOR, limits.segments)
        for what, why in request.lacks:
            self._lack(what, why)
        for shape, why in arena.lacks.items():
            self._lack(f"shape {shape}", why)
        ways = KernelWays(descriptor, limits, arena)
        try:
            self._until = time.monotonic() + request.limit_s
            self._steps(ways, machine)
        finally:
            ways.close()
            self._send_rows()

    def _steps(self, ways: KernelWays, machine: Machine) -> None:
        places = {region.name: region for region in self.regions}
        self._fill(ways)
        kinds = {"rows": (self._request.rows, self._row), "commands": (self._request.commands, self._command)}
        # spread among each other: where there is no time for all, some of both are left out
        steps = sorted(
            ((at + 1) / len(rows), what, at) for what, (rows, _) in kinds.items() for at in range(len(rows))
        )
        processors = sorted(os.sched_getaffinity(0))
        try:
            for at, (_, what, number) in enumerate(steps):
                rows, go_through = kinds.get(what, ((), None))
                if go_through is None:
                    continue
                if self._is_over(what, number, len(rows)):
                    del kinds[what]
                    continue
                os.sched_setaffinity(0, processors[at % len(processors) : at % len(processors) + 1])
                go_through(ways, places, number, rows[number])
        finally:
            os.sched_setaffinity(0, processors)
        self._beside(
            "processors", f"{min(len(steps), len(processors))} of {len(processors)}", "send in turn", right=True
        )
        self._between_enquiries(ways)
        self._repeated_data(ways)
        for number, idle_s in enumerate(self._request.idles_s):
            self._after_idle(ways, number, idle_s)
        self._read_beyond(ways)
        self._burst(ways)
        self._protect(ways, machine)
        self._measure_memory(ways, machine)

    def _is_over(self, what: str, number: int, total: int) -> bool:
        if self._errors >= _MOST_ERRORS:
            self._lack(f"{what} {number + 1} to {total}", f"the last {_MOST_ERRORS} I/Os failed")
            return True
        if time.monotonic() >= self._until:
            self._lack(f"{what} {number + 1} to {total}", f"the {self._request.limit_s:g} s of this load were over")
            return True
        return False

    def _lack(self, what: str, why: str) -> None:
        """Tell once what is not reached."""
        if (what, why) not in self._lacks:
            self._lacks.add((what, why))
            self._line("lacks", what=what, why=why)

    def _timed(self, kind: str, sequence: int, sector: int, length: int, work: Callable[[], object]) -> int:
        """Do it and tell it; the errno, or OTHER_DATA, that it ended with. Raises LackingError, told as no I/O."""
        problem = 0
        self._waits_since = time.monotonic()
        begin = time.monotonic_ns()
        try:
            work()
        except MiscompareError:
            problem = OTHER_DATA[CORRUPTED]
        except OSError as failure:
            problem = problem_of(kind, failure)
        finally:
            self._waits_since = 0.0
        end = time.monotonic_ns()
        self._errors = self._errors + 1 if problem and problem not in OTHER_DATA.values() else 0
        self._problem = problem or self._problem
        self._tell(kind, sequence, sector, length, begin, end, problem)
        return problem

    def _write(self, kind: str, sector: int, length: int, memory: Shaped, work: Callable[[], object]) -> int:
        """A write of tagged sectors that `work` sends; its sequence, 0 where it failed. Raises LackingError."""
        sequence = next(self._numbers)
        data = make_sectors(self._tag, sector, sequence, length, self._period(memory, length))
        memory.put(data)
        written = self._recorded(kind, sequence, sector, length, work)
        self._tell_changed(sector, length, memory, data)
        return written

    def _tell_changed(self, sector: int, length: int, memory: Shaped, data: bytes | bytearray) -> None:
        """Tell of a write that changed what it was taken from."""
        now, held = time.monotonic_ns(), memory.data()
        if held != data[: len(held)]:
            self._tell(READ, 0, sector, length, now, now, OTHER_DATA[SOURCE_CHANGED])

    def _recorded(self, kind: str, sequence: int, sector: int, length: int, work: Callable[[], object]) -> int:
        """A command that changes sectors, as the ledger has it; as `_write`."""
        self.ledger.begin(sequence, sector, length)
        try:
            problem = self._timed(kind, sequence, sector, length, work)
        except LackingError:
            # what a refused command did is not known
            self.ledger.end(sequence, errno.EINVAL)
            raise
        self.ledger.end(sequence, problem, zeros=kind == ZEROS)
        return 0 if problem else sequence

    def _period(self, memory: Shaped, length: int) -> int:
        return min(length, len(memory.pieces[0]) // SECTOR) if memory.repeats else 0

    def _read(self, way: Callable[[Shaped], object], sector: int, length: int, memory: Shaped) -> bool:
        """A read that is compared, memory beside it included; whether all of it was right. Raises LackingError."""
        before = self.ledger.before(sector, length)
        memory.clear()

        def read() -> None:
            way(memory)
            if memory.overrun():
                raise OSError(OTHER_DATA[OVERRUN], "memory beside the buffer was changed")
            code = self.ledger.wrong(sector, runs_of(memoryview(memory.data()), self._tag, sector), before)
            if code:
                raise OSError(OTHER_DATA[code], "other data than what was acknowledged")

        return not self._timed(READ, 0, sector, length, read)

    def _plain_read(self, ways: KernelWays, sector: int, length: int) -> bool:
        memory = ways.arena.shape("aligned", length * SECTOR)
        return self._read(lambda into: ways.read("direct", into, sector), sector, length, memory)

    def _fill(self, ways: KernelWays) -> None:
        """Write every place once, and the blocks where a write lands whose address went wrong."""
        for first, sectors in self.ledger.extents:
            for sector in range(first, first + sectors, _FILL):
                if self._errors >= _MOST_ERRORS:
                    return
                length = min(_FILL, first + sectors - sector)
                self._write_by(ways, ("direct", "aligned"), sector, length)

    def _write_by(self, ways: KernelWays, level: tuple[str, str], sector: int, length: int) -> tuple[int, str, str]:
        """Write by a way from a shape, or what the kernel has of them; the sequence (0 for none), way and shape."""

        def write(way: str, memory: Shaped) -> int:
            kind = WRITE_THROUGH if way == "dsync" else WRITE
            return self._write(kind, sector, length, memory, lambda: ways.write(way, memory, sector))

        return self._by_level(ways, "way", level, length, write)

    def _by_level(
        self, ways: KernelWays, what: str, level: tuple[str, str], length: int, transfer: Callable[[str, Shaped], int]
    ) -> tuple[int, str, str]:
        """What `transfer` returns, with way and shape: where the kernel has not both, those that it has."""
        lacking = ""
        for way, shape in (level, (level[0], "aligned"), ("direct", "aligned")):
            if shape in ways.arena.lacks:
                continue
            try:
                result = transfer(way, ways.arena.shape(shape, length * SECTOR))
            except LackingError as problem:
                lacking = str(problem)
                continue
            if lacking and (way, shape) != level:
                self._lack(f"{what} {level[0]}" if way != level[0] else f"{what} {' from '.join(level)}", lacking)
            return result, way, shape
        self._lack(f"{what} {level[0]}", lacking)
        return 0, "", ""

    def _row(self, ways: KernelWays, places: Mapping[str, Region], number: int, row: Sequence[str]) -> None:
        """Write, read back, and read the blocks beside it."""
        size, place, side, way, shape, back = row
        # the golden section leaves no wide gap between lengths, however many are drawn
        self._share = (self._share + _GOLDEN) % 1.0
        length, lacking = size_of(size, self._limits, self._request.most, self._share)
        if lacking:
            self._lack(f"size {size}", lacking)
            size = ""
            length = drawn_size(self._limits, self._request.most, self._share)
        region = places.get(place)
        if region is None:
            self._lack(f"place {place}", "the drive has no room for it")
            place, region = "", self.regions[0]
        sector = region.begin_of(length, side, self._limits.block)
        sequence, used, shaped = self._write_by(ways, (way, shape), sector, length)
        into = "aligned" if shaped == "one_page" else shaped
        right, back = self._read_back(ways, (back, into), sector, length)
        right &= self._is_unchanged_beside(ways, region, sector, length)
        self._rows.append([number, [size, place, side, used, shaped, back], sequence, int(right)])
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._send_rows()

    def _read_back(self, ways: KernelWays, level: tuple[str, str], sector: int, length: int) -> tuple[bool, str]:
        """Read by a way, into a shape, or by what the kernel has of them. Whether right, and the way."""

        def read(way: str, memory: Shaped) -> bool:
            if way == "verify":
                return self._verify(ways, memory, sector, length)
            return self._read(lambda into: ways.read(way, into, sector), sector, length, memory)

        right, way, _ = self._by_level(ways, "read", level, length, read)
        return bool(right), way

    def _is_unchanged_beside(self, ways: KernelWays, region: Region, sector: int, length: int) -> bool:
        block = self._limits.block
        beside = [at for at in (sector - block, sector + length) if region.first <= at <= region.end - block]
        right = [self._plain_read(ways, at, block) for at in beside]
        return all(right)

    def _verify(self, ways: KernelWays, memory: Shaped, sector: int, length: int) -> bool:
        """Read as ever, then have the drive compare what came with what it has. Raises LackingError."""
        if not self._plain_read(ways, sector, length):
            return False
        memory.put(ways.arena.shape("aligned", length * SECTOR).data())
        right = not self._timed(READ, 0, sector, length, lambda: ways.read("verify", memory, sector))
        memory.pieces[-1][-1] ^= 1

        def compare() -> None:
            if not ways.finds_difference(memory, sector):
                raise OSError(OTHER_DATA[UNCOMPARED], "other data than the drive has was verified as good")

        return not self._timed(READ, 0, sector, length, compare) and right

    def _send_rows(self) -> None:
        if self._rows:
            self._line("rows", rows=self._rows)
            self._rows = []

    def _command(self, ways: KernelWays, places: Mapping[str, Region], number: int, row: Sequence[str]) -> None:
        """A command that is seldom sent, with what must be there after it."""
        size, place, name = row
        length, lacking = size_of(size, self._limits, self._request.most)
        region = places.get(place)
        if lacking or region is None:
            self._lack(f"size {size}" if lacking else f"place {place}", lacking or "the drive has no room for it")
            return
        block = self._limits.block
        sector = region.begin_of(length, "above", block)
        try:
            sequence, right = self._send(ways, name, sector, length)
        except LackingError as problem:
            self._lack(f"command {name}", str(problem))
            return
        right &= self._is_unchanged_beside(ways, region, sector, length)
        self._rows.append([number, [size, place, name], sequence, int(right)])

    def _send(self, ways: KernelWays, name: str, sector: int, length: int) -> tuple[int, bool]:
        """Send it and read back; the sequence of what is there then. Raises LackingError."""
        block = self._limits.block

        def work(memory: Shaped) -> None:
            ways.command(name, memory, sector, length)

        if name.startswith("read"):
            memory = ways.arena.shape("aligned", length * SECTOR)
            right = self._read(work, sector, length, memory)
            known = self.ledger.before(sector, 1)[0][0]
            return known, right
        if name in ("discard", "unmap", "unmap_parts"):
            parts = parts_of(sector, length, block) if name == "unmap_parts" else [(sector, length)]
            return self._deallocate(ways, work, sector, length, parts)
        if name == "zeroout":
            memory = ways.arena.shape("aligned", 0)
            sequence = self._recorded(ZEROS, next(self._numbers), sector, length, lambda: work(memory))
            return sequence, self._plain_read(ways, sector, length)
        if name.startswith("write_same"):
            memory = Shaped([ways.arena.shape("aligned", block * SECTOR).pieces[0]], (), repeats=True)
            sequence = self._write(WRITE, sector, length, memory, lambda: work(memory))
        elif name == "compare_and_write":
            sequence = self._compare_and_write(ways, sector, length)
        else:
            memory = ways.arena.shape("aligned", length * SECTOR)
            sequence = self._write(WRITE, sector, length, memory, lambda: work(memory))
        return sequence, self._plain_read(ways, sector, length)

    def _compare_and_write(self, ways: KernelWays, sector: int, length: int) -> int:
        """What is there is read, and sent to be compared, with what is to be there after it."""
        if not self._plain_read(ways, sector, length):
            return 0
        held = ways.arena.shape("aligned", length * SECTOR).data()
        both = ways.arena.shape("aligned", 2 * length * SECTOR)
        sequence = next(self._numbers)
        both.put(held + bytes(make_sectors(self._tag, sector, sequence, length)))
        return self._recorded(
            *(WRITE, sequence, sector, length), lambda: ways.command("compare_and_write", both, sector, length)
        )

    def _deallocate(
        self,
        ways: KernelWays,
        work: Callable[[Shaped], object],
        sector: int,
        length: int,
        parts: Sequence[tuple[int, int]],
    ) -> tuple[int, bool]:
        """After it there is what was there, or in `parts` zeros where the drive says so; then all is written anew."""
        known = self.ledger.before(sector, length)[0]
        (first, sectors), *others = parts
        begin = time.monotonic_ns()
        failed = self._timed(
            *(UNMAP, next(self._numbers), first, sectors), lambda: work(ways.arena.shape("aligned", 0))
        )
        for start, many in others:
            self._tell(UNMAP, next(self._numbers), start, many, begin, time.monotonic_ns(), failed)
        if failed:
            return 0, False
        right = True
        if self._limits.keeps_zeros:
            memory = ways.arena.shape("aligned", length * SECTOR)
            emptied = {at for start, many in parts for at in range(start - sector, start - sector + many)}

            def read() -> None:
                ways.read("direct", memory, sector)
                for start, many, code, number in runs_of(memoryview(memory.data()), self._tag, sector):
                    places = range(start - sector, start - sector + many)
                    zeros = code == "zero" and emptied.issuperset(places)
                    if not zeros and not (code == "good" and all(known[at] in (0, number) for at in places)):
                        raise OSError(OTHER_DATA[code], "other data than what was there, and no zeros")

            right = not self._timed(READ, 0, sector, length, read)
        sequence, _, _ = self._write_by(ways, ("direct", "aligned"), sector, length)
        return sequence, self._plain_read(ways, sector, length) and right

    def _between_enquiries(self, ways: KernelWays) -> None:
        """Each enquiry right before and right after writes of every kind, and before reads."""
        if not self._limits.scsi:
            self._lack("enquiries between writes", "this is no SCSI drive")
            return
        enquirer = Enquirer(ways.direct, self._lack)
        for number, name in enumerate(ORDER):
            if name not in enquirer.names:
                continue
            ask = partial(self._timed, READ, 0, number, 0, partial(enquirer.ask, name))
            right, written = True, []
            for step, kind in enumerate(("write", "longest", "dsync")):
                if self._errors >= _MOST_ERRORS:
                    return
                region = self.regions[(number + step) % len(self.regions)]
                right &= not ask()
                written.append(self._idle_write(ways, kind, region, "above", (8, 1, 3)[step] * self._limits.block))
            for at in written:
                right &= not ask()
                right &= self._plain_read(ways, *at)
            right &= not self._timed(READ, 0, number, 0, partial(enquirer.ask_shorter, name))
            self._beside("enquiry", name, "between writes", right=right)

    def _repeated_data(self, ways: KernelWays) -> None:
        """Writes of data that repeats, in each length, read and compared; then the sectors are tagged again."""
        block, region = self._limits.block, self.regions[-1]
        for name, repeated in _CONTENTS.items():
            right = True
            for blocks in (1, 16, 512):
                if self._errors >= _MOST_ERRORS:
                    return
                length = min(blocks * block, self._limits.limit // block * block)
                sector = region.begin_of(length, "above", block)
                right &= self._write_repeated(ways, repeated, sector, length)
                self._write_by(ways, ("direct", "aligned"), sector, length)
                right &= self._plain_read(ways, sector, length)
            self._beside("data of", name, "", right=right)

    def _write_repeated(self, ways: KernelWays, repeated: bytes, sector: int, length: int) -> bool:
        data = repeated * (length * SECTOR // len(repeated))
        memory = ways.arena.shape("aligned", length * SECTOR)
        memory.put(data)
        kind = WRITE if any(repeated) else ZEROS
        write = partial(ways.write, "direct", memory, sector)
        if not self._recorded(kind, next(self._numbers), sector, length, write):
            return False
        memory.clear()

        def read() -> None:
            ways.read("direct", memory, sector)
            if memory.data() != data:
                raise OSError(OTHER_DATA[CORRUPTED], "other data than what was written")

        return not self._timed(READ, 0, sector, length, read)

    def _beside(self, *reached: str, right: bool = True) -> None:
        """Tell of what is in no design, in three parts."""
        self._line("rows", rows=[[0, list(reached), 0, int(right)]])

    def _after_idle(self, ways: KernelWays, number: int, idle_s: float) -> None:
        """Let one kind of write come last, wait, and let another command come first; all writes are read back."""
        if self._errors >= _MOST_ERRORS:
            return
        block = self._limits.block
        other = self.regions[(number + 1) % len(self.regions)]
        # either half of them has a plain write
        first = ("write", "read", "flush", "longest", "dsync", "write")[(number + self._half) % 6]
        last = ("dsync", "longest", "write")[(number + self._half) % 3]
        written = [self._idle_write(ways, last, other, "below", 2 * block)]
        time.sleep(idle_s)
        if first == "read":
            self._plain_read(ways, *written[0])
        elif first == "flush":
            self._timed(FLUSH, 0, 0, 0, lambda: os.fdatasync(ways.direct))
        for step, blocks in enumerate((1, 8, 3, 16)):
            kind, side = ("write" if step else first), ("above", "below")[step % 2]
            # none of them writes over another one, which would take away what that left
            place = self.regions[(number + step // 2 * 2) % len(self.regions)]
            written.append(self._idle_write(ways, kind, place, side, blocks * block))
        for sector, length in written:
            self._plain_read(ways, sector, length)
        self._beside("idle", f"{idle_s:.1f} s", f"from {last} to {first}")

    def _idle_write(self, ways: KernelWays, kind: str, region: Region, side: str, length: int) -> tuple[int, int]:
        """A write beside a pause; where it went, and its sectors."""
        if kind == "longest":
            length = size_of("limit", self._limits, self._request.most)[0] or length
        sector = region.begin_of(length, side, self._limits.block)
        self._write_by(ways, ("dsync" if kind == "dsync" else "direct", "aligned"), sector, length)
        return sector, length

    def _read_beyond(self, ways: KernelWays) -> None:
        """Reads of sectors that the drive does not have: errors that any drive gives, and that nothing may hide."""
        block = self._limits.block
        end = os.lseek(ways.direct, 0, os.SEEK_END) // SECTOR // block
        for name in ("read10", "read16"):
            for first, blocks in ((end, 1), (end - 1, 2)):
                begin = time.monotonic_ns()
                try:
                    answer = ways.read_beyond(name, first, blocks)
                except LackingError as problem:
                    self._lack(f"{name} behind the end of the drive", str(problem))
                    break
                good = not answer.status and not answer.host and answer.residual < blocks * block * SECTOR
                hidden = good or (answer.status == CHECK_CONDITION and not answer.key)
                self._tell(
                    *(READ, 0, first * block, blocks * block, begin, time.monotonic_ns()),
                    OTHER_DATA[UNREFUSED] if hidden else 0,
                )

    def _burst(self, ways: KernelWays) -> None:
        """More writes at once than the adapter holds, of one block and of many, then as many reads at once."""
        block = self._limits.block
        burst = min(self._limits.depth + self._limits.depth // 16 + 8, _MOST_AT_ONCE)
        if burst <= self._limits.depth:
            self._lack(f"more than {burst} commands at once", f"{self._limits.depth} would fill the adapter's queue")
        region, memory = self.regions[-1], ways.arena.whole()[0]
        room = min(region.sectors, len(memory) // SECTOR - 16 * block)
        burst = min(burst, room // block)
        spare, end, extents = room - burst * block, 0, []
        for at in range(burst):
            more = min(_BURST[at % len(_BURST)], self._limits.limit) // block * block - block
            length = block + (more if 0 < more <= spare else 0)
            spare -= length - block
            extents.append((end, length))
            end += length
        try:
            ring = Ring(_MOST_AT_ONCE, ways.arena.whole())
        except LackingError as lacking:
            self._lack(f"{burst} commands at once", str(lacking))
            return
        self._random.shuffle(extents)
        memory = memory[8 * block * SECTOR :]
        requests = [
            ((memory[at * SECTOR : (at + length) * SECTOR],), (region.first + at) * SECTOR) for at, length in extents
        ]
        try:
            sent = []
            for (piece,), offset in requests:
                sequence, sector, length = next(self._numbers), offset // SECTOR, len(piece) // SECTOR
                data = make_sectors(self._tag, sector, sequence, length)
                piece[:] = data
                self.ledger.begin(sequence, sector, length)
                sent.append((sequence, data))
            begin, results, end = self._at_once(ring, ways, requests, reads=False)
            for (sequence, data), ((piece,), offset), result in zip(sent, requests, results):
                sector, length = offset // SECTOR, len(piece) // SECTOR
                problem = 0 if result == len(piece) else (-result if result < 0 else errno.EIO)
                self.ledger.end(sequence, problem)
                self._tell(WRITE, sequence, sector, length, begin, end, problem)
                self._tell_changed(sector, length, Shaped((piece,), ()), data)
            before = [self.ledger.before(offset // SECTOR, len(piece) // SECTOR) for (piece,), offset in requests]
            for (piece,), _ in requests:
                piece[:] = bytes(len(piece))
            begin, results, end = self._at_once(ring, ways, requests, reads=True)
            for ((piece,), offset), result, known in zip(requests, results, before):
                sector, problem = offset // SECTOR, 0
                if result != len(piece):
                    problem = -result if result < 0 else errno.EIO
                code = "" if problem else self.ledger.wrong(sector, runs_of(piece, self._tag, sector), known)
                self._tell(READ, 0, sector, len(piece) // SECTOR, begin, end, OTHER_DATA[code] if code else problem)
        finally:
            ring.close()
        self._beside("burst", str(burst), f"of {self._limits.depth}")

    def _protect(self, ways: KernelWays, machine: Machine) -> None:
        """Protection information made by the kernel or by what is below it, and checked by the one or the other."""
        limits = self._limits
        if not limits.integrity:
            why = "the drive is not formatted with it"
            if limits.protection:
                why = f"the drive has type {limits.protection}, which adapter and driver do not hand on to the kernel"
            self._lack("T10 protection information", why)
            return
        before = {name: machine.text(f"{limits.integrity}/{name}") for name in ("write_generate", "read_verify")}
        if not limits.inserts:
            self._lack("protection information of the adapter's", "scsi_debug is no hardware, and makes none")
        sizes = (limits.block, 8 * limits.block, limits.limit, 2 * limits.limit + limits.block)
        lengths = [min(length, self._request.most) for length in sizes]
        region = self.regions[0]
        try:
            for switches in product("10" if limits.inserts else "1", "10"):
                for name, value in zip(before, switches):
                    write_attribute(machine.path(f"{limits.integrity}/{name}"), value)
                right = True
                for length in lengths:
                    sector = region.begin_of(length, "across", limits.block)
                    self._write_by(ways, ("direct", "segments"), sector, length)
                    right &= self._plain_read(ways, sector, length)
                words = [f"{name}={value}" for name, value in zip(before, switches)]
                self._beside("protection", *words, right=right)
        finally:
            for name, value in before.items():
                write_attribute(machine.path(f"{limits.integrity}/{name}"), value)

    def _at_once(
        self, ring: Ring, ways: KernelWays, requests: Sequence[tuple[Sequence[memoryview], int]], *, reads: bool
    ) -> tuple[int, list[int], int]:
        """When they began, what they came to, and when the last one ended."""
        self._waits_since, begin = time.monotonic(), time.monotonic_ns()
        results = ring.transfer(ways.direct, requests, reads=reads)
        self._waits_since = 0.0
        return begin, results, time.monotonic_ns()

    def _measure_memory(self, ways: KernelWays, machine: Machine) -> None:
        """Ordinary commands in batches, with the kernel's memory after each: what grows with them is a leak."""
        commands, limits, region = self._request.memory_commands, self._limits, self.regions[0]
        if not commands:
            return
        most = min(_MEMORY_LONGEST, limits.limit, self._request.most, region.end - region.anchor)
        longest = most // limits.block * limits.block
        pieces = min(256 // limits.block * limits.block, longest)
        lengths = {
            "block": (limits.block, ways.arena.shape("aligned", limits.block * SECTOR)),
            "pieces": (pieces, ways.arena.shape("segments", pieces * SECTOR)),
            "longest": (longest, ways.arena.shape("aligned", longest * SECTOR)),
        }
        # every batch is made of the same commands
        repeats, samples = max(1, commands // _MEMORY_BATCHES // len(_ORDINARY)), []
        for batch in range(1, _MEMORY_ROUNDS * _MEMORY_BATCHES + 3):
            for kind, name in _ORDINARY * repeats:
                if self._errors >= _MOST_ERRORS:
                    return
                length, memory = lengths.get(name, (0, None))
                if memory is None:
                    self._timed(FLUSH, 0, 0, 0, lambda: os.fdatasync(ways.direct))
                elif kind == WRITE:
                    write = partial(ways.write, "direct", memory, region.anchor)
                    self._write(WRITE, region.anchor, length, memory, write)
                else:
                    self._read(lambda into: ways.read("direct", into, region.anchor), region.anchor, length, memory)
            if batch > 2:
                samples.append([batch * repeats * len(_ORDINARY), *kernel_memory(machine)])
                if len(samples) % _MEMORY_BATCHES == 0 and samples[-1][1] - samples[0][1] < _MAY_LEAK:
                    break
        self._line("memory", samples=samples)


def span_of(most: int) -> int:
    """Sectors to either side of an anchor, in whole MiB, that writes of at most `most` sectors need."""
    return (most + 2047) // 2048 * 2048


def most_sectors(most: int) -> int:
    """So many sectors a sweep reads back at most, on drives of any size."""
    return len(PLACES) * 2 * span_of(most) + _MOST_ALIASES * 8


def kernel_memory(machine: Machine) -> tuple[int, int]:
    """Bytes that the kernel keeps: slabs that cannot be reclaimed with vmalloc; and all that is nobody's else."""
    meminfo = {}
    for line in machine.lines("/proc/meminfo"):
        name, _, rest = line.partition(":")
        words = rest.split()
        meminfo[name] = int(words[0]) * 1024 if words and words[0].isdigit() else 0
    users = (
        "MemFree",
        "Active(anon)",
        "Inactive(anon)",
        "Active(file)",
        "Inactive(file)",
        "Unevictable",
        "SReclaimable",
    )
    rest_of = meminfo.get("MemTotal", 0) - sum(meminfo.get(name, 0) for name in users)
    return meminfo.get("SUnreclaim", 0) + meminfo.get("VmallocUsed", 0), rest_of
