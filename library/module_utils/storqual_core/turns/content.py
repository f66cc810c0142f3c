# SPDX-License-Identifier: Apache-2.0
"""What the sectors that fio wrote hold, and whether what is read back is that.

fio's buffers are random, and before each write it stamps each of their sectors (`scramble_buffers`, its default):
the sector's byte address at the beginning of one of the sector's eight lines of 64 bytes, and at the end of the first
line the time of the I/O (seconds, nanoseconds), whose last three bits say which line has the address. So measured
data tells its address and its launch without any work beside what fio does anyway. The other words follow from each
other: every fourth one is the one before it times a constant; at the beginning of a line an address of an earlier
write from the same buffer may stand instead. All of this is tried on a file in memory first (`readback.py`): a fio
that writes something else is not judged by it.

The addresses of random writes follow from the seed: fio's generator is L'Ecuyer's taus88, three linear shift
registers. Any member of its sequence is reached by squaring.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, Mapping, Sequence, Tuple

from .fio_job import FioAsk, FioTarget
from .sectors import SECTOR

READBACK_SCHEMA = "storqual.readback/1"
_WORDS = SECTOR // 8
_LINES = 8
_SECONDS, _NANOSECONDS = 6, 7
_MASK = (1 << 64) - 1
_FACTOR = 0x61C8864680B583EB
"""2^64 by the golden ratio: what fio multiplies a word of its random buffers with for the word four further on."""
_LANES = 4
_ANCHORS = (4, 1, 2, 3)
"""The first word of each lane that is never stamped."""
_PLAIN = tuple(
    (word, _ANCHORS[word % _LANES], pow(_FACTOR, (word - _ANCHORS[word % _LANES]) // _LANES, 1 << 64))
    for word in range(1, _WORDS)
    if word % _LINES and word not in (_SECONDS, _NANOSECONDS) and word not in _ANCHORS
)
_STAMPED = tuple(
    (word, pow(_FACTOR, (word - _ANCHORS[0]) // _LANES % (1 << 62), 1 << 64)) for word in range(0, _WORDS, _LINES)
)

_REGISTERS = ((13, 19, 0xFFFFFFFE, 12, 1), (2, 25, 0xFFFFFFF8, 4, 7), (3, 11, 0xFFFFFFF0, 17, 15))
"""Shifts, mask and least seed of each register of taus88."""
_SEED_FACTOR = 0x9E370001
_OFFSET_SEED = 6
"""Which of a job's seeds its offsets are drawn from."""
_REPEATED_SEED = 0xB1899BED
"""What older releases of fio (3.33) take instead for the first job on a drive, whatever seed they are given."""
_CRANKS = 7


class OffsetSequence:
    """The blocks that fio draws for job `number` (counted from 1 over all drives), by their place in the sequence.

    `repeated`: the same ones whatever the seed.
    """

    _powers: tuple[list[list[int]], ...] = tuple([[]] for _ in _REGISTERS)

    def __init__(self, seed: int, number: int, *, repeated: bool) -> None:
        factor = pow(_SEED_FACTOR, 4 + _OFFSET_SEED, 1 << 64)
        drawn = (_REPEATED_SEED * number if repeated else seed * factor * number + _OFFSET_SEED) & 0xFFFFFFFF
        self._start = []
        last = 53
        for *_, least in _REGISTERS:
            value = (last * 69069 & 0xFFFFFFFF) ^ drawn
            last = value + least if value < least else value
            self._start.append(last)

    def block(self, place: int, blocks: int) -> int:
        """The block of the I/O at `place` (from 0), of so many blocks."""
        drawn = 0
        for register, state in enumerate(self._start):
            steps, power, value = place + _CRANKS, 0, state
            while steps:
                if steps & 1:
                    value = _times(self._power(register, power), value)
                steps >>= 1
                power += 1
            drawn ^= value
        return int(blocks * (drawn / 4294967296.0))

    @classmethod
    def _power(cls, register: int, power: int) -> Sequence[int]:
        """The columns of a register's step, taken 2^power times."""
        known = cls._powers[register]
        if not known[0]:
            known[0] = [_step(register, 1 << bit) for bit in range(32)]
        while len(known) <= power:
            known.append([_times(known[-1], column) for column in known[-1]])
        return known[power]


def _step(register: int, state: int) -> int:
    left, right, mask, up, _ = _REGISTERS[register]
    return ((state & mask) << up & 0xFFFFFFFF) ^ (((state << left & 0xFFFFFFFF) ^ state) >> right)


def _times(columns: Sequence[int], value: int) -> int:
    product = 0
    while value:
        low = value & -value
        product ^= columns[low.bit_length() - 1]
        value ^= low
    return product


