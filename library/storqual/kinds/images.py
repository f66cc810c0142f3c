# SPDX-License-Identifier: Apache-2.0
"""A simulated power cut: what a drive may hold after it, built from the log of its writes, held against the oracle.

The log tells what reached the drive beneath the guest. At a cut all that was before the last completed flush has
lasted; of what came after, a volatile cache may have lost any part. So for each flush point images are built with
none, all, each alone and random parts of the unflushed writes lost, just before the next flush is completed. What
the guest was told is flushed must be in every one of them: a missing write means that driver or stack acknowledged
a flush that it never sent, or sent too early.

Images are maps of sectors to write sequences, not bytes: the writes are tagged, so a sector's content is its tag.

The log is one of QEMU's `blklogwrites` or of the kernel's dm-log-writes (Documentation/admin-guide/device-mapper/
log-writes.rst, drivers/md/dm-log-writes.c): a superblock in the first sector, then entries, each a sector with its
header and after it the data of a write. All little-endian, all in sectors of the log's own size.
"""

import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from storqual.kinds.oracle import Oracle, Write
from storqual_core.kit.errors import ToolError
from storqual_core.turns.sectors import GOOD, SECTOR, runs_of

MAGIC = 0x6A736677736872
VERSION = 1
_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")
FLUSH, FUA, DISCARD, MARK, METADATA = 1, 2, 4, 8, 16
_FLAGS = FLUSH | FUA | DISCARD | MARK | METADATA


@dataclass(frozen=True)
class LoggedWrite:
    """One entry: sector and length in sectors of the log, flags, where its data begin in the log file (bytes)."""

    number: int
    sector: int
    sectors: int
    flags: int
    offset: int


@dataclass(frozen=True)
class WriteLog:
    """An open log: the size of its sectors in bytes, and all its entries in the order of their completion."""

    path: Path
    sector_bytes: int
    entries: tuple[LoggedWrite, ...]

    def data(self, entry: LoggedWrite) -> bytes:
        """What a write wrote; nothing for a flush or a discard."""
        if entry.flags & (DISCARD | MARK):
            return b""
        with self.path.open("rb") as file:
            file.seek(entry.offset)
            return file.read(entry.sectors * self.sector_bytes)


