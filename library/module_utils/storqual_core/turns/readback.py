# SPDX-License-Identifier: Apache-2.0
"""Read back a drawn share of what a launch wrote, after it, and keep what the sectors tell as evidence.

Nothing is added to the measured load: what is looked for is what fio writes into its sectors anyway (`content.py`).
Whether this fio does is tried once per batch, on a file in memory: no adapter can have a part in that.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Sequence

from .batch_file import LaunchTurn
from .content import (
    READBACK_SCHEMA,
    Block,
    Job,
    OffsetSequence,
    Run,
    WriteWindow,
    expected_of,
    is_drawn_plainly,
    jobs_of,
    runs_of,
    unstamped,
    writes_only,
    wrong_of,
)
from .fio_job import FioAsk, FioProcess, FioTarget
from .launch import Launched, empty_folder
from .sectors import SECTOR

_MOST_READ = 4 << 20
_MOST_BLOCKS = 4096
_MOST_WRONG = 8
_REPEATS = 50
_ALL_COMPARED = 16
_ALIGNED = 4096
_TRY_PART = 1 << 19
_TRY_BYTES = 3 * _TRY_PART
_TRY_BS = 4096
_TRY_IOS = 32
_TRY_SEED = 86028157
_TRY_S = 60.0


@dataclass(frozen=True)
class KnownFio:
    """What the trial of fio showed: why its sectors cannot be told (empty where they can), and where it writes.

    `repeated` is the rule by which random offsets are drawn: the first job on a drive always draws the same ones,
    or not; None where neither fits.
    """

    reason: str = ""
    repeated: bool | None = None


def try_fio(program: str, folder: Path) -> KnownFio:
    """Have fio write a file in an empty folder, and see whether its content is what is expected. Raises ToolError."""
    file = folder / "written"
    file.write_bytes(bytes(_TRY_BYTES))
    argv = [
        *(program, "--output-format=json", "--name=global", "--rw=randwrite", f"--bs={_TRY_BS}", "--ioengine=psync"),
        *("--thread=1", "--numjobs=3", f"--number_ios={_TRY_IOS}", "--norandommap=1", f"--randseed={_TRY_SEED}"),
        *("--clocksource=clock_gettime", "--allow_file_create=0", "--fallocate=none", f"--size={_TRY_PART}"),
        *(f"--offset_increment={_TRY_PART}", "--name=d0", f"--filename={file}"),
    ]
    with FioProcess(argv, folder) as fio:
        fio.wait(_TRY_S)
    window = WriteWindow(fio.began_ns, time.monotonic_ns(), filled=True, bs=_TRY_BS)
    data = file.read_bytes()
    written = {at // _TRY_BS for at in range(0, _TRY_BYTES, _TRY_BS) if any(data[at : at + _TRY_BS])}
    for number in written:
        block = Block(number * _TRY_BS, 0, _TRY_BYTES)
        runs = runs_of(data[block.address :][:_TRY_BS], [window], block, range(_TRY_BS // SECTOR))
        if wrong_of(block.address, runs, certain=True, reads=True):
            return KnownFio("this fio does not mark the sectors that it writes in the way that is known")
    if not written:
        return KnownFio("fio, which was to show what it writes, wrote nothing")
    target = FioTarget("", str(file), 0, _TRY_BYTES, is_file=True)
    ask = FioAsk("randwrite", _TRY_BS, 1, 3, "psync", 0, 0.0, 0.0, None, True, {}, None, (), (), 0)  # noqa: FBT003
    jobs = jobs_of(ask, [target], [_TRY_BYTES], [_TRY_IOS] * 3)
    for repeated in (False, True):
        expected = set()
        for job in jobs:
            sequence = OffsetSequence(_TRY_SEED, job.number, repeated=repeated and job.is_first)
            drawn = (sequence.block(at, _TRY_PART // _TRY_BS) for at in range(_TRY_IOS))
            expected |= {job.offset // _TRY_BS + block for block in drawn}
        if written == expected:
            return KnownFio("", repeated)
    return KnownFio("", None)


@dataclass
class _Extent:
    """A part of a drive that is known to have been written, by one of these launches."""

    first: int
    end: int
    windows: list[WriteWindow]


@dataclass(frozen=True)
class Looked:
    """What came of it: the evidence, or why there is none, and what puts the launch in doubt."""

    text: str = ""
    reason: str = ""
    doubts: tuple[str, ...] = ()


NOT_LOOKED = Looked(reason="not planned for this launch")


class Readback:
    """Looks at the data of a batch's launches; remembers where it was written."""

    def __init__(self, program: str, folder: Path, stopping: Callable[[], bool]) -> None:
        self._program = program
        self._folder = folder
        self._stopping = stopping
        self._fio: KnownFio | None = None
        self._known: dict[str, list[_Extent]] = {}

    def look(
        self, launch: LaunchTurn, ask: FioAsk, launched: Launched, targets: Sequence[FioTarget], seed: int
    ) -> Looked:
        """Look at the data of a launch, which ran with `ask`. Raises ToolError when fio cannot be tried."""
        if launched.result.status != "ok":
            self._forget(targets)
            return Looked(reason=f"the launch ended {launched.result.status}")
        reason = unstamped(ask) if not ask.reads_only else ""
        if not reason and launch.readback_s <= 0:
            reason = NOT_LOOKED.reason
        if not reason and not ask.reads_only:
            empty_folder(self._folder)
            self._fio = self._fio or try_fio(self._program, self._folder)
            reason = self._fio.reason
        if (reason and not ask.reads_only) or ask.rw == "trimwrite":
            self._forget(targets)
        if reason:
            return Looked(reason=reason)
        drawn = random.Random(launch.id)  # noqa: S311 - a sample, not a secret
        look = _Look(ask, targets, launch.readback_s, self._stopping)
        if ask.reads_only:
            if not any(self._known.get(target.node) for target in targets):
                return Looked(reason="what is there was not written by a launch of this batch")
            return look.run(_known_blocks(ask, targets, self._known, drawn))
        window = WriteWindow(launched.began_ns, launched.began_ns + launched.wall_ns, writes_only(ask), ask.bs)
        sizes = [_size(target) for target in targets]
        jobs = jobs_of(ask, targets, sizes, launched.result.jobs_ios)
        rule = self._fio.repeated if self._fio is not None else None
        outcome = look.run(_written_blocks(ask, jobs, seed, rule, drawn), window)
        self._remember(launch, ask, targets, jobs, window)
        return outcome

    def _forget(self, targets: Iterable[FioTarget]) -> None:
        for target in targets:
            self._known.pop(target.node, None)

    def _remember(
        self, launch: LaunchTurn, ask: FioAsk, targets: Sequence[FioTarget], jobs: Sequence[Job], window: WriteWindow
    ) -> None:
        """What is known of the drives from now on; a file system is made afresh, maybe under the same name."""
        if launch.file_system is not None or ask.rw == "trimwrite":
            return
        for number, target in enumerate(targets):
            known = self._known.setdefault(target.node, [])
            for extent in known:
                extent.windows.append(window)
            if ask.rw == "write" and is_drawn_plainly(ask):
                for job in jobs:
                    if job.drive == number and job.issued:
                        known.append(_Extent(job.offset, job.offset + job.issued * ask.bs, [window]))