@dataclass(frozen=True)
class Job:
    """One job of fio on a drive: where its blocks are (bytes), and how many I/Os it issued for certain.

    `number` counts the jobs of all drives from 1; `is_first` is the first job on its drive.
    """

    drive: int
    offset: int
    size: int
    number: int
    is_first: bool
    issued: int


_UNSTAMPED = (
    *("buffer_compress_percentage", "buffer_pattern", "dedupe_percentage", "refill_buffers", "zero_buffers"),
    *("verify", "gtod_reduce", "bssplit"),
)
_DRAWN_OTHERWISE = (
    *("percentage_random", "random_distribution", "random_generator", "norandommap", "randrepeat", "blockalign"),
    "latency_target",
)


def unstamped(ask: FioAsk) -> str:
    """Why the sectors that a launch writes cannot be told from others; empty where they can."""
    if ask.ioengine == "null":
        return "the engine null moves no data"
    if ask.rw in ("trim", "randtrim"):
        return "a trimmed sector may read anything"
    if ask.bs % SECTOR:
        return f"blocks of {ask.bs} bytes are no whole sectors"
    named = [name for name in _UNSTAMPED if ask.options.get(name, "0") not in ("0", "none")]
    if ask.options.get("scramble_buffers", "1") == "0":
        named.append("scramble_buffers")
    if named:
        return f"with {', '.join(named)} fio does not write the address into each sector"
    return ""


def is_drawn_plainly(ask: FioAsk) -> bool:
    """Whether the offsets of a launch are those in order, or fio's usual random ones."""
    return not any(name in ask.options for name in _DRAWN_OTHERWISE)


def writes_only(ask: FioAsk) -> bool:
    return ask.rw in ("write", "randwrite")