def read_log(path: Path) -> WriteLog:
    """Read a log. Raises ToolError for another format, an unknown flag, or entries that are cut off."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SUPER.size)
        if len(head) < _SUPER.size:
            raise ToolError(f"{path}: {len(head)} bytes are no log of writes")
        magic, version, count, sector_bytes = _SUPER.unpack(head)
        if magic != MAGIC or version != VERSION:
            raise ToolError(f"{path}: magic {magic:#x} and version {version} are those of no log of writes")
        if sector_bytes < 512 or sector_bytes & (sector_bytes - 1):
            raise ToolError(f"{path}: sectors of {sector_bytes} bytes are none")
        entries = []
        offset = sector_bytes
        for number in range(count):
            file.seek(offset)
            fields = file.read(_ENTRY.size)
            if len(fields) < _ENTRY.size:
                raise ToolError(f"{path}: entry {number} of {count} is cut off")
            sector, sectors, flags, data_len = _ENTRY.unpack(fields)
            if flags & ~_FLAGS:
                raise ToolError(f"{path}: entry {number} has flags {flags:#x}, of which some are not known")
            offset += sector_bytes
            entries.append(LoggedWrite(number, sector, sectors, flags, offset))
            offset += -(-data_len // sector_bytes) * sector_bytes if flags & MARK else 0
            offset += 0 if flags & (DISCARD | MARK) else sectors * sector_bytes
            if offset > size:
                raise ToolError(f"{path}: the data of entry {number} of {count} are cut off")
    return WriteLog(path, sector_bytes, tuple(entries))


DROPPED_FLUSH = "dropped flush"
"""What a missing write is called that the guest had been told is flushed."""
_EACH_AT_MOST = 8
_RANDOM = 4
_TORN_SECTORS = 8
"""A transfer is torn at multiples of the longest block that a drive has."""
_ENOUGH = 10_000
"""So many missing sectors say all that more images would."""


@dataclass(frozen=True)
class Missing:
    """A write that was flushed as far as the guest knew and is not in an image of a cut, by its class of loss."""

    cut: int
    lost: str
    sector: int
    expected: int
    present: int

    @property
    def sentence(self) -> str:
        instead = f"write {self.present} is there" if self.present else "nothing of this trial is there"
        return (
            f"{DROPPED_FLUSH}: after a power cut at entry {self.cut} of the log, {self.lost} lost, write "
            f"{self.expected} was told to be flushed and is missing at sector {self.sector}, {instead}"
        )


@dataclass(frozen=True)
class CheckedImages:
    """How many flush points and images were looked at, and what was missing in them."""

    points: int
    images: int
    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class Logged:
    """An entry of a log of writes: its flags, and the sequences of the tagged writes in its sectors of 512 bytes.

    A sector without a tag of this trial has sequence 0; `first` is the first of them.
    """

    number: int
    flags: int
    first: int
    sequences: tuple[int, ...]

    @property
    def sectors(self) -> Iterator[tuple[int, int]]:
        return enumerate(self.sequences, self.first)

    def to_json(self) -> list[Any]:
        return [self.number, self.flags, self.first, list(self.sequences)]

    @classmethod
    def from_json(cls, line: Any) -> "Logged":  # noqa: ANN401 - whatever the line holds
        """Read a line. Raises TypeError or ValueError for one that is none."""
        number, flags, first, sequences = line
        if any(type(part) is not int for part in (number, flags, first, *sequences)):
            raise TypeError(f"{line!r} is no entry of a log of writes")
        return cls(number, flags, first, tuple(sequences))


def logged_writes(log: WriteLog, tag: bytes) -> tuple[Logged, ...]:
    """The entries of a log as what they mean for a trial whose sectors have this tag."""
    writes = []
    scale = log.sector_bytes // SECTOR
    for entry in log.entries:
        sequences: list[int] = []
        for _, count, code, sequence in runs_of(memoryview(log.data(entry)), tag, entry.sector * scale):
            sequences += [sequence if code == GOOD else 0] * count
        writes.append(Logged(entry.number, entry.flags, entry.sector * scale, tuple(sequences)))
    return tuple(writes)


def check_power_cuts(log: Sequence[Logged], oracle: Oracle, *, seed: int, since: int = 0) -> CheckedImages:
    """Build the images of every flush point and hold each against the writes that were flushed by then.

    `since` is when the log began (ns of the bench): what was begun before and is not in the log counts as lasting.

    The log has no clock that the guest knows. What the guest knew at a cut is told by the writes that are in the log:
    a flush counts as completed once a write is there that the guest began after it.
    """
    contents = {entry.number: tuple(entry.sectors) for entry in log}
    promised = _Promises(oracle)
    lasted = _before(contents, oracle, since)
    waiting: list[Logged] = []
    points = images = 0
    missing: list[Missing] = []
    draw = random.Random(seed)  # noqa: S311 - drawn subsets, no secret
    for entry in (*log, None):
        if entry is not None and not entry.flags & FLUSH:
            if entry.flags & (DISCARD | MARK):
                continue
            promised.reach(sequence for _, sequence in contents[entry.number])
            waiting.append(entry)
            continue
        # a cut here: the flush, or the end of the log, has not been completed
        points += 1
        for lost, remaining in _subsets(waiting, draw):
            images += 1
            missing += promised.missing(lasted, remaining, entry.number if entry else len(log), lost)
            if len(missing) >= _ENOUGH:
                return CheckedImages(points, images, tuple(missing))
        for write in waiting:
            lasted.update(contents[write.number])
        waiting = []
        if entry is not None:
            lasted.update(contents[entry.number])
            promised.reach(sequence for _, sequence in contents[entry.number])
    return CheckedImages(points, images, tuple(missing))


def _before(contents: Mapping[int, Sequence[tuple[int, int]]], oracle: Oracle, since: int) -> dict[int, int]:
    """Sectors with the sequences of the last writes that were on the drive when its log began."""
    logged = {sequence for sequences in contents.values() for _, sequence in sequences}
    lasting: dict[int, int] = {}
    for sequence, write in sorted(oracle.writes.items()):
        if write.begin < since and not write.problem and sequence not in logged:
            lasting.update(dict.fromkeys(range(write.sector, write.sector + write.length), sequence))
    return lasting


def _subsets(waiting: Sequence[Logged], draw: random.Random) -> Iterator[tuple[str, list[Logged]]]:
    """Names of classes of loss with what is kept of the unflushed writes; what was written through always is."""
    cached = [entry for entry in waiting if not entry.flags & FUA]
    yield "none", list(waiting)
    if not cached:
        return
    through = [entry for entry in waiting if entry.flags & FUA]
    yield "all", through
    chosen = cached if len(cached) <= _EACH_AT_MOST else draw.sample(cached, _EACH_AT_MOST)
    for dropped in chosen:
        yield f"each:{dropped.number}", [entry for entry in waiting if entry is not dropped]
    longest = max(cached, key=lambda entry: len(entry.sequences))
    if len(longest.sequences) > _TORN_SECTORS:
        # a drive writes whole blocks, whichever of a transfer's: of each sector old or new is there
        cut = draw.randrange(_TORN_SECTORS, len(longest.sequences), _TORN_SECTORS)
        for name, ends in (("head", (None, cut)), ("tail", (cut, None))):
            part = slice(*ends)
            yield (
                f"torn {name}:{longest.number}",
                [
                    *(entry for entry in waiting if entry is not longest),
                    replace(longest, first=longest.first + (part.start or 0), sequences=longest.sequences[part]),
                ],
            )
    for number in range(_RANDOM if len(cached) > 1 else 0):
        drawn = set(draw.sample(cached, draw.randrange(1, len(cached))))
        yield f"random:{number}", [entry for entry in waiting if entry.flags & FUA or entry in drawn]


class _Promises:
    """What the guest knew to be flushed when writes of the log had been begun."""

    def __init__(self, oracle: Oracle) -> None:
        self._writes = oracle.writes
        self._safe: list[tuple[int, Write]] = sorted(
            ((at, write) for write in oracle.writes.values() if (at := oracle.flushed(write)) is not None),
            key=lambda pair: pair[0],
        )
        self._next = 0
        self._now = -1
        self._must: dict[int, int] = {}

    def reach(self, sequences: Iterator[int]) -> None:
        """A write with these sequences is in the log: the guest had begun it, so all that it knew then holds."""
        begun = [self._writes[sequence].begin for sequence in sequences if sequence in self._writes]
        self._now = max(self._now, *begun, -1)
        while self._next < len(self._safe) and self._safe[self._next][0] <= self._now:
            write = self._safe[self._next][1]
            for sector in range(write.sector, write.sector + write.length):
                self._must[sector] = max(self._must.get(sector, 0), write.sequence)
            self._next += 1

    def missing(
        self, lasted: Mapping[int, int], remaining: Sequence[Logged], cut: int, lost: str
    ) -> Iterator[Missing]:
        """What must be in this image and is not. A later write over it may be there instead."""
        fresh: dict[int, int] = {}
        for entry in remaining:
            fresh.update(entry.sectors)
        for sector, sequence in self._must.items():
            present = fresh.get(sector, lasted.get(sector, 0))
            if present < sequence:
                yield Missing(cut, lost, sector, sequence, present)