def _written_blocks(
    ask: FioAsk, jobs: Sequence[Job], seed: int, repeated: bool | None, drawn: random.Random
) -> Iterator[_Piece]:
    """Blocks that a launch wrote, or may have, drive by drive."""
    is_random = ask.rw in ("randwrite", "randrw")
    plain = is_drawn_plainly(ask) and (repeated is not None or not (is_random or ask.zones))
    certain = plain and writes_only(ask)
    sequences = {
        job.number: OffsetSequence(seed, job.number, repeated=bool(repeated) and job.is_first) for job in jobs
    }

    def draw(drive: int) -> tuple[int, Job] | None:
        job = drawn.choice([job for job in jobs if job.drive == drive])
        blocks = job.size // ask.bs
        if not blocks or (plain and not job.issued):
            return None
        if not plain:
            number = drawn.randrange(blocks)
        elif is_random:
            number = sequences[job.number].block(drawn.randrange(job.issued), blocks)
        else:
            number = drawn.randrange(job.issued)
        return job.offset + number * ask.bs, job

    seen: set[tuple[int, int]] = set()
    drives = sorted({job.drive for job in jobs})
    misses = 0
    while drives and misses < _REPEATS * len(drives):
        for drive in drives:
            candidate = draw(drive)
            if candidate is None or (drive, candidate[0]) in seen:
                misses += 1
                continue
            misses = 0
            seen.add((drive, candidate[0]))
            address, job = candidate
            windowed = (job.offset, job.offset + job.size)
            yield from _pieces(drive, address, ask.bs, windowed, certain=certain)