def jobs_of(ask: FioAsk, targets: Sequence[FioTarget], sizes: Sequence[int], ios: Sequence[int]) -> list[Job]:
    """The jobs of a launch in fio's order; `ios` are those that fio counted for each (none where it is not known).

    What fio counted comes after the ramp, so it issued at least as many; the last ones of them may not have ended.
    Once it has moved as many bytes as its part has, a job may draw the same offsets again. Of several jobs the parts
    go the other way round than their numbers, but for the first: fio makes the others from the last one on.
    """
    jobs = []
    for drive, (target, whole) in enumerate(zip(targets, sizes)):
        size = max(whole // ask.numjobs // ask.bs, 1) * ask.bs if ask.zones else whole
        for number in range(ask.numjobs):
            at = drive * ask.numjobs + number
            done = ios[at] if at < len(ios) else 0
            issued = max(min(done - ask.iodepth, size // ask.bs), 0)
            part = ask.numjobs - number if number else 0
            offset = target.offset + (part * size if ask.zones else 0)
            jobs.append(Job(drive, offset, size, at + 1, number == 0, issued))
    return jobs


@dataclass(frozen=True)
class WriteWindow:
    """When a launch wrote (nanoseconds of the monotonic clock), in blocks of which size, from which buffers.

    `filled`: they hold what fio filled them with.

    A job that reads as well reads into the buffers that it writes from.
    """

    began_ns: int
    ended_ns: int
    filled: bool
    bs: int

    def holds(self, time_ns: int) -> bool:
        return self.began_ns <= time_ns <= self.ended_ns


Run = Tuple[int, Any, Any, int]
"""Sectors in a row: how many, the address in the first of them and its time (None where it is of no known launch;
then those that follow count up, or are of none), and whether the rest of them is what fio fills its buffers with."""


@dataclass(frozen=True)
class Block:
    """What is read at once: where it is, and the part of the drive that fio had (bytes)."""

    address: int
    first: int
    end: int


def runs_of(data: bytes, windows: Sequence[WriteWindow], block: Block, compared: Sequence[int]) -> list[Run]:
    """What the sectors of a block tell; of the sectors `compared` (by their place in it) each word is looked at."""
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    wanted = set(compared)
    runs: list[list[Any]] = []
    for sector, at in enumerate(range(0, len(words), _WORDS)):
        nanoseconds = words[at + _NANOSECONDS]
        time_ns = words[at + _SECONDS] * 10**9 + nanoseconds
        window = next((each for each in windows if each.holds(time_ns)), None) if nanoseconds < 10**9 else None
        run: list[Any] = [1, None, None, 1]
        if window is not None:
            line = nanoseconds % _LINES
            run = [1, words[at + line * _LINES], time_ns, 1]
            if sector in wanted and window.filled:
                run[3] = int(
                    _is_fill(words[at : at + _WORDS], line, block.address + sector * SECTOR, block, window.bs)
                )
        last = runs[-1] if runs else None
        if last is not None and last[2:] == run[2:] and (run[1] is None or run[1] == last[1] + last[0] * SECTOR):
            last[0] += 1
        else:
            runs.append(run)
    return [(run[0], run[1], run[2], run[3]) for run in runs]


def _is_fill(words: Sequence[int], line: int, address: int, block: Block, bs: int) -> bool:
    """Whether all words of a sector but its stamp are what fio filled them with, or addresses of earlier writes."""
    if any(words[word] != words[anchor] * factor & _MASK for word, anchor, factor in _PLAIN):
        return False
    for number, (word, factor) in enumerate(_STAMPED):
        value = words[word]
        if number == line or value == words[_ANCHORS[0]] * factor & _MASK:
            continue
        if not block.first <= value < block.end or (value - address) % bs:
            return False
    return True


Wrong = Tuple[int, int, str]
"""Sectors of a block that are wrong: the first of them, how many, and why."""


def wrong_of(address: int, runs: Sequence[Run], *, certain: bool, reads: bool) -> list[Wrong]:
    """What is wrong in a block at `address`. With `reads` all of it must be known; else it may not have been written.

    A block is written by one I/O: where any sector is of the launch, all are.
    """
    known = any(run[1] is not None for run in runs)
    wrong: list[Wrong] = []
    at = 0
    for count, stamp, _, sound in runs:
        expected = address + at * SECTOR
        if stamp is None and (known or certain or reads):
            if reads:
                why = "it holds what no launch wrote there"
            elif known:
                why = "other sectors of its block are of this launch, it is not"
            else:
                why = "this launch wrote it, and it holds something else"
            wrong.append((at, count, why))
        elif stamp is not None and stamp != expected:
            wrong.append((at, count, f"it holds what was written to byte {stamp}"))
        elif not sound:
            wrong.append((at, count, "it has its own address and time, and other bytes are changed"))
        at += count
    return wrong


def data_of(text: str) -> dict[str, Any]:
    """What a sample has of a readback. Raises KeyError, TypeError or ValueError for a text that is none."""
    record = json.loads(text)
    if record["schema"] != READBACK_SCHEMA:
        raise ValueError(f"found schema {record['schema']!r}, expected {READBACK_SCHEMA!r}")
    reads, drives = record["of"] == "read", record["drives"]
    sectors = wrong = unwritten = 0
    first: tuple[str, int, str] | None = None
    for drive, address, certain, runs in record["blocks"]:
        mismatches = wrong_of(address, [tuple(run) for run in runs], certain=bool(certain), reads=reads)
        count = sum(run[0] for run in runs)
        if not mismatches and all(run[1] is None for run in runs):
            unwritten += count
            continue
        sectors += count
        wrong += sum(number for _, number, _ in mismatches)
        if mismatches and first is None:
            first = (drives[drive], address + mismatches[0][0] * SECTOR, mismatches[0][2])
    data = {
        "of": record["of"],
        "sectors": sectors,
        "compared": record["compared"],
        "unwritten": unwritten,
        "wrong": wrong,
        "took_ns": record["took_ns"],
    }
    if first is not None:
        data["first"] = {**_sector(record["wrong"], first), "why": first[2]}
    return data


def _sector(sectors: Sequence[Mapping[str, Any]], first: tuple[str, int, str]) -> dict[str, Any]:
    """The content of the first wrong sector, which its readback kept. Raises ValueError where it has not."""
    for sector in sectors:
        if (sector["drive"], sector["address"]) == first[:2]:
            return {name: sector[name] for name in ("drive", "address", "bs", "expected", "found", "again")}
    raise ValueError(f"the content of the wrong sector at byte {first[1]} of {first[0]} is not there")


UNKNOWN = "??"
"""Of an expected byte: it cannot be known."""


def expected_of(address: int, block: int, data: bytes, runs: Sequence[Run]) -> str:
    """The content that a sector had to have, in hex, as far as that follows from a sector of its block."""
    words: list[int | None] = [None] * _WORDS
    at = 0
    for count, stamp, time_ns, sound in runs:
        if stamp == block + at * SECTOR and sound and time_ns is not None:
            right = struct.unpack_from(f"<{_WORDS}Q", data, at * SECTOR)
            ahead = (address - block) // SECTOR - at
            step = pow(_FACTOR, ahead * (_WORDS // _LANES) % (1 << 62), 1 << 64)
            words = [None if word % _LINES == 0 else value * step & _MASK for word, value in enumerate(right)]
            words[_SECONDS], words[_NANOSECONDS] = divmod(time_ns, 10**9)
            words[time_ns % 10**9 % _LINES * _LINES] = address
            break
        at += count
    return "".join(UNKNOWN * 8 if word is None else struct.pack("<Q", word).hex() for word in words)