def _known_blocks(
    ask: FioAsk, targets: Sequence[FioTarget], known: dict[str, list[_Extent]], drawn: random.Random
) -> Iterator[_Piece]:
    """Blocks as the launch reads them, of what is known to have been written before."""
    extents = [
        (number, target, extent)
        for number, target in enumerate(targets)
        for extent in known.get(target.node, ())
        if extent.end - extent.first >= ask.bs
    ]
    seen: set[tuple[int, int]] = set()
    misses = 0
    while extents and misses < _REPEATS:
        number, target, extent = drawn.choice(extents)
        first = -(-(extent.first - target.offset) // ask.bs)
        last = (extent.end - target.offset) // ask.bs
        address = target.offset + drawn.randrange(first, last) * ask.bs if last > first else -1
        if address < 0 or (number, address) in seen:
            misses += 1
            continue
        misses = 0
        seen.add((number, address))
        windowed = (target.offset, target.offset + _size(target))
        yield from _pieces(number, address, ask.bs, windowed, certain=True, windows=extent.windows)


@dataclass(frozen=True)
class _Piece:
    """What is read at once: of a very large block its tail and its head."""

    drive: int
    block: Block
    length: int
    certain: bool
    windows: tuple[WriteWindow, ...] = ()


def _pieces(
    drive: int, address: int, bs: int, part: tuple[int, int], *, certain: bool, windows: Sequence[WriteWindow] = ()
) -> Iterator[_Piece]:
    half = _MOST_READ // 2
    parts = [(address, bs)] if bs <= _MOST_READ else [(address + bs - half, half), (address, half)]
    for at, length in parts:
        yield _Piece(drive, Block(at, *part), length, certain, tuple(windows))


@dataclass
class _Look:
    """One launch's look: reads pieces until the time is over, at least one of each drive."""

    ask: FioAsk
    targets: Sequence[FioTarget]
    limit_s: float
    stopping: Callable[[], bool]
    blocks: list[Any] = field(default_factory=list)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    compared: int = 0

    def run(self, pieces: Iterator[_Piece], window: WriteWindow | None = None) -> Looked:
        began, failed = time.monotonic(), ""
        with _Files(self.targets, self.ask.bs) as files:
            longest = 0.0
            least = set(range(len(self.targets))) if window is not None else {0}
            for piece in pieces:
                at = time.monotonic()
                over = at - began + longest > self.limit_s or len(self.blocks) >= _MOST_BLOCKS
                if self.stopping() or len(self.wrong) >= _MOST_WRONG or (over and not least):
                    break
                if over and piece.drive not in least:
                    continue
                try:
                    self._piece(files, piece, piece.windows or ((window,) if window else ()))
                except OSError as problem:
                    failed = f"byte {piece.block.address} of {self.targets[piece.drive].drive} cannot be read back: "
                    failed += str(problem.strerror)
                    break
                least.discard(piece.drive if window is not None else 0)
                longest = max(longest, time.monotonic() - at)
        doubts = (failed,) if failed else ()
        if not self.blocks:
            return Looked(reason=failed or "nothing is known to have been written", doubts=doubts)
        record = {
            "schema": READBACK_SCHEMA,
            "of": "read" if window is None else "write",
            "bs": self.ask.bs,
            "drives": [target.drive for target in self.targets],
            "window": None if window is None else [window.began_ns, window.ended_ns],
            "blocks": self.blocks,
            "wrong": self.wrong,
            "compared": self.compared,
            "took_ns": round((time.monotonic() - began) * 1e9),
        }
        text = json.dumps(record, separators=(",", ":"))
        return Looked(text, doubts=doubts)

    def _piece(self, files: _Files, piece: _Piece, windows: Sequence[WriteWindow]) -> None:
        data = files.read(piece.drive, piece.block.address, piece.length)
        sectors = piece.length // SECTOR
        compared: Sequence[int] = range(sectors)
        if sectors > _ALL_COMPARED:
            middle = random.Random(piece.block.address).sample(range(4, sectors - 4), 8)  # noqa: S311 - as above
            compared = [*range(4), *middle, *range(sectors - 4, sectors)]
        runs = runs_of(data, windows, piece.block, compared)
        if any(window.filled for window in windows):
            self.compared += len(compared)
        self.blocks.append([piece.drive, piece.block.address, int(piece.certain), runs])
        mismatches = wrong_of(piece.block.address, runs, certain=piece.certain, reads=bool(piece.windows))
        if mismatches:
            self._keep(files, piece, data, runs, mismatches[0][0], windows)

    def _keep(
        self,
        files: _Files,
        piece: _Piece,
        data: bytes,
        runs: Sequence[Run],
        sector: int,
        windows: Sequence[WriteWindow],
    ) -> None:
        """Keep the content of a wrong sector, and what a second read of it alone finds."""
        address = piece.block.address + sector * SECTOR
        content = data[sector * SECTOR :][:SECTOR]
        again = "cannot be read"
        with suppress(OSError):
            start = address // _ALIGNED * _ALIGNED
            second = files.read(piece.drive, start, _ALIGNED)[address - start :][:SECTOR]
            block = Block(address, piece.block.first, piece.block.end)
            right = not wrong_of(address, runs_of(second, windows, block, [0]), certain=True, reads=True)
            again = "right" if right else "the same" if second == content else "something else"
        self.wrong.append(
            {
                "drive": self.targets[piece.drive].drive,
                "address": address,
                "bs": self.ask.bs,
                "found": content.hex(),
                "expected": expected_of(address, piece.block.address, data, runs),
                "again": again,
            }
        )


class _Files:
    """The targets, open for reads that pass the page cache by where that is possible."""

    def __init__(self, targets: Sequence[FioTarget], bs: int) -> None:
        self._targets = targets
        self._buffer = mmap.mmap(-1, max(min(bs, _MOST_READ), _ALIGNED))
        self._open: dict[int, int] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._buffer.close()

    def read(self, drive: int, address: int, length: int) -> bytes:
        """So many bytes. Raises OSError."""
        if drive not in self._open:
            node = self._targets[drive].node
            try:
                self._open[drive] = os.open(node, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
            except OSError:
                # a file may lie where O_DIRECT is not possible
                self._open[drive] = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
        done = 0
        with memoryview(self._buffer) as view:
            while done < length:
                with view[done:length] as rest:
                    count = os.preadv(self._open[drive], [rest], address + done)
                if count <= 0:
                    raise OSError(5, "it ends there")
                done += count
            return bytes(view[:length])


def _size(target: FioTarget) -> int:
    """The bytes of a target that fio works on; 0 where it cannot be opened."""
    if target.size:
        return target.size
    with suppress(OSError):
        descriptor = os.open(target.node, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return max(os.lseek(descriptor, 0, os.SEEK_END) - target.offset, 0)
        finally:
            os.close(descriptor)
    return 0
